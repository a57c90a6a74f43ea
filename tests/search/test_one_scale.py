"""Servers that give log-probabilities now and then: nothing is paid for twice, and a ranking stands on one scale."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eyespot.ledger.judgements import Judgements
from eyespot.search.calibrated import Calibrated
from eyespot.search.calibration.accuracy import Accuracy
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Query, Run
from tests.lazy_import import requires
from tests.wording import check_wording
from tests.worlds.judging import CHAT, HERON, draw_colours, judge_of, number_of, run_of
from tests.worlds.servers import Double, Response, Seen, chat

pytestmark = requires("tenacity")

COUNT = 12
SHARES = [0.6, 0.1, 0.9, 0.4, 0.7, 0.2, 0.8, 0.3, 0.55, 0.05, 0.95, 0.45]  # of Yes, by the picture's number


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_colours(tmp_path_factory.mktemp("photos"), COUNT)


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


def order(run: Run) -> list[int]:
    return [int(hit.image) for hit in run["q"]]


def expected(bare: set[int]) -> list[int]:
    """On words where most answers are words: yes before no; else by probability, with the words behind."""
    if len(bare) > COUNT - len(bare):
        return sorted(range(COUNT), key=lambda number: SHARES[number] < 0.5)
    rest = [number for number in range(COUNT) if number not in bare]
    return [*sorted(rest, key=lambda number: -SHARES[number]), *sorted(bare)]


@pytest.mark.parametrize("workers", [1, 8])
@pytest.mark.parametrize("bare", [set(), {0}, {3, 10}, set(range(1, 7)), set(range(1, 9)), set(range(COUNT))], ids=str)
def test_the_order_depends_on_the_answers_alone_and_nothing_is_paid_for_twice(
    bare: set[int], workers: int, server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed(bare, seed=workers)
    for _ in range(2):
        assert order(stage(server, ledger, workers=workers)([HERON], run_of(photos))) == expected(bare)
        assert len(server.asked(CHAT)) == COUNT


def test_hits_on_another_scale_are_counted_and_words_for_all_are_the_way_out(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({3, 10})

    run = stage(server, ledger)([HERON], run_of(photos))

    assert run.header["verdicts"]["unscored"] == 2
    check_wording(*run.notes)
    again = stage(server, ledger, answer="words")([HERON], run_of(photos))
    assert order(again) == sorted(range(COUNT), key=lambda number: SHARES[number] < 0.5)
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
    full, bare = mixed(set()), mixed(set(range(COUNT)))
    server.then = lambda seen: (full if "a heron" in str(seen.body) else bare)(seen)

    made = stage(server, ledger)([HERON, Query.words("an owl", "p")], run_of(photos, "q", "p"))

    assert order(made) == expected(set())
    assert [int(hit.image) for hit in made["p"]] == expected(set(range(COUNT)))


def test_a_calibration_stands_on_one_scale_over_its_rounds(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({1, 2, 3})

    measured = Accuracy(0.95, 0.9, 100, 100)
    made = Calibrated(stage(server, ledger), COUNT, measured)(HERON, run_of(photos))
    again = Calibrated(stage(server, ledger), COUNT, measured)(HERON, run_of(photos))

    assert len(made.curve.sample.ranks) == COUNT - 3 == len(again.curve.sample.ranks)
    assert made.probability == again.probability and len(server.asked(CHAT)) == COUNT
