"""Searches of many people at once in one reading of the codes, against one search after the other.

Threads search 1,000,000 x 512 vectors in float16 with int8 codes, each with a query of its own, every fourth under a
filter that keeps a half and, in runs of their own, with a view of its own (QuARI). Batched is how `eyespot serve`
does it: whoever comes while a scan runs shares the next one. One by one is a lock around each search. Both take turns
in one run, on the same index. Queries a second, the 95th percentile of the waiting and the processor time of a query,
which depends less on what else runs, are printed. The ratio is the time for all queries, batched over one by one (goal:
at most 0.7 with 8 threads and 0.5 with 50). Adapted queries share the first look at all rows alone, so their goal is
not to take longer (at most 1.1).

    python bench/batching.py [--quick] [--json] [--rounds N]
"""

from __future__ import annotations

import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import Command, Measurement, clusters, say
from eyespot.adapters.quari.scoring import AdaptedIndex
from eyespot.indexes.exact import Exact
from eyespot.kernels.codes import quantise
from eyespot.types import AdaptedQuery
from eyespot.web.found.scanning import ScanCounts, SharedIndex, SharedScan

DIM, K = 512, 240
Search = Callable[[int], Any]


def spent(search: Search, threads: int, count: int) -> tuple[float, list[float]]:
    """Seconds for so many searches by so many threads, and how long each waited."""
    waited = [0.0] * count

    def one(number: int) -> None:
        begun = time.perf_counter()
        search(number)
        waited[number] = time.perf_counter() - begun

    begun = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(count)))
    return time.perf_counter() - begun, waited


def crowds(name: str, alone: Search, batched: Search, threads: int, rounds: int) -> Iterator[Measurement]:
    """Both in turn, on the same queries."""
    count = max(4 * threads, 40)
    ratios, waiting = [], {"one by one": list[float](), "batched": list[float]()}
    seconds, processor = ({"one by one": 0.0, "batched": 0.0} for _ in range(2))
    for number in range(rounds + 1):
        both = {}
        for kind, search in (("one by one", alone), ("batched", batched)):
            cpu = time.process_time()
            both[kind], waited = spent(search, threads, count)
            if number:  # the first round loads kernels
                seconds[kind] += both[kind]
                processor[kind] += time.process_time() - cpu
                waiting[kind] += waited
        ratios += [both["batched"] / both["one by one"]] if number else []
    for kind, total in seconds.items():
        p95 = float(np.percentile(waiting[kind], 95)) * 1000
        each = processor[kind] / (rounds * count) * 1000
        say(
            f"{name}, {threads} threads, {kind}: {rounds * count / total:.1f} queries a second, p95 {p95:.0f} ms,"
            f" {each:.1f} ms of processor time a query"
        )
    p10, p50, p90 = np.percentile(ratios, [10, 50, 90]).tolist()
    goal = 1.1 if name == "adapted" else 0.7 if threads < 20 else 0.5
    yield Measurement(f"batching/{name}-{threads}", p50, "one search after the other", p10, p90, rounds * count, goal)


def measurements(options: Namespace) -> Iterator[Measurement]:
    rows, rounds = (100_000, 3) if options.quick else (1_000_000, 5)
    rounds = options.rounds or rounds
    rng, world = np.random.default_rng(0), clusters(300, DIM)
    block = np.concatenate([world.draw(50_000).astype(np.float16) for _ in range(rows // 50_000)])
    queries, half = world.draw(200).astype(np.float32), rng.random(rows) < 0.5
    codes = [quantise(block)]
    index, scan = Exact([block], codes, small=0), AdaptedIndex([block], codes, small=0)
    factors = (0.02 * rng.standard_normal((len(queries), 2, DIM, 8))).astype(np.float32)
    views = [AdaptedQuery(query, left, right, 1.0) for query, (left, right) in zip(queries, factors, strict=True)]
    lock, counts = threading.RLock(), ScanCounts()
    shared, shared_scan = SharedIndex(index, lock, counts), SharedScan(lambda: scan, lock, counts)

    def mask(number: int) -> Any:
        return half if number % 4 == 0 else None

    def alone(number: int) -> Any:
        with lock:
            return index.search(queries[number : number + 1], K, mask(number))

    def adapted_alone(number: int) -> Any:
        with lock:
            return scan.search([views[number]], K, mask(number))

    for threads in (8, 50):
        batched: Search = lambda at: shared.search(queries[at : at + 1], K, mask(at))  # noqa: E731
        yield from crowds("plain", alone, batched, threads, rounds)
    for threads in (8, 50):
        adapted: Search = lambda at: shared_scan.search([views[at]], K, mask(at))  # noqa: E731
        yield from crowds("adapted", adapted_alone, adapted, threads, max(1, rounds // 2))
    say(f"{counts.queries} queries in {counts.scans} scans")


if __name__ == "__main__":
    command = Command(__doc__, quick="a tenth of the rows")
    command.add_argument("--rounds", type=int, help="how often both take turns")
    command.run(measurements)
