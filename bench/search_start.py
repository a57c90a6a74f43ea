"""`eyespot search` from a terminal over 20,000 photos: asked of a server that runs here, against the same line alone.

Each line is a new process. The ratio is of wall time, with the lone search before and after each served one. Beside it
stand the seconds: wall time of the served line (goal: 0.1 s), process time of the lone one (goal: 0.5 s), and what is
part of it in any program: Python, numpy, pyarrow and tokenizers, each imported alone.
After one new photo: at one and five million rows with codes, links to one shard, the process time of a first search by
words, by look, and of both with groups, beside the next one (goal: at most 1 s more). The five take at most five times
what the one takes (goal: 1, of the next search by both).

    python bench/search_start.py [--quick] [--json]
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import ROOT, Command, Measurement, Race
from bench.serve import KINDS, SHARD, WORDS, make_gallery, serving
from eyespot.gallery import disk
from eyespot.kernels.codes import code_files, write_codes
from eyespot.storage.digests import file_blake2b, rewriting

ROWS = 20_000
SERVED, LONE = 0.1, 0.5  # seconds: wall time, process time
MILLIONS, LATER = (1, 5), 1.0  # rows; seconds that one new photo may cost the first search
WAYS = {"words": ("--by", "words"), "look": ("--by", "look", "--ungrouped"), "groups": ("--grouped",)}
PARTS = ("sys", "numpy", "pyarrow.parquet", "tokenizers")


def printed(gallery: Path, query: str, *more: str) -> bytes:
    """What a line prints on stdout."""
    start = "from eyespot.cli import main; main()"  # as the command `eyespot` does, without `runpy`
    line = [sys.executable, "-c", start, "search", query, "-g", str(gallery), "-k", "20", *more]
    return subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def process_seconds(run: Callable[[], object]) -> float:
    """Process time of the programs that it starts, their own start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def lone_seconds(gallery: Path, query: str, *more: str) -> float:
    """Process time of a lone search."""
    return process_seconds(partial(printed, gallery, query, "--no-server", *more))


def import_seconds(name: str) -> float:
    """Process time of a program that only imports this."""
    return process_seconds(lambda: subprocess.run([sys.executable, "-c", f"import {name}"], check=True))


def many_rows(folder: Path, rows: int) -> Path:
    """A gallery of links to the same shard, with codes."""
    gallery = make_gallery(folder, SHARD)
    first, (stem,) = disk.shard_path(gallery, 0), disk.read_header(gallery).spaces
    with rewriting(first, code_files(stem)) as digests:
        write_codes(disk.map_vectors(first, stem), first / stem)
        digests |= {name: file_blake2b(first / name) for name in code_files(stem)}
    for number in range(1, rows // SHARD):
        shutil.copytree(first, disk.shard_path(gallery, number), copy_function=os.link)
    return gallery


def after_one_photo(gallery: Path, queries: Sequence[str], way: Sequence[str]) -> Iterator[tuple[float, float]]:
    """How many seconds the first search takes and the one after it, as often as there are queries."""
    for query in queries:
        number = disk.last_number(gallery) + 1
        one = make_gallery(gallery.with_name(f"{gallery.name}-{number}"), 1)
        shutil.copytree(disk.shard_path(one, 0), disk.shard_path(gallery, number))
        yield lone_seconds(gallery, query, *way), lone_seconds(gallery, query, *way)


def at_millions(folder: Path) -> Iterator[Measurement]:
    """What one new photo costs at each size, and how the search after that grows."""
    later = dict[int, float]()
    for millions in MILLIONS:
        many = many_rows(folder / f"{millions}m", millions * 1_000_000)
        printed(many, KINDS[0], "--no-server")
        for name, way in WAYS.items():
            first, later_on = zip(*after_one_photo(many, KINDS, way), strict=True)
            more = np.subtract(first, later_on).tolist()
            yield measured(f"search/after-one-photo-{name}-{millions}m", more, LATER)
            later[millions] = float(np.median(later_on))  # at last of both ways with groups
            print(f"{name} at {millions} million: {later[millions]:.2f} s", file=sys.stderr)
    fewest, most = MILLIONS
    yield measured("search/growth", [later[most]], later[fewest] * most / fewest)


def measured(name: str, seconds: list[float], goal: float) -> Measurement:
    """Seconds over the seconds that are wanted."""
    p10, p50, p90 = (np.percentile(seconds, [10, 50, 90]) / goal).tolist()
    return Measurement(name, p50, f"{goal:g} s", p10, p90, len(seconds), 1.0)


def measurements(options: Namespace) -> Iterator[Measurement]:
    os.environ["XDG_STATE_HOME"] = str(options.folder / "state")
    gallery = make_gallery(options.folder / "gallery", ROWS)
    rng, rounds = np.random.default_rng(0), 5 if options.quick else 30
    queries = [f"a {' '.join(rng.choice(WORDS, 2))} {number}" for number in range(rounds + 1)]
    with serving(gallery):
        race = Race(
            "search/served", "the same line alone", lambda query: printed(gallery, query),
            lambda query: printed(gallery, query, "--no-server"), clock=time.perf_counter, same=bytes.__eq__,
        )  # fmt: skip
        race.warm(queries[0])
        for query in queries[1:]:
            race.run(query)
    yield race.measurement()
    yield measured("search/served-wall", race.times[1].tolist(), SERVED)
    yield measured("search/lone-process", [lone_seconds(gallery, query) for query in queries[1:]], LONE)
    for name in PARTS:
        yield measured(f"search/import-{name}", [import_seconds(name) for _ in queries[1:]], LONE)
    yield from at_millions(options.folder)


if __name__ == "__main__":
    Command(__doc__, quick="fewer queries").run(measurements)
