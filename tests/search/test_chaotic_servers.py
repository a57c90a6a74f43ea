"""Servers of many moods: no usable answer is paid for twice, and a ranking stands on one scale.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from eyespot import rooms
from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import Budget
from eyespot.llms.errors import ServerDown
from eyespot.search.calibrated import Calibrated
from eyespot.search.calibration.accuracy import Accuracy
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Query, Run
from tests.wording import check_wording
from tests.worlds.judging import CHAT, HERON, draw_colours, judge_of, number_of, run_of
from tests.worlds.servers import HANG, YES, Double, Response, Seen, chat, error

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
    look(url, judgements, sorted(Path(photos).iterdir()))
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
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_colours(tmp_path_factory.mktemp("photos"), PICTURES)


def look(url: str, ledger: Judgements, photos: list[Path], calls: int | None = None, workers: int = WORKERS) -> Run:
    run = run_of(photos, *(query.id for query in QUERIES))
    how = {"url": url, "workers": workers, "first_rest": 0.001, "timeout": 0.5, "budget": Budget(calls=calls)}
    return JudgeRerank(rooms.load("judges", "openai:tiny", **how), ledger)(QUERIES, run)


def calm(seed: int, photos: list[Path], place: Path) -> dict[str, list[int]]:
    """The rankings of the same answers without any trouble, one at a time."""
    with Double(then=Moody(seed)) as server, Judgements(place) as ledger:
        return orders(look(server.url, ledger, photos, workers=1))


def orders(run: Run) -> dict[str, list[int]]:
    return {query: [int(hit.image) for hit in hits] for query, hits in run.items()}


def finished(server: Double, ledger: Judgements, photos: list[Path], most: int = 40) -> Run:
    """Runs without a budget until every pair has its verdict."""
    for _ in range(most):
        verdicts = look_or_end(server.url, ledger, photos)
        if verdicts is not None and not verdicts["failed"]:
            return look(server.url, ledger, photos)
    raise AssertionError(verdicts)


def look_or_end(url: str, ledger: Judgements, photos: list[Path], calls: int | None = None) -> dict[str, Any] | None:
    """The counts of a run; None where the server failed so often in a row that the run ended."""
    try:
        verdicts: dict[str, Any] = look(url, ledger, photos, calls).header["verdicts"]
    except ServerDown:
        return None
    return verdicts


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))])
def test_runs_that_budgets_cut_pay_for_no_answer_twice(seed: int, photos: list[Path], tmp_path: Path) -> None:
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
def test_runs_that_are_killed_lose_only_what_was_under_way(
    kills: int, seed: int, photos: list[Path], tmp_path: Path
) -> None:
    place, moody, chance = tmp_path / "ledger.sqlite", Moody(kills, trouble=0.4), random.Random(seed)
    with Double(then=moody) as server:
        for _ in range(kills):
            before, moody.trouble = len(server.seen), chance.choice([0.0, 0.4, 0.7])
            process = subprocess.Popen([sys.executable, "-c", PROGRAM, server.url, str(place), str(photos[0].parent)])
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


# -- servers that give log-probabilities now and then ------------------------------------------------------------


SHARES = [0.6, 0.1, 0.9, 0.4, 0.7, 0.2, 0.8, 0.3, 0.55, 0.05, 0.95, 0.45]  # of Yes, by the picture's number


@pytest.fixture
def server() -> Iterator[Double]:
    with Double() as double:
        yield double


def mixed(bare: set[int], seed: int | None = None) -> Callable[[Seen], Response]:
    """A server that leaves log-probabilities out of the replies on some pictures, and answers in any order."""
    delays = random.Random(seed)

    def answer(seen: Seen) -> Response:
        number = number_of(seen)
        time.sleep(0 if seed is None else delays.random() / 300)
        share = SHARES[number]
        return chat("Yes" if share >= 0.5 else "No", None if number in bare else {"Yes": share, "No": 1 - share})

    return answer


def stage(server: Double, ledger: Judgements, **options: Any) -> JudgeRerank:
    return JudgeRerank(judge_of(server, **options), ledger)


def expected(bare: set[int]) -> list[int]:
    """On words where most answers are words: yes before no; else by probability, with the words behind."""
    if len(bare) > PICTURES - len(bare):
        return sorted(range(PICTURES), key=lambda number: SHARES[number] < 0.5)
    rest = [number for number in range(PICTURES) if number not in bare]
    return [*sorted(rest, key=lambda number: -SHARES[number]), *sorted(bare)]


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize(
    "bare", [set(), {0}, {3, 10}, set(range(1, 7)), set(range(1, 9)), set(range(PICTURES))], ids=str
)
def test_the_order_depends_on_the_answers_alone_and_nothing_is_paid_for_twice(
    bare: set[int], workers: int, server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed(bare, seed=workers)
    for _ in range(2):
        assert orders(stage(server, ledger, workers=workers)([HERON], run_of(photos))) == {"q": expected(bare)}
        assert len(server.asked(CHAT)) == PICTURES


def test_hits_on_another_scale_are_counted_and_words_for_all_are_the_way_out(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({3, 10})

    run = stage(server, ledger)([HERON], run_of(photos))

    assert run.header["verdicts"]["unscored"] == 2
    check_wording(*run.notes)
    again = stage(server, ledger, answer="words")([HERON], run_of(photos))
    assert orders(again) == {"q": sorted(range(PICTURES), key=lambda number: SHARES[number] < 0.5)}
    assert again.header["verdicts"]["from_ledger"] == 2 and again.header["verdicts"]["unscored"] == 0


def test_a_ranking_of_which_most_is_words_stands_on_words(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed(set(range(1, 9)))
    made = stage(server, ledger)

    looked = made.ask([HERON], run_of(photos))
    run = made.reranked(run_of(photos), looked)

    found = {verdict.probability for photo in photos if (verdict := looked.verdict("q", photo.stem)) is not None}
    assert found == {0.0, 1.0}
    check_wording(*run.notes)


def test_each_ranking_stands_on_its_own_scale(server: Double, photos: list[Path], ledger: Judgements) -> None:
    """Whether another query was asked too changes no order."""
    full, bare = mixed(set()), mixed(set(range(PICTURES)))
    server.then = lambda seen: (full if "a heron" in str(seen.body) else bare)(seen)

    made = stage(server, ledger)([HERON, Query.words("an owl", "p")], run_of(photos, "q", "p"))

    assert orders(made) == {"q": expected(set()), "p": expected(set(range(PICTURES)))}


def test_a_calibration_stands_on_one_scale_over_its_rounds(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({1, 2, 3})

    measured = Accuracy(0.95, 0.9, 100, 100)
    made = Calibrated(stage(server, ledger), PICTURES, measured)(HERON, run_of(photos))
    again = Calibrated(stage(server, ledger), PICTURES, measured)(HERON, run_of(photos))

    assert len(made.curve.sample.ranks) == PICTURES - 3 == len(again.curve.sample.ranks)
    assert made.probability == again.probability and len(server.asked(CHAT)) == PICTURES
