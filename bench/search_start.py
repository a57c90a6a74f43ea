"""`eyespot search` from a terminal over 20,000 photos: asked of a server that runs here, against the same line alone.

Each line is a new process. The ratio is of wall time, with the lone search before and after each served one. Beside it
stand the seconds: wall time of the served line (goal: 0.15 s), process time of the lone one (goal: 0.5 s), and what is
part of it in any program: Python, numpy, pyarrow, onnxruntime, pydantic and typer, each imported alone.
After one new photo: at a million rows, links to a few shards, the process time of the first search by words beside the
next one (goal: at most 1 s more).

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

ROWS = 20_000
SERVED, LONE = 0.15, 0.5  # seconds: wall time, process time
MANY, LATER = 1_000_000, 1.0  # rows; seconds that one new photo may cost the first search
PARTS = ("sys", "numpy", "pyarrow.parquet", "onnxruntime", "pydantic", "typer")


def printed(gallery: Path, query: str, *more: str) -> bytes:
    """What a line prints on stdout."""
    line = [sys.executable, "-m", "eyespot.cli", "search", query, "-g", str(gallery), "-k", "20", *more]
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


def many_rows(folder: Path) -> Path:
    """A gallery of links to the same shard."""
    gallery = make_gallery(folder, SHARD)
    first = disk.shard_path(gallery, 0)
    for number in range(1, MANY // SHARD):
        shutil.copytree(first, disk.shard_path(gallery, number), copy_function=os.link)
    return gallery


def after_one_photo(gallery: Path, queries: Sequence[str]) -> Iterator[float]:
    """How many seconds more the first search takes than the one after it, as often as there are queries."""
    for number, query in enumerate(queries):
        one = make_gallery(gallery.with_name(f"one-{number}"), 1)
        shutil.copytree(disk.shard_path(one, 0), disk.shard_path(gallery, MANY // SHARD + number))
        first = lone_seconds(gallery, query, "--by", "words")
        yield first - lone_seconds(gallery, query, "--by", "words")


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
    many = many_rows(options.folder / "many")
    printed(many, queries[0], "--no-server")
    yield measured("search/after-one-photo", [*after_one_photo(many, KINDS)], LATER)


if __name__ == "__main__":
    Command(__doc__, quick="fewer queries").run(measurements)
