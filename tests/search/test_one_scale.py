"""Servers that give log-probabilities now and then: nothing is paid for twice, and a ranking stands on one scale."""

from __future__ import annotations

import base64
import io
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from eyespot import rooms
from eyespot.ledger.judgements import Judgements
from eyespot.search.calibrated import Calibrated
from eyespot.search.calibration.accuracy import Accuracy
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Query, Run
from tests.examples import examples
from tests.lazy_import import requires
from tests.worlds.servers import Double, Response, Seen, chat, error

pytestmark = requires("openai")

HERON, COUNT = Query.words("a heron", "q"), 12
CHAT = "/v1/chat/completions"
SHARES = [0.6, 0.1, 0.9, 0.4, 0.7, 0.2, 0.8, 0.3, 0.55, 0.05, 0.95, 0.45]  # of Yes, by the picture's number
UNFINISHED = "Could not finish the message because model output limit was reached."


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("photos")
    for number in range(COUNT):
        Image.new("RGB", (16, 16), (20 * number, 0, 0)).save(folder / f"{number:02}.png")
    return sorted(folder.iterdir())


@pytest.fixture
def server() -> Iterator[Double]:
    with Double() as double:
        yield double


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Judgements]:
    with Judgements(tmp_path / "ledger.sqlite") as opened:
        yield opened


def number_of(seen: Seen) -> int:
    """Which picture was shown."""
    url = seen.body["messages"][-1]["content"][0]["image_url"]["url"]
    red, *_ = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).getpixel((8, 8))
    return round(red / 20)


def mixed(bare: set[int], seed: int | None = None) -> Callable[[Seen], Response]:
    """A server that leaves log-probabilities out of the replies on some pictures, and answers in any order."""
    delays = random.Random(seed)

    def answer(seen: Seen) -> Response:
        number = number_of(seen)
        if seed is not None:
            time.sleep(delays.random() / 300)
        share = SHARES[number]
        top = None if number in bare else {"Yes": share, "No": 1 - share}
        return chat("Yes" if share >= 0.5 else "No", top)

    return answer


def run_of(photos: list[Path]) -> Run:
    run = Run.from_orders({"q": [photo.stem for photo in photos]})
    run.facts = {photo.stem: {"id": photo.stem, "path": str(photo)} for photo in photos}
    return run


def stage(server: Double, ledger: Judgements, **options: Any) -> JudgeRerank:
    given = {"first_rest": 0.001, "timeout": 5.0, **options}
    return JudgeRerank(rooms.load("judges", "openai:tiny", url=server.url, **given), ledger)


def order(run: Run) -> list[int]:
    return [int(hit.image) for hit in run["q"]]


def expected(bare: set[int]) -> list[int]:
    """On words where most answers are words: yes before no; else by probability, with the words behind."""
    if len(bare) > COUNT - len(bare):
        return sorted(range(COUNT), key=lambda number: SHARES[number] < 0.5)
    rest = [number for number in range(COUNT) if number not in bare]
    return [*sorted(rest, key=lambda number: -SHARES[number]), *sorted(bare)]


@pytest.mark.long
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bare=st.sets(st.integers(0, COUNT - 1)), seed=st.integers(0, 99))
def test_the_order_depends_on_the_answers_alone_and_nothing_is_paid_for_twice(
    bare: set[int], seed: int, photos: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    orders = []
    for workers in (1, 3, 8):
        place = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
        with Double(then=mixed(bare, seed)) as server, Judgements(place) as ledger:
            orders.append(order(stage(server, ledger, workers=workers)([HERON], run_of(photos))))
            paid = len(server.asked(CHAT))
            orders.append(order(stage(server, ledger, workers=workers)([HERON], run_of(photos))))
            assert (paid, len(server.asked(CHAT))) == (COUNT, COUNT)

    assert orders == [expected(bare)] * len(orders)


def test_a_reply_without_probabilities_costs_its_own_pair_alone(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({3, 10})

    run = stage(server, ledger)([HERON], run_of(photos))

    assert order(run) == expected({3, 10}) and order(run)[-2:] == [3, 10]
    assert len(server.asked(CHAT)) == COUNT and run.header["verdicts"]["unscored"] == 2
    (note,) = run.notes
    assert note == (
        "2 hits were answered on another scale than the rest of their ranking, most often without token "
        "probabilities (03.png, 10.png); they go behind the judged; --judge answer=words asks for all in words"
    )


def test_the_way_out_that_the_note_names_puts_all_in_words(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({3, 10})
    run = stage(server, ledger)([HERON], run_of(photos))
    assert "--judge answer=words" in run.notes[0]

    again = stage(server, ledger, answer="words")([HERON], run_of(photos))

    assert order(again) == sorted(range(COUNT), key=lambda number: SHARES[number] < 0.5)
    assert again.header["verdicts"]["from_ledger"] == 2 and again.header["verdicts"]["unscored"] == 0


def test_a_ranking_of_which_most_is_words_stands_on_words(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed(set(range(1, 9)))
    made = stage(server, ledger)

    looked = made.look([HERON], run_of(photos))
    run = made.reranked(run_of(photos), looked)

    found = {verdict.probability for photo in photos if (verdict := looked.verdict("q", photo.stem)) is not None}
    assert found == {0.0, 1.0} and order(run) == expected(set(range(1, 9)))
    (note,) = run.notes
    assert note == (
        "openai:tiny@localhost gave no token probabilities for 8 of 12 pictures; its words are taken instead: a "
        "verdict is 1 or 0, nothing between"
    )


def test_each_ranking_stands_on_its_own_scale(server: Double, photos: list[Path], ledger: Judgements) -> None:
    """Whether another query was asked too changes no order."""
    run = run_of(photos)
    both = Run({"q": run["q"], "p": run["q"]})
    both.facts, owl = run.facts, Query.words("an owl", "p")
    full = mixed(set())
    bare = mixed(set(range(COUNT)))
    server.then = lambda seen: (full if "a heron" in str(seen.body) else bare)(seen)

    made = stage(server, ledger)([HERON, owl], both)

    assert order(made) == expected(set())
    assert [int(hit.image) for hit in made["p"]] == expected(set(range(COUNT)))


def test_a_server_without_probabilities_costs_one_call_a_picture_and_one_note(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed(set(range(COUNT)))

    run = stage(server, ledger)([HERON], run_of(photos))

    assert len(server.asked(CHAT)) == COUNT and len(server.asked("/v1/systemone")) == 1
    assert len(run.notes) == 1 and "its words are taken instead" in run.notes[0]


@pytest.mark.parametrize("short", [chat("", finish="length"), error(400, UNFINISHED)])
def test_a_model_that_thinks_first_gets_more_tokens_from_then_on(
    short: Response, server: Double, photos: list[Path], ledger: Judgements
) -> None:
    """One token is not enough for a word of it: the first picture is asked twice, the others once."""
    server.then = lambda seen: chat("Yes") if seen.body["max_tokens"] >= 500 else short
    run = stage(server, ledger, answer_tokens=500)([HERON], run_of(photos))

    assert len(server.asked(CHAT)) <= COUNT + 3 and run.header["verdicts"]["failed"] == 0


def test_a_calibration_stands_on_one_scale_over_its_rounds(
    server: Double, photos: list[Path], ledger: Judgements
) -> None:
    server.then = mixed({1, 2, 3})

    measured = Accuracy(0.95, 0.9, 100, 100)
    made = Calibrated(stage(server, ledger), COUNT, measured)(HERON, run_of(photos))
    again = Calibrated(stage(server, ledger), COUNT, measured)(HERON, run_of(photos))

    assert len(made.curve.sample.ranks) == COUNT - 3 == len(again.curve.sample.ranks)
    assert made.probability == again.probability and len(server.asked(CHAT)) == COUNT
