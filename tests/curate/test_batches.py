"""Requests in batches and equal draws in one request: what fails, what is refused, what a budget allows."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from eyespot.llms.batches import LeftAtWork
from eyespot.llms.protocols import likely
from eyespot.pipelines import BudgetSpent, Context, CostLimits, Keep, MapStep, Outcome, Record, RunOptions, Step, run
from eyespot.pipelines.prompts import Models, ask_model, prompt_of
from eyespot.pipelines.runner import StepResult
from eyespot.types import EyespotError, Spent
from tests.curate.test_step_budget import WORD, Word
from tests.worlds.batches import CANCELLED, EXPIRED, BatchServer
from tests.worlds.pipelines import source
from tests.worlds.servers import Double, Response, Seen, error


def result_of(folder: Path, server: Double, count: int = 4, draws: int = 1, **how: object) -> StepResult:
    """The step that puts a question, or several equal ones, about each record."""
    vendor = how.pop("vendor", "openai")
    url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
    model = {"use": f"{vendor}:m", "url": url, "attempts": 3, "first_rest": 0.01, "max_tokens": 50}

    def ask(record: Record, context: Context) -> Outcome:
        for draw in range(draws):
            prompt = prompt_of(model, record["id"], Word, draw=draw, _draws=range(draws) if draws > 1 else ())
            ask_model(context, prompt, Word)
        return Keep(record)

    options = RunOptions(client=Models(), **{"batch": True, **how})  # type: ignore[arg-type]
    return run([source(count), Step("answered", MapStep(ask))], folder, options)[-1]


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
        result = result_of(tmp_path, server, vendor=vendor)

    (dropped,) = (result.folder / "dropped.jsonl").read_text().splitlines()
    assert result.counts.kept == 3 and reason in dropped
    assert sorted(batches.sent.values()) == [1, 1, 1, 3]
    assert result.cost.spent == Spent(6, 300, 3, 0.0)


def test_a_batch_that_the_server_does_not_begin_ends_the_run_and_costs_nothing(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD, failing="the token limit of this organization is reached")
    with Double(offers=batches) as server:
        with pytest.raises(EyespotError, match="the token limit of this organization"):
            result_of(tmp_path, server)
        batches.failing = ""
        assert result_of(tmp_path, server).cost.spent == Spent(4, 400, 4, 0.0)


def test_who_leaves_is_told_that_batches_go_on(tmp_path: Path) -> None:
    class Left(BatchServer):
        def _call(self, seen: Seen) -> Response:
            if self.batches and not seen.body and not self.sent:
                os.kill(os.getpid(), signal.SIGINT)
            return super()._call(seen)

    batches = Left(lambda _seen: WORD)
    with Double(offers=batches) as server:
        with pytest.raises(LeftAtWork, match="4 requests are at work in batches") as left:
            result_of(tmp_path, server)
        server.offers = rest = BatchServer(batches.act, files=batches.files, batches=batches.batches)
        assert left.value.exit_code == 130
        assert result_of(tmp_path, server).cost.spent.calls == batches.sent.total() + rest.sent.total() == 4
        assert len(rest.batches) == 1


def test_no_batch_may_cost_more_than_the_budget(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD)
    with Double(offers=batches) as server, pytest.raises(BudgetSpent):
        result_of(tmp_path, server, count=20, limits=CostLimits(tokens=1000))

    first = next(file for file in batches.files if b"custom_id" in file)
    reserved = [likely(json.loads(row)["body"], None) for row in first.splitlines()]
    assert 1 < len(reserved) < 20 and sum(one.tokens for one in reserved) <= 1000
    assert len(reserved) < batches.sent.total() <= 1000 // 101


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
        result = result_of(tmp_path, server, count=1, draws=3, batch=batch)

    assert result.counts.kept == 1 and result.cost.spent == Spent(requests, 100 * paid, paid, 0.0)
    assert requests == (batches.sent.total() if batch else len(server.seen))


def test_a_reply_that_is_paid_for_stays_when_the_budget_ends_before_its_repair(tmp_path: Path) -> None:
    long = WORD._replace(data={**WORD.data, "choices": [{"message": {"content": "yes, or perhaps " * 40}}]})
    batches = BatchServer(lambda seen: WORD if len(seen.body["messages"]) > 1 else long)
    with Double(offers=batches) as server:
        with pytest.raises(BudgetSpent):
            result_of(tmp_path, server, count=1, limits=CostLimits(tokens=400))
        assert batches.sent.total() == 1
        result = result_of(tmp_path, server, count=1)

    assert result.counts.kept == 1 and result.cost.spent.calls == batches.sent.total() == 2


def test_a_run_without_batches_answers_what_is_at_work_in_one(tmp_path: Path) -> None:
    batches = BatchServer(lambda _seen: WORD, gone="files")
    with Double(then=lambda _seen: WORD, offers=batches) as server:
        with pytest.raises(EyespotError, match="no longer has this one"):
            result_of(tmp_path, server, count=2, draws=2)
        result = result_of(tmp_path, server, count=2, draws=2, batch=False)

    assert result.counts.kept == 2
