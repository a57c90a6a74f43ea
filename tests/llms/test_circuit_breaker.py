"""A dead server costs a few requests and ends the run; one that comes back, or bears less, is waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from pydantic import BaseModel

from eyespot import llms
from eyespot.judges import ask
from eyespot.ledger.judgements import Judgements
from eyespot.llms.errors import RetryableError, StatusError
from eyespot.llms.prices import own_table, read_prices
from eyespot.types import EyespotError, Judgement, Pair, Spent, Tokens, UsageError
from tests.wording import raises
from tests.worlds.judging import draw_colours, judge_of, number_of, pairs_of
from tests.worlds.servers import HANG, YES, Double, Response, Seen, chat, error

COUNT = 40
EMPTY = chat("")._replace(data={})
DEAD = [error(500, "gone"), error(503), error(429, Retry_After="0"), YES._replace(cut=True), HANG, EMPTY]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    return pairs_of(draw_colours(tmp_path_factory.mktemp("photos"), COUNT))


def judged(server: Double, pairs: list[Pair], ledger: Judgements, **options: Any) -> list[Judgement]:
    return list(ask(judge_of(server, **options), pairs, ledger))


def dies(after: int, dead: Response) -> Callable[[Seen], Response]:
    lock, answers = Lock(), iter([YES] * after)

    def answer(seen: Seen) -> Response:
        with lock:
            return next(answers, dead)

    return answer


@pytest.mark.parametrize(("after", "workers"), [(0, 8), (15, 3)])
@pytest.mark.parametrize("dead", DEAD, ids=["500", "503", "429", "cut", "silent", "no message"])
def test_a_dead_server_costs_at_most_three_requests_a_worker(
    after: int, dead: Response, workers: int, pairs: list[Pair], ledger: Judgements
) -> None:
    with Double(then=dies(after, dead)) as server:
        with pytest.raises(llms.ServerDown, match="in a row"):
            judged(server, pairs, ledger, workers=workers, timeout=0.1 if dead.hang else 60.0)
        wasted = len(server.seen) - after
        verdicts = sum(row.judgement.verdict is not None for row in ledger.rows())
        server.then = YES
        judged(server, pairs, ledger, workers=workers)

    assert wasted <= 3 * workers and (verdicts == after or dead.hang)  # a slow answer may count as lost
    assert len(server.seen) == wasted + after + COUNT - verdicts  # what was answered before is not asked again


def test_a_server_that_comes_back_is_waited_for(pairs: list[Pair], ledger: Judgements) -> None:
    with Double([*[YES] * 10, *[error(503)] * 12]) as server:
        judgements = judged(server, pairs, ledger)

    assert all(judgement.verdict is not None for judgement in judgements)
    assert len(server.seen) == COUNT + 12


def test_workers_become_as_many_as_the_server_bears(pairs: list[Pair], ledger: Judgements) -> None:
    """Which takes two requests at once and turns others away."""
    lock, busy, turned_away = Lock(), [0], [0]

    def narrow(seen: Seen) -> Response:
        with lock:
            busy[0] += 1
            free = busy[0] <= 2
            turned_away[0] += not free
        if free:
            time.sleep(0.01)
        with lock:
            busy[0] -= 1
        return YES if free else error(429)

    with Double(then=narrow) as server:
        judgements = judged(server, pairs, ledger, timeout=30.0, attempts=60)  # whoever is turned away asks again

    assert all(judgement.verdict is not None for judgement in judgements)
    assert turned_away[0] < COUNT


def fails(breaker: llms.CircuitBreaker, reason: BaseException) -> None:
    with breaker.request("here"):
        raise reason


NO = RetryableError("no")


def test_a_run_that_is_stopped_wakes_those_who_wait() -> None:
    """The clock stands still: after two failures nobody would be let through again."""
    sleep = llms.CancellableSleep()
    breaker = llms.CircuitBreaker(llms.RetryPolicy(attempts=1), sleep, lambda: 0.0)
    for _ in range(2):
        with pytest.raises(RetryableError):
            fails(breaker, NO)
    sleep.cancel()

    with pytest.raises(llms.Trouble):
        fails(breaker, NO)


def test_a_server_that_was_down_is_tried_again_once_after_a_rest() -> None:
    now = [0.0]
    breaker = llms.CircuitBreaker(llms.RetryPolicy(attempts=1), lambda _: None, lambda: now[0])
    for _ in range(3):
        now[0] += 1  # more than it rests
        with pytest.raises(RetryableError):
            fails(breaker, NO)
    for expected, seconds in ((llms.ServerDown, 1), (RetryableError, 100), (llms.ServerDown, 1)):
        now[0] += seconds
        with pytest.raises(expected):
            fails(breaker, NO)


@pytest.mark.parametrize(
    ("between", "last"),
    [
        (KeyboardInterrupt(), llms.ServerDown),
        (llms.BudgetSpent("not sent"), llms.ServerDown),
        (StatusError(400, "bad request"), RetryableError),
    ],
)
def test_only_an_answer_ends_a_row_of_failures(between: BaseException, last: type[EyespotError]) -> None:
    now = [0.0]
    breaker = llms.CircuitBreaker(llms.RetryPolicy(attempts=1), lambda _: None, lambda: now[0])

    for raised, expected in ((NO, type(NO)), (NO, type(NO)), (between, type(between)), (NO, type(NO)), (NO, last)):
        now[0] += 1  # more than it rests
        with pytest.raises(expected):
            fails(breaker, raised)


@pytest.mark.parametrize("workers", [1, 8])
def test_pictures_that_a_server_never_takes_end_no_later_run(
    pairs: list[Pair], ledger: Judgements, workers: int
) -> None:
    """llama.cpp answers 500 for such pictures; a run that is left with them alone looks like one of a dead server."""
    bad = [3, 4, 20, 30]

    def picky(seen: Seen) -> Response:
        return error(500, "cannot see") if number_of(seen) in bad else YES

    with Double(then=picky) as server:
        for _ in range(2 if workers == 1 else 1):
            with suppress(EyespotError):
                judged(server, pairs, ledger, workers=workers)
        before = len(server.seen)
        again = judged(server, pairs, ledger, workers=workers)

    failed = sorted(judgement.image for judgement in again if judgement.verdict is None)
    assert failed == [pairs[number].image for number in bad] and len(again) == COUNT
    assert 0 < len(server.seen) - before <= 6 * len(bad)


# -- language models load by themselves, by their names, and cost what their budget allows -----------------------


class Frog(BaseModel):
    colour: str


def test_half_a_character_in_an_answer_is_sent_back_as_a_question_mark() -> None:
    """Models cut pairs of surrogates in two; UTF-8, and so a request, cannot hold the half."""
    with Double([chat('{"colour": "blue \ud83d"}')], then=chat('{"colour": "blue"}')) as server:
        model = llms.load("openai:tiny", url=server.url)
        answer = model.answer([llms.text_message("user", "?")], Frog)

    assert answer.colour == "blue" and "blue ?" in server.seen[1].body["messages"][-2]["content"]


def test_a_model_of_a_vendor_has_its_price() -> None:
    model = llms.load("openai:gpt-4o-mini", key="k")

    assert model.name == "openai:gpt-4o-mini" and not model.free and model.price is not None


# -- prices ------------------------------------------------------------------------------------------------------------


MINE = '["mine-1"]\ninput = 3\noutput = 15\ndate = 2026-11-20\n'


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "eyespot").mkdir(parents=True)
    return tmp_path / "config" / "eyespot"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "p.toml").write_text(MINE)
    return tmp_path / "p.toml"


def test_a_million_tokens_in_and_a_fifth_of_one_out(table: Path) -> None:
    price = read_prices(table).of("mine-1")

    assert price is not None and price.of(1_000_000, 200_000) == pytest.approx(3 + 3)
    assert price.of(1_000_000, 0, cached=400_000) == pytest.approx(3)  # no price of its own
    assert price._replace(cached=0.3).of(1_000_000, 0, cached=400_000) == pytest.approx(1.8 + 0.12)
    assert price._replace(cached=0.3, batch=0.5).in_batch.of(1_000_000, 0, cached=400_000) == pytest.approx(1.5)
    claude = read_prices().of("claude-sonnet-4-5")
    assert claude is not None and claude.in_batch.of(1_000_000, 0, cached=1_000_000) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("money", "shown"),
    [(0, "$0.00"), (0.0021234, "$0.0021"), (0.000045, "$0.000045"), (0.01, "$0.01"), (1234.5, "$1,234.50")],
)
def test_money_below_a_cent_is_shown_with_its_digits(money: float, shown: str) -> None:
    assert Spent(money=money).dollars == shown


@pytest.mark.parametrize("name", ["gpt-4o-2024-08-06", "gpt-4o-latest", "gpt-4o-20240806"])
def test_a_name_that_goes_on_with_a_date_costs_the_same(name: str) -> None:
    """And every price that we ship is dated and positive."""
    prices = read_prices()

    assert prices.of(name) == prices.of("gpt-4o") and prices.of("gpt-4o-gigantic") is None
    assert [name for name, price in prices.models.items() if not (price.date and price.output > 0)] == []


def test_the_last_table_has_the_last_word(config: Path, tmp_path: Path) -> None:
    own_table().write_text(MINE.replace("mine-1", "gpt-4o") + MINE)
    (tmp_path / "given.toml").write_text(MINE.replace("= 3", "= 7"))

    prices = read_prices(tmp_path / "given.toml")

    assert (prices.models["gpt-4o"].input, prices.models["mine-1"].input) == (3, 7)
    assert (prices.models["mine-1"].source, prices.models["mine-1"].date) == (tmp_path / "given.toml", "2026-11-20")


@pytest.mark.parametrize(
    "text",
    [
        None,
        "gpt = 3",
        '["m"]\ninput = 1\n',
        MINE + "outptu = 3",
        MINE.replace("15", "-1"),
        MINE.replace("15", "nan"),
        MINE.replace("15", '"free"'),
        "[",
    ],
    ids=range(8),
)
def test_what_is_wrong_with_a_table_is_said(table: Path, text: str | None) -> None:
    table.write_text(text or "")
    if text is None:
        table.unlink()

    with raises(UsageError):
        read_prices(table)


def test_what_a_thousand_pictures_would_come_to(table: Path) -> None:
    spent = Tokens(picture=900, words=100, answer=2).cost(1000, read_prices(table).of("mine-1"))

    assert spent == Spent(1000, 1_000_000, 2000, pytest.approx(3 + 0.03))
    assert Tokens().cost(2, None) == Spent(2, 2 * (765 + 80), 2, 0.0)
