"""`eyespot search` from a terminal over 20,000 photos: asked of a server that runs here, against the same line alone.

Each line is a new process. The ratio is of wall time, with the lone search before and after each served one. Beside it
stand the seconds: wall time of the served line (goal: 0.15 s), and process time of the lone one (goal: 0.5 s).

    python bench/search_start.py [--quick] [--json]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import ROOT, Command, Measurement, Race
from bench.serve import WORDS, make_gallery, serving

ROWS = 20_000
SERVED, LONE = 0.15, 0.5  # seconds: wall time, process time


def printed(gallery: Path, query: str, *more: str) -> bytes:
    """What a line prints on stdout."""
    line = [sys.executable, "-m", "eyespot.cli", "search", query, "-g", str(gallery), "-k", "20", *more]
    return subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def process_seconds(gallery: Path, query: str) -> float:
    """Process time of a lone search, its own start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed(gallery, query, "--no-server")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


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
    yield measured("search/lone-process", [process_seconds(gallery, query) for query in queries[1:]], LONE)


if __name__ == "__main__":
    Command(__doc__, quick="fewer queries").run(measurements)
