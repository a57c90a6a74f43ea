"""How many verdicts a second eyespot manages where the endpoint answers at once: through HTTP, and from the ledger.

The endpoint is a small server in its own process, which counts its requests. Each photo of the sample is read, made
smaller, sent and judged for several queries, eight at a time, and each verdict is on the disk before the next (goal:
100 a second on two cores). Then the same verdicts come from the ledger (goal: 500 a second), without a single call.
A ratio is the time over the time that the goal allows.

    python bench/judge.py [--quick] [--json]
"""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from bench.harness import ROOT, Command, Measurement, say, timed
from eyespot import rooms, sample
from eyespot.judges import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import Judge, Pair, Query

THROUGH_HTTP, FROM_LEDGER = 100.0, 500.0  # verdicts a second
ROUNDS = 5
SERVE = "from bench.judge import serve; serve()"


# -- the endpoint ---------------------------------------------------------------------------------------------------


def serve() -> None:
    """Print the address, then the number of requests so far for each line of stdin."""
    from tests.worlds.servers import Double

    with Double() as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            print(len(server.seen), flush=True)


class EndpointProcess:
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
def endpoint() -> Iterator[EndpointProcess]:
    """A server for as long as it is needed."""
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        yield EndpointProcess(process)
        assert process.stdin is not None
        process.stdin.close()


# -- what is measured -----------------------------------------------------------------------------------------------


def pairs(queries: int) -> list[Pair]:
    """Each photo of the sample for each query."""
    photos = sorted(sample.photos().glob("*.jpg"))
    return [Pair(Query.words(f"a bird, wording {n}"), photo.stem, photo) for n in range(queries) for photo in photos]


def seconds(judge: Judge, batch: list[Pair], ledger: Judgements) -> float:
    """Seconds a pair until all have a verdict."""
    took, judgements = timed(lambda: list(ask(judge, batch, ledger)), time.perf_counter)
    assert len(judgements) == len(batch) and None not in [judgement.verdict for judgement in judgements]
    return took / len(batch)


def measurements(options: Namespace) -> Iterator[Measurement]:
    batch, http, cached, calls = pairs(1 if options.quick else 10), [], [], []
    with endpoint() as server:
        judge: Judge = rooms.load("judges", "openai:none", url=server.url)
        for number in range(ROUNDS):
            with Judgements(options.folder / f"{number}.sqlite") as ledger:
                http.append(seconds(judge, batch, ledger))
                before = server.calls
                cached.append(seconds(judge, batch, ledger))
                calls.append((server.calls - before) / len(batch))
            rates = f"{1 / http[-1]:.0f} verdicts a second through HTTP, {1 / cached[-1]:.0f} from the ledger"
            say(f"round {number + 1}: {rates}")
    for name, times, rate in (("judge/http", http, THROUGH_HTTP), ("judge/ledger", cached, FROM_LEDGER)):
        yield Measurement.from_trials(name, np.array(times) * rate, f"{rate:g} verdicts a second", 1.0)
    yield Measurement.from_trials("judge/again", calls, "calls of the first run", 0.0)


if __name__ == "__main__":
    Command(__doc__, quick="a tenth of the pairs").run(measurements)
