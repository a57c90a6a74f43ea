"""Twenty million rows in segments: import, merge, open, filter, search, and a server with workers for eight people.

A clip-retrieval folder of made-up float16 vectors (512 dimensions, 50 parts of 400,000; --million 5: of 100,000;
--quick: a hundredth) is imported with --copy, coded and merged into segments by the commands that a user runs. Then
are measured: the time until a search can begin, the files that are mapped, the time of filters, one exact query and
one through a map of its own, with vectors in memory and on a cold disk. Answers are compared with a float64 scan.

At the end two servers answer the same searches (words, a photo, a filter, an adapter, pages deep in a result): one
process alone, and `serve --ray local --workers 2` with eight people at once, while its workers are killed one after
the other. Every answer of the two must be the same to the last bit. `--times FILE` takes the machine's own slopes (as
`eyespot plan --measure --slopes FILE` writes them); without it they are measured first. Goal: times within a quarter
of the plan. The full size needs 65 GB of disk and about half an hour.

    python bench/segments.py [--quick] [--json] [--folder DIR] [--times FILE] [--million N]
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.bulk import write_table
from bench.harness import ROOT, BenchmarkError, Command, Measurement, clusters, say, timed
from bench.serve import free_port
from eyespot.adapters.quari import Config
from eyespot.adapters.quari.files import save, shapes
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.gallery import filters
from eyespot.gallery.view import Gallery, View
from eyespot.indexes.exact import Exact
from eyespot.search.plan.arithmetic import PlanRequest, seconds_of, ways
from eyespot.search.plan.measuring import SyntheticVectors
from eyespot.search.plan.slopes import Slopes, read_slopes

PARTS, DIM, K = 50, 512, 50  # fewer parts than an index run merges by itself
TRIALS, CHECKED, PIECE = 9, 2, 50_000
PEOPLE, WORKERS, SEARCHES = 8, 2, 24
QUARTER = 1.25
FILTERS = {
    "number": "width < 496",
    "text at the beginning": "caption LIKE 'a picture of the thing with the number 77%'",
    "text anywhere": "caption LIKE '%999%'",
    "regular expression": "regexp_matches(caption, '12345$')",
    "an id that no row has": "id = 'none'",
    "a range that no row has": "height > 1000",
}
OPEN = """
import json, sys, time
from pathlib import Path
from eyespot.gallery.view import Gallery
start = time.perf_counter()
gallery = Gallery(Path(sys.argv[1]))
view = gallery.view(gallery.stem())
view.live, view.blocks, view.codes
seconds = time.perf_counter() - start
maps = [line.split(None, 5)[5] for line in open("/proc/self/maps") if sys.argv[1] in line]
anonymous = [1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")]
print(json.dumps({"seconds": seconds, "files": len(set(maps)), "memory": anonymous[0]}))
"""


# -- the gallery ------------------------------------------------------------------------------------------------


def make_folder(folder: Path, world: SyntheticVectors, rows: int) -> None:
    """What clip-retrieval would have written."""
    for name in ("img_emb", "metadata"):
        (folder / name).mkdir(parents=True)
    for part in range(PARTS):
        vectors = np.lib.format.open_memmap(folder / "img_emb" / f"img_emb_{part}.npy", "w+", np.float16, (rows, DIM))
        for start in range(0, rows, PIECE):
            vectors[start : start + PIECE] = world.draw(min(PIECE, rows - start))
        vectors.flush()
        write_table(folder / "metadata" / f"metadata_{part}.parquet", part * rows, rows)
    say(f"{PARTS} parts of {rows} rows made")


def eyespot(*arguments: object) -> float:
    """Run a command as a user does; its seconds."""
    line = [sys.executable, "-m", "eyespot.cli", *map(str, arguments)]
    seconds, done = timed(partial(subprocess.run, line, capture_output=True, text=True, cwd=ROOT), time.perf_counter)
    if done.returncode:
        raise BenchmarkError(f"eyespot {arguments[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    say(f"eyespot {' '.join(map(str, arguments[:2]))}: {seconds:.1f} s")
    return float(seconds)


def checkpoint(folder: Path) -> Path:
    """A QuARI checkpoint near the identity, as training begins: maps of random weights would rule out hardly a row."""
    config = Config(DIM, low_rank_dim=16, hidden_dim=32, num_steps=2, nhead=4, num_layers=2, use_fro_norm=False)
    rng, weights = np.random.default_rng(3), dict[str, Any]()
    for name, shape in shapes(config).items():
        scale = 0.003 if name.startswith(("query_decoder.3", "dec_u_img.3")) else 0.1
        weights[name] = rng.normal(0, scale, shape).astype(np.float32)
    save(folder, config, weights)
    return folder


def forget(gallery: Path) -> None:
    """Let the system drop what it remembers of the gallery's files, as after a night."""
    for place in gallery.rglob("*"):
        if place.is_file():
            forget_file(place)


def forget_file(place: Path) -> None:
    """The same for one file; pages that a process has mapped stay."""
    with place.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def opened(gallery: Path) -> dict[str, float]:
    """How long it takes in a new process until a search can begin, and what it holds then."""
    line = [sys.executable, "-c", OPEN, str(gallery)]
    found: dict[str, float] = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    return found


# -- one process ------------------------------------------------------------------------------------------------


def wrong_answers(view: View, index: Exact, world: SyntheticVectors) -> Measurement:
    """The share of a few queries whose top 50 is not that of a float64 scan of all rows."""
    queries = world.draw(CHECKED, noise=0.75)
    answer = index.search(queries, K)
    best = [(np.zeros(0), np.zeros(0, np.int64)) for _ in range(CHECKED)]
    for start, block in zip(view.starts.tolist(), view.blocks, strict=False):
        for at in range(0, len(block), PIECE):
            scores = queries.astype(np.float64) @ block[at : at + PIECE].astype(np.float64).T
            for query, row in enumerate(scores):
                rows = np.argpartition(-row, min(K, len(row) - 1))[:K]
                joined = np.r_[best[query][0], row[rows]], np.r_[best[query][1], rows + start + at]
                order = np.lexsort((joined[1], -joined[0]))[:K]
                best[query] = joined[0][order], joined[1][order]
    wrong = [not np.array_equal(rows, answer.rows[query]) for query, (_, rows) in enumerate(best)]
    return Measurement.from_mean("answers unlike float64", wrong, "float64 scan of all rows", 0.0)


def alone(gallery: Path, world: SyntheticVectors, slopes: Slopes) -> Iterator[Measurement]:
    """Filters and searches of one process."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    for name, text in FILTERS.items():
        condition = filters.checked(text, list(filters.columns_of(view.tables)))
        seconds, mask = timed(partial(filters.mask, view.tables, condition), time.perf_counter)
        say(f"filter, {name}: {seconds:.2f} s, {int(mask.sum())} rows")
    index, adapted = Exact(view.blocks, view.codes, small=0), AdaptedIndex(view.blocks, view.codes, small=0)
    searches: dict[str, Callable[[], object]] = {
        "int8": lambda: index.search(world.query(), K),
        "quari": lambda: adapted.search([world.adapted()], K),
    }
    for name, search in searches.items():
        search()  # compiles, and reads the codes once
        for shard in view.shards:
            forget_file(shard / f"{view.stem}.npy")
        say(f"{name}: {timed(search, time.perf_counter)[0]:.3f} s where the vectors lie on a cold disk")
        times = [timed(search, time.perf_counter)[0] for _ in range(TRIALS)]
        yield against_plan(name, float(np.median(times)), planned(slopes, int(view.starts[-1]), name))
    yield wrong_answers(view, index, world)


def planned(slopes: Slopes, rows: int, name: str) -> float:
    """Seconds of a query by `eyespot plan`, on this machine alone."""
    way = next(way for way in ways(DIM) if way.name == name)
    return seconds_of(PlanRequest(rows, DIM, 1, 1), slopes, way, 1)


def against_plan(name: str, seconds: float, plan: float) -> Measurement:
    """How far off the plan is: the larger of plan over run and run over plan."""
    say(f"{name}: {seconds:.3f} s, planned {plan:.3f} s")
    return Measurement.from_mean(f"{name}: off the plan", max(seconds / plan, plan / seconds), "eyespot plan", QUARTER)


# -- two servers ------------------------------------------------------------------------------------------------


@dataclass
class Asked:
    """The answers by address, the seconds that each took, and errors."""

    answers: dict[str, Any] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def addresses(ids: Sequence[str]) -> list[str]:
    """Searches of all kinds, each another."""
    words = "heron lake stone river bridge old bird tree boat night snow wing nest fish tower green".split()  # noqa: SIM905
    found = []
    for number, (id, word) in enumerate(zip(ids, words * len(ids), strict=False)):
        kinds: list[dict[str, object]] = [
            {"q": f"{word} {number}"},
            {"like": id},
            {"like": id, "where": f"width < {495 + number % 5}"},
            {"q": f"{word} {number}", "adapt": "map"},
            {"q": f"{word} {number}", "limit": 200},
        ]
        found += [f"/v1/search?{urlencode({'limit': 50, 'by': 'look'} | kind)}" for kind in kinds]
    return found


@contextmanager
def serving(gallery: Path, adapter: Path, *options: object) -> Iterator[tuple[int, int]]:
    """A server in its own process, ready: its port and its process."""
    port = free_port()
    line = [sys.executable, "-m", "eyespot.cli", "serve", "-g", gallery, "--port", port, "--adapt", f"map={adapter}"]
    line += ["--timeout", 120, *options]
    start = time.perf_counter()
    process = subprocess.Popen(list(map(str, line)), stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        while answered(port, "/readyz")[0] != 200:
            if process.poll() is not None:
                raise BenchmarkError(f"the server ended with {process.returncode} before it was ready")
            time.sleep(0.2)
        say(f"serve {' '.join(map(str, options))}: ready after {time.perf_counter() - start:.1f} s")
        yield port, process.pid
    finally:
        process.terminate()
        process.wait()


def answered(port: int, address: str) -> tuple[int, bytes]:
    """Status and body of a request; 0 where nothing listens yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    try:
        connection.request("GET", address, headers={"Accept": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    finally:
        connection.close()


def ask(port: int, waiting: Sequence[str], asked: Asked) -> None:
    """One person's searches, one after the other."""
    for address in waiting:
        start = time.perf_counter()
        status, body = answered(port, address)
        asked.seconds.append(time.perf_counter() - start)
        if status != 200:
            asked.errors.append(f"{status} for {address}: {body[:200]!r}")
            continue
        items = json.loads(body)["items"]
        asked.answers[address] = [(item["id"], item["score"]) for item in items]


def workers_of(pid: int) -> list[int]:
    """The processes of Ray's workers that hold rows for this server."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(b"ray::RangeActor"):
            found.append(int(place.name))
    return found


def kill_workers(pid: int, over: threading.Event, killed: list[int]) -> None:
    """One worker after the other: the first at once, then every few seconds."""
    pause = 0.2
    while not over.wait(pause):
        pause = 5.0
        for worker in workers_of(pid)[:1]:
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)


def crowd(port: int, waiting: Sequence[str]) -> Asked:
    """Eight people at once, who share the searches."""
    asked = Asked()
    people = [threading.Thread(target=ask, args=(port, waiting[at::PEOPLE], asked)) for at in range(PEOPLE)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    return asked


def served(gallery: Path, adapter: Path) -> Iterator[Measurement]:
    """The same searches of one process and of two workers, killed meanwhile."""
    view = Gallery(gallery).view(Gallery(gallery).stem())
    rows = np.linspace(0, int(view.starts[-1]) - 1, 2 * SEARCHES).astype(int).tolist()
    ids = [str(fact["id"]) for fact in view.facts(rows)]
    waiting = addresses(ids[::2])
    with serving(gallery, adapter) as (port, _):
        plain = Asked()
        ask(port, waiting, plain)
        many = crowd(port, addresses(ids[1::2]))
    say(f"one process, one person: median {1e3 * np.median(plain.seconds):.0f} ms, p95 {p95(plain)}")
    say(f"one process, {PEOPLE} people: p95 {p95(many)}, {len(many.seconds)} searches, {len(many.errors)} errors")
    with serving(gallery, adapter, "--ray", "local", "--workers", WORKERS) as (port, pid):
        calm = crowd(port, waiting[: len(waiting) // 2])
        over, killed = threading.Event(), list[int]()
        killer = threading.Thread(target=kill_workers, args=(pid, over, killed))
        killer.start()
        troubled = crowd(port, waiting[len(waiting) // 2 :])
        over.set()
        killer.join()
    say(f"{WORKERS} workers, {PEOPLE} people: p95 {p95(calm)}; while {len(killed)} were killed {p95(troubled)}")
    errors = [*plain.errors, *many.errors, *calm.errors, *troubled.errors]
    say("\n".join(errors[:5]) if errors else "no errors")
    workers = calm.answers | troubled.answers
    wrong = [plain.answers.get(address) != workers.get(address) for address in waiting]
    yield Measurement.from_mean("answers of workers unlike one process", wrong, "one process", 0.0)
    yield Measurement.from_mean("searches that failed", len(errors) / len(waiting), "none", 0.0)
    if not killed:
        raise BenchmarkError("no worker was there to be killed")


def p95(asked: Asked) -> str:
    return f"{1e3 * np.percentile(asked.seconds, 95):.0f} ms"


# -- all of it --------------------------------------------------------------------------------------------------


def slopes_here(options: Namespace) -> Slopes:
    """What this machine does by itself, as `eyespot plan` would measure it."""
    place = options.times or options.folder / "slopes.toml"
    if not place.exists():
        eyespot("plan", "--images", "20M", "--dim", DIM, "--measure", "--slopes", place)
    return read_slopes(place)


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows, world = int(options.million * 1e6) // PARTS // (100 if options.quick else 1), clusters(dim=DIM)
    clip, gallery = options.folder / "clip", options.folder / "gallery"
    slopes = slopes_here(options)
    make_folder(clip, world, rows)
    steps = {"import": eyespot("import", "clip-retrieval", clip, "-g", gallery, "-e", "starter", "--copy")}
    shutil.rmtree(clip)
    steps["codes"] = eyespot("index", "-g", gallery, "--codes")
    before = opened(gallery)
    steps["merging"] = eyespot("compact", "-g", gallery, "--rows", max(1000, PARTS * rows // 20))
    for name, seconds in steps.items():
        yield against_plan(name, seconds, slopes.build[name] * PARTS * rows * DIM / 1e9)
    forget(gallery)
    cold, after = opened(gallery), opened(gallery)
    for name, found in (("parts", before), ("segments, cold disk", cold), ("segments", after)):
        say(f"{name}: open in {found['seconds']:.2f} s, {found['files']} files, {found['memory'] / 2**20:.0f} MiB")
    yield Measurement.from_mean("ready for a search, cold disk", cold["seconds"], "one second", 1.0)
    yield Measurement.from_mean("ready for a search", after["seconds"], "one second", 1.0)
    yield from alone(gallery, world, slopes)
    yield from served(gallery, checkpoint(options.folder / "map"))


if __name__ == "__main__":
    command = Command(__doc__, fast=True, quick="a hundredth of the size")
    command.add_argument("--times", type=Path, help="the table of slopes of this machine, measured there if missing")
    command.add_argument("--million", type=float, default=20.0, help="rows, in millions")
    command.run(measurements)
