"""A server of many moods: whatever it does and whatever ends the runs, no usable answer is paid for twice.

Each pair has one answer that can be used: token probabilities, a bare word, neither of both, or one of four refusals.
Before it may come an answer that is none, a 429, a 500, a cut or a lost one. The order at the end is that of a calm
server.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from eyespot import rooms
from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import Budget
from eyespot.llms.errors import ServerDown
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Query, Run
from tests.lazy_import import requires
from tests.worlds.judging import draw_colours, run_of
from tests.worlds.servers import HANG, YES, Double, Response, Seen, chat, error

pytestmark = requires("tenacity")

PICTURES, WORKERS = 12, 6
QUERIES = [Query.words(f"thing {number}", str(number)) for number in range(4)]
PAIRS = PICTURES * len(QUERIES)
TROUBLES = [error(429, Retry_After="0"), error(500), error(503), YES._replace(cut=True), chat("Perhaps"), chat("")]
REFUSALS = [
    chat("", refusal="not this"),
    chat("", finish="content_filter"),
    chat("I'm sorry, but I can't help with that."),
    chat("I", {"I": 0.98, "Sorry": 0.02}),
]
PROGRAM = """
import sys
from pathlib import Path
from eyespot.ledger.judgements import Judgements
from tests.search.test_chaotic_servers import look

url, ledger, photos = sys.argv[1:]
with Judgements(Path(ledger)) as judgements:
    look(url, judgements, Path(photos))
"""


@dataclass
class Moody:
    """What a server says to each pair, by the seed alone; a share of its replies is trouble, in any order."""

    seed: int
    trouble: float = 0.0
    usable: Counter[str] = field(default_factory=Counter)  # answers that can be used, by pair
    _moods: random.Random = field(default_factory=random.Random)
    _lock: Lock = field(default_factory=Lock)

    def __call__(self, seen: Seen) -> Response:
        with self._lock:
            if self._moods.random() < self.trouble:
                return HANG if self._moods.random() < 0.02 else self._moods.choice(TROUBLES)
            self.usable[seen.pair] += 1
            rest = self._moods.random() / 500
        time.sleep(rest)
        return self._answer(random.Random(f"{self.seed} {seen.pair}"))

    def _answer(self, chance: random.Random) -> Response:
        share, kind = chance.random(), chance.random()
        if kind < 0.1:
            return chance.choice(REFUSALS)
        if kind < 0.2:
            return chat("The", {"The": 0.7, "No": 0.3})
        bare = kind < 0.2 + chance.choice([0.1, 0.7])
        return chat("Yes" if share >= 0.5 else "No", None if bare else {"Yes": share, "No": 1 - share})

    @property
    def repeated(self) -> int:
        """How many usable answers were sent to pairs that had one."""
        return sum(count - 1 for count in self.usable.values())


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_colours(tmp_path_factory.mktemp("photos"), PICTURES)[0].parent


def look(url: str, ledger: Judgements, photos: Path, calls: int | None = None, workers: int = WORKERS) -> Run:
    run = run_of(sorted(photos.iterdir()), *(query.id for query in QUERIES))
    how = {"url": url, "workers": workers, "first_rest": 0.001, "timeout": 0.5, "budget": Budget(calls=calls)}
    return JudgeRerank(rooms.load("judges", "openai:tiny", **how), ledger)(QUERIES, run)


def calm(seed: int, photos: Path, place: Path) -> dict[str, list[str]]:
    """The rankings of the same answers without any trouble, one at a time."""
    with Double(then=Moody(seed)) as server, Judgements(place) as ledger:
        return orders(look(server.url, ledger, photos, workers=1))


def orders(run: Run) -> dict[str, list[str]]:
    return {query: [hit.image for hit in hits] for query, hits in run.items()}


def finished(server: Double, ledger: Judgements, photos: Path, most: int = 40) -> Run:
    """Runs without a budget until every pair has its verdict."""
    for _ in range(most):
        verdicts = look_or_end(server.url, ledger, photos)
        if verdicts is not None and not verdicts["failed"]:
            return look(server.url, ledger, photos)
    raise AssertionError(verdicts)


def look_or_end(url: str, ledger: Judgements, photos: Path, calls: int | None = None) -> dict[str, Any] | None:
    """The counts of a run; None where the server failed so often in a row that the run ended."""
    try:
        verdicts: dict[str, Any] = look(url, ledger, photos, calls).header["verdicts"]
    except ServerDown:
        return None
    return verdicts


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))])
def test_runs_that_budgets_cut_pay_for_no_answer_twice(seed: int, photos: Path, tmp_path: Path) -> None:
    chance, moody = random.Random(seed), Moody(seed, trouble=0.4)
    seen_before = 0
    with Double(then=moody) as server, Judgements(tmp_path / "ledger.sqlite") as ledger:
        for _ in range(5):
            verdicts = look_or_end(server.url, ledger, photos, chance.randint(3, 40))
            assert verdicts is None or verdicts["calls"] == len(server.seen) - seen_before
            seen_before = len(server.seen)
        finished(server, ledger, photos)
        paid = len(server.seen)
        again = look(server.url, ledger, photos)
        recorded = sum(row.judgement.spent.calls for row in ledger.rows())

    assert (len(moody.usable), moody.repeated) == (PAIRS, 0)
    assert len(server.seen) == paid == recorded
    assert orders(again) == calm(seed, photos, tmp_path / "calm.sqlite")


@pytest.mark.long
@pytest.mark.parametrize(("kills", "seed"), [(3, 2), pytest.param(20, 1, marks=pytest.mark.slow)])
def test_runs_that_are_killed_lose_only_what_was_under_way(kills: int, seed: int, photos: Path, tmp_path: Path) -> None:
    place, moody, chance = tmp_path / "ledger.sqlite", Moody(kills, trouble=0.4), random.Random(seed)
    with Double(then=moody) as server:
        for _ in range(kills):
            before, moody.trouble = len(server.seen), chance.choice([0.0, 0.4, 0.7])
            process = subprocess.Popen([sys.executable, "-c", PROGRAM, server.url, str(place), str(photos)])
            wanted = before + chance.randint(1, max(2, PAIRS // kills))
            while len(server.seen) < wanted and process.poll() is None:
                time.sleep(0.001)
            process.kill()
            process.communicate()
        moody.trouble = 0.4
        with Judgements(place) as ledger:
            finished(server, ledger, photos)
            paid = len(server.seen)
            again = look(server.url, ledger, photos)

    assert len(moody.usable) == PAIRS and moody.repeated <= kills * WORKERS and len(server.seen) == paid
    assert orders(again) == calm(kills, photos, tmp_path / "calm.sqlite")
