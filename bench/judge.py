"""How many verdicts a second eyespot manages where the endpoint answers at once: through HTTP, and from the ledger.

The endpoint is a small server in a process of its own, which counts what it is asked. Every photo of the sample is
read, made smaller, sent and judged for several queries, eight at a time, and every verdict is on the disk before the
next (goal: 100 a second on two cores). Then the same is asked again, from the ledger (goal: 500 a second), which must
not make a single call. A ratio is the time over the time that the goal allows. Exit code 4 if a goal is missed.

    python bench/judge.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from eyespot import rooms, sample
from eyespot.extras import install_line
from eyespot.judges._rounds import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import Judge, Pair, Query

THROUGH_HTTP, FROM_LEDGER = 100.0, 500.0  # verdicts a second
ROUNDS = 5


@dataclass(frozen=True)
class Result:
    """One line of the answer; ratio = ours / peer, smaller is better."""

    name: str
    ratio: float
    peer: str
    p10: float
    p90: float
    n: int
    goal: float

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


# -- the endpoint ---------------------------------------------------------------------------------------------------


def serve() -> None:
    """Print the address, then the number of requests so far for every line that comes in."""
    from tests.judges.servers import Double

    with Double() as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            print(len(server.seen), flush=True)


class Endpoint:
    """The server's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.url = self._line()

    @property
    def calls(self) -> int:
        """How many requests reached it."""
        assert self.process.stdin is not None
        print(file=self.process.stdin, flush=True)
        return int(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def endpoint() -> Iterator[Endpoint]:
    """A server for as long as it is needed."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Endpoint(process)
        assert process.stdin is not None
        process.stdin.close()


# -- the measurement --------------------------------------------------------------------------------------------------


def pairs(queries: int) -> list[Pair]:
    """Every photo of the sample for each of so many queries."""
    photos = sorted(sample.photos().glob("*.jpg"))
    return [Pair(Query.words(f"a bird, wording {n}"), photo.stem, photo) for n in range(queries) for photo in photos]


def seconds(judge: Judge, asked: list[Pair], ledger: Judgements) -> float:
    """How long it takes until there is a verdict for every pair."""
    started = time.perf_counter()
    verdicts = [judgement.verdict for judgement in ask(judge, asked, ledger)]
    took = time.perf_counter() - started
    assert len(verdicts) == len(asked) and None not in verdicts
    return took


def results(queries: int) -> Iterator[Result]:
    asked, http, cached, calls = pairs(queries), [], [], []
    with endpoint() as server, tempfile.TemporaryDirectory(prefix="eyespot-bench-") as folder:
        judge: Judge = rooms.load("judges", "openai:none", url=server.url)
        for number in range(ROUNDS):
            with Judgements(Path(folder) / f"{number}.sqlite") as ledger:
                http.append(seconds(judge, asked, ledger) / len(asked))
                before = server.calls
                cached.append(seconds(judge, asked, ledger) / len(asked))
                calls.append((server.calls - before) / len(asked))
            rates = f"{1 / http[-1]:.0f} verdicts a second through HTTP, {1 / cached[-1]:.0f} from the ledger"
            say(f"round {number + 1}: {rates}")
    yield compared("judge/http", [one * THROUGH_HTTP for one in http], f"{THROUGH_HTTP:g} verdicts a second", 1.0)
    yield compared("judge/ledger", [one * FROM_LEDGER for one in cached], f"{FROM_LEDGER:g} verdicts a second", 1.0)
    yield compared("judge/again", calls, "calls of the first run", 0.0)


def compared(name: str, ratios: list[float], peer: str, goal: float) -> Result:
    p10, ratio, p90 = np.percentile(ratios, (10, 50, 90)).round(4).tolist()
    return Result(name, ratio, peer, p10, p90, len(ratios), goal)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def show(result: Result, options: Any) -> None:
    if options.json:
        print(json.dumps(asdict(result)), flush=True)
        return
    verdict = "met" if result.met else "NOT MET"
    spread = f"({result.p10:.3f}-{result.p90:.3f}, n={result.n})"
    print(f"{result.name}: {result.ratio:.3f} {spread} of {result.peer}; goal {result.goal:g}: {verdict}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the pairs")
    parser.add_argument("--json", action="store_true", help="one line of JSON per result")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    met = True
    for result in results(1 if options.quick else 10):
        show(result, options)
        met &= result.met
    return 0 if met else 4


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as missing:
        say(f"this benchmark needs {missing.name}: {install_line('dev')}")
        sys.exit(4)
