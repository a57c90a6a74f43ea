"""The budget: what leaves this machine never passes a limit, whoever asks at once, in batches, or is cut off."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from eyespot.llms.batches import SCHEMA, LeftAtWork
from eyespot.llms.protocols import likely
from eyespot.pipelines import (
    BudgetSpent,
    CallMeter,
    Context,
    CostLimits,
    Keep,
    MapStep,
    NoAnswer,
    Outcome,
    Prompt,
    Record,
    RunOptions,
    Spent,
    Step,
    run,
)
from eyespot.pipelines.prompts import AnswerForm, Models, ask_model, prompt_of
from eyespot.pipelines.runner import StepResult
from eyespot.pipelines.work_db import FILE, PromptMeter, ReservedBudget, StepKey, WorkDB
from eyespot.types import EyespotError, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.batches import CANCELLED, EXPIRED, BatchServer
from tests.worlds.pipelines import ask_step, odd_ones_go, source
from tests.worlds.servers import Double, Response, Seen, chat, error

STEP = StepKey("asked", "0")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[WorkDB]:
    with WorkDB(tmp_path) as opened:
        yield opened


def take(budget: ReservedBudget) -> PromptMeter:
    """A request that is under way."""
    meter = PromptMeter(budget, budget.expects)
    meter.take()
    return meter


def test_what_is_under_way_counts_with_what_was_expected(memory: WorkDB) -> None:
    budget = ReservedBudget(CostLimits(money=1.0), memory, STEP, Spent(1, 10, 5, 0.5))
    meter = take(budget)
    assert memory.cost().spent == Spent(1, 10, 5, 0.5)
    meter.pay(7, 2, 0.25)
    assert memory.cost().spent == Spent(1, 7, 2, 0.25) == memory.cost(STEP).spent


def test_a_request_may_cost_as_much_as_the_dearest_before_it(memory: WorkDB) -> None:
    budget = ReservedBudget(CostLimits(money=10.0), memory, STEP, Spent(1, 1, 1, 0.5))
    for tokens_in, tokens_out, money in ((30, 2, 2.0), (4, 50, 1.0)):
        take(budget).pay(tokens_in, tokens_out, money)
    take(budget)
    assert memory.cost().spent == Spent(3, 64, 102, 5.0)  # 34 + 30, 52 + 50, 3 + 2


def test_what_a_kill_cuts_off_stays_counted_with_the_dearest_price(tmp_path: Path) -> None:
    with WorkDB(tmp_path) as memory:
        budget = ReservedBudget(CostLimits(money=1.0), memory, STEP)
        take(budget).pay(10, 10, 0.4)
        take(budget)  # and nothing more is heard of it

    with WorkDB(tmp_path) as memory, raises(BudgetSpent):
        take(ReservedBudget(CostLimits(money=1.0), memory, STEP))


def test_who_finds_no_room_waits_for_what_may_come_out_cheaper(memory: WorkDB) -> None:
    """Two are under way at 1.0 each of 2.5, a third waits; one costs 0.25, so there is room."""
    budget = ReservedBudget(CostLimits(money=2.5), memory, STEP, Spent(1, 0, 0, 1.0))
    for _ in range(2):
        take(budget).pay(1, 1, 0.0)
    first, _second = take(budget), take(budget)
    third = threading.Thread(target=take, args=(budget,))
    third.start()

    first.pay(1, 1, 0.25)
    third.join(60)

    assert not third.is_alive() and memory.cost().spent.money == 2.25


def test_nobody_waits_for_what_was_given_up(memory: WorkDB) -> None:
    budget = ReservedBudget(CostLimits(money=1.5), memory, STEP, Spent(1, 0, 0, 1.0))
    lost = take(budget)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(take, budget)
        lost.lose()

        assert isinstance(waiting.exception(60), BudgetSpent) and memory.cost().spent.money == 1.0


@pytest.mark.parametrize("limit", ["calls", "tokens", "money"])
@pytest.mark.parametrize("value", [math.nan, -1])
def test_a_limit_that_none_can_reach_is_refused(limit: str, value: float) -> None:
    with raises(UsageError):
        CostLimits(**{limit: value})


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.integers(0, 100), st.integers(1, 8))
def test_the_limit_holds_whoever_asks_at_once(costs: list[int], limit: int, workers: int) -> None:
    """20 tokens are expected and none takes more; some are never paid for, and cost all the same."""
    spent = list[int]()

    def ask(cost: int) -> None:
        with budget.opened() as till:
            till.take()
            spent.append(cost)
            if cost % 3:
                till.pay(cost, 0, 0.0)

    with TemporaryDirectory() as folder, WorkDB(Path(folder)) as memory, ThreadPoolExecutor(workers) as pool:
        budget = ReservedBudget(CostLimits(tokens=limit), memory, STEP, Spent(1, 20, 0, 0.0))
        stopped = [type(one.exception()) for one in [pool.submit(ask, cost) for cost in costs]]

    assert sum(spent) <= limit and set(stopped) <= {BudgetSpent, type(None)}
    assert len(spent) == len(costs) or sum(spent) + 20 > limit - 20 * sum(not cost % 3 for cost in spent)


@pytest.mark.parametrize("limits", [CostLimits(money=0.03), CostLimits(tokens=3000)])
def test_eight_workers_of_a_step_stay_within_money_and_tokens(tmp_path: Path, limits: CostLimits) -> None:
    """Each costs a cent and 1,000 tokens, which nobody expects. No more are under way than were paid for."""
    under_way, paid, most = list[str](), list[str](), list[tuple[int, int]]()

    def client(prompt: Any, till: Any) -> dict[str, str]:
        till.take()
        under_way.append(prompt["words"])
        most.append((len(under_way), max(1, len(paid))))
        threading.Event().wait(0.02)  # as an answer takes its time
        under_way.remove(prompt["words"])
        paid.append(prompt["words"])
        till.pay(800, 200, 0.01)
        return {}

    def ask(record: Record, context: Context) -> Outcome:
        context.ask({"words": record["id"]})
        return Keep(record)

    with pytest.raises(BudgetSpent):
        run([source(40), Step("asked", MapStep(ask, workers=8))], tmp_path, RunOptions(limits=limits, client=client))

    assert len(most) == 3 and all(count <= allowed for count, allowed in most)


class Word(AnswerForm):
    """An answer of one word."""

    word: str


WORD = chat('{"word": "yes"}')  # 101 tokens


def result_of(
    folder: Path, server: Double, count: int = 4, *, draws: int = 1, vendor: str = "openai", **how: Any
) -> StepResult:
    """The step that puts a question, or several equal ones, about each record, one after the other."""
    url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
    model = {"use": f"{vendor}:m", "url": url, "attempts": 3, "first_rest": 0.01, **how.pop("model", {})}

    def ask(record: Record, context: Context) -> Outcome:
        for draw in range(draws):
            prompt = prompt_of(model, record["id"], Word, draw=draw, _draws=range(draws) if draws > 1 else ())
            ask_model(context, prompt, Word)
        return Keep(record)

    return run([source(count), Step("asked", MapStep(ask))], folder, RunOptions(client=Models(), **how))[-1]


@pytest.mark.parametrize("status", [429, 503])
def test_what_is_turned_away_costs_a_call_and_no_tokens(tmp_path: Path, status: int) -> None:
    with Double([error(status), error(status)], then=WORD) as server:
        spent = result_of(tmp_path, server, limits=CostLimits(tokens=10_000)).cost.spent
    assert spent == Spent(6, 400, 4, 0.0)


@pytest.mark.parametrize("lost", [Response(200, WORD.data, cut=True), error(500)])
def test_what_is_lost_on_the_way_counts_as_it_may_be_paid(tmp_path: Path, lost: Response) -> None:
    with Double([WORD, lost], then=WORD) as server:
        spent = result_of(tmp_path, server, limits=CostLimits(tokens=10_000)).cost.spent
    assert spent.calls == 5 and spent.tokens_in + spent.tokens_out > 4 * 101 + 400  # an answer may have 400


def test_a_server_sees_no_request_that_the_tokens_do_not_allow(tmp_path: Path) -> None:
    """101 tokens each, some 500 put aside for the next: of 1,000 tokens five requests leave."""
    with Double(then=WORD) as server, pytest.raises(BudgetSpent):
        result_of(tmp_path, server, 20, limits=CostLimits(tokens=1000))
    assert 3 <= len(server.seen) <= 5


def test_a_limit_of_the_answer_is_what_it_may_cost(tmp_path: Path) -> None:
    with Double(then=WORD) as server, pytest.raises(BudgetSpent):
        result_of(tmp_path, server, 1, limits=CostLimits(tokens=4000), model={"max_tokens": 5000})
    assert server.seen == []


def test_money_cannot_hold_a_model_whose_price_nobody_knows_and_one_of_this_machine_is_free() -> None:
    theirs = {"theirs": {"use": "openai:nobodys-model", "url": "https://models.example.org/v1"}}
    Models().check(theirs, CostLimits(tokens=1000))
    Models().check({"ours": {"use": "openai:local", "url": "http://localhost:1/v1"}}, CostLimits(money=1.0))
    with raises(UsageError):
        Models().check(theirs, CostLimits(money=1.0))


def test_what_had_no_answer_is_on_the_disk_before_the_next_is_asked(tmp_path: Path) -> None:
    """Or a kill would have it asked, and paid for, once more."""
    counts: list[int] = []

    def silent(_prompt: Prompt, till: CallMeter) -> dict[str, str]:
        with closing(sqlite3.connect(tmp_path / FILE)) as sql:
            counts.append(sql.execute("SELECT count(*) FROM outcomes WHERE failed").fetchone()[0])
        till.take()
        raise NoAnswer("not a word")

    run([source(12), odd_ones_go(), ask_step(workers=1)], tmp_path, RunOptions(client=silent))

    assert counts == [0, 1, 2, 3, 4, 5]


# -- requests in batches, and equal draws in one request: what fails, what is refused, what a budget allows ------------


def batched(folder: Path, server: Double, **how: Any) -> StepResult:
    return result_of(folder, server, **{"batch": True, "model": {"max_tokens": 50}, **how})


def anthropic(_seen: Seen) -> Response:
    content = [{"type": "text", "text": '{"word": "yes"}'}]
    usage = {"input_tokens": 100, "output_tokens": 1}
    return Response(data={"content": content, "stop_reason": "end_turn", "usage": usage})


@pytest.mark.parametrize(
    ("vendor", "ended", "reason"),
    [
        ("openai", EXPIRED, "executed in time"),
        ("openai", CANCELLED, "cancelled with its batch"),
        ("anthropic", EXPIRED, "expired"),
        ("anthropic", CANCELLED, "canceled"),
    ],
)
def test_a_request_that_a_batch_ends_without_is_sent_again_and_fails_with_its_reason(
    tmp_path: Path, vendor: str, ended: Response, reason: str
) -> None:
    answer = anthropic if vendor == "anthropic" else lambda _seen: WORD
    batches = BatchServer(lambda seen: ended if "n1" in str(seen.body["messages"]) else answer(seen))
    with Double(offers=batches) as server:
        result = batched(tmp_path, server, vendor=vendor)

    (dropped,) = (result.folder / "dropped.jsonl").read_text().splitlines()
    assert result.counts.kept == 3 and reason in dropped
    assert sorted(batches.sent.values()) == [1, 1, 1, 3]
    assert result.cost.spent == Spent(6, 300, 3, 0.0)


def test_a_batch_that_the_server_does_not_begin_ends_the_run_and_costs_nothing(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD, failing="the token limit of this organization is reached")
    with Double(offers=batches) as server:
        with pytest.raises(EyespotError, match="the token limit of this organization"):
            batched(tmp_path, server)
        batches.failing = ""
        assert batched(tmp_path, server).cost.spent == Spent(4, 400, 4, 0.0)


def test_who_leaves_is_told_that_batches_go_on(tmp_path: Path) -> None:
    class Left(BatchServer):
        def _call(self, seen: Seen) -> Response:
            if self.batches and not seen.body and not self.sent:
                os.kill(os.getpid(), signal.SIGINT)
            return super()._call(seen)

    batches = Left(lambda _seen: WORD)
    with Double(offers=batches) as server:
        with pytest.raises(LeftAtWork, match="4 requests are at work in batches") as left:
            batched(tmp_path, server)
        server.offers = rest = BatchServer(batches.act, files=batches.files, batches=batches.batches)
        assert left.value.exit_code == 130
        assert batched(tmp_path, server).cost.spent.calls == batches.sent.total() + rest.sent.total() == 4
        assert len(rest.batches) == 1


def test_no_batch_may_cost_more_than_the_budget(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD)
    with Double(offers=batches) as server, pytest.raises(BudgetSpent):
        batched(tmp_path, server, count=20, limits=CostLimits(tokens=1000))

    first = next(file for file in batches.files if b"custom_id" in file)
    reserved = [likely(json.loads(row)["body"], None) for row in first.splitlines()]
    assert 1 < len(reserved) < 20 and sum(one.tokens for one in reserved) <= 1000
    assert len(reserved) < batches.sent.total() <= 1000 // 101


def test_the_results_of_a_large_batch_are_stored_without_reading_all_others() -> None:
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.executescript(SCHEMA)
        plan = sql.execute("EXPLAIN QUERY PLAN SELECT number FROM pending_requests WHERE sharing = ?", (1,)).fetchall()
    assert "draws_of_request" in str(plan)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("way", "requests", "paid"), [("takes", 1, 1), ("ignores", 3, 3), ("refuses", 4, 3)])
def test_equal_draws_are_one_request_where_the_server_takes_it(
    tmp_path: Path, batch: bool, way: str, requests: int, paid: int
) -> None:
    def act(seen: Seen) -> Response:
        if way == "refuses" and "n" in seen.body:
            return error(400, "Unknown parameter: 'n'.")
        choices = WORD.data["choices"] * (seen.body.get("n", 1) if way == "takes" else 1)
        return WORD._replace(data={**WORD.data, "choices": choices})

    batches = BatchServer(act)
    with Double(then=act, offers=batches) as server:
        result = batched(tmp_path, server, count=1, draws=3, batch=batch)

    assert result.counts.kept == 1 and result.cost.spent == Spent(requests, 100 * paid, paid, 0.0)
    assert requests == (batches.sent.total() if batch else len(server.seen))


def test_a_reply_that_is_paid_for_stays_when_the_budget_ends_before_its_repair(tmp_path: Path) -> None:
    long = WORD._replace(data={**WORD.data, "choices": [{"message": {"content": "yes, or perhaps " * 40}}]})
    batches = BatchServer(lambda seen: WORD if len(seen.body["messages"]) > 1 else long)
    with Double(offers=batches) as server:
        with pytest.raises(BudgetSpent):
            batched(tmp_path, server, count=1, limits=CostLimits(tokens=400))
        assert batches.sent.total() == 1
        result = batched(tmp_path, server, count=1)

    assert result.counts.kept == 1 and result.cost.spent.calls == batches.sent.total() == 2


def test_a_run_without_batches_answers_what_is_at_work_in_one(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD, gone="files")
    with Double(then=lambda _seen: WORD, offers=batches) as server:
        with pytest.raises(EyespotError, match="no longer has this one"):
            batched(tmp_path, server, count=2, draws=2)
        result = batched(tmp_path, server, count=2, draws=2, batch=False)

    assert result.counts.kept == 2
