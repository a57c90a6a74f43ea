"""The judge that asks Anthropic's models, against a double of their server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pydantic
import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges._endpoint import EndpointJudge
from eyespot.llms import text_message
from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.types import Answer, EyespotError, Pair, Query, UsageError
from tests.worlds.servers import HANG, Double, Response, Seen, error, message

MODEL = "claude-haiku-4-5"  # 1 dollar in, 5 dollars out for a million tokens


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("RGB", (40, 30), (200, 0, 0)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


def judge(server: Double, **options: Any) -> EndpointJudge:
    url = server.url.removesuffix("/v1")
    return rooms.load("judges", f"anthropic:{MODEL}", url=url, **{"first_rest": 0.001, "timeout": 5.0, **options})


def only(judge: EndpointJudge, picture: Path) -> Answer:
    (answer,) = judge.judge([Pair(Query.words("a heron"), "a", picture)])
    return answer


@pytest.mark.parametrize(("text", "score"), [("7", 0.7), ("10/10", 1.0), ("I give it a 0.", 0.0)])
def test_a_grade_from_0_to_10_is_the_score(text: str, score: float, picture: Path) -> None:
    with Double(then=message(text)) as server:
        answer = only(judge(server), picture)

    assert answer.verdict is not None and answer.verdict.probability == pytest.approx(score)


def test_the_system_stands_apart_and_the_picture_is_a_source(picture: Path) -> None:
    with Double(then=message("7")) as server:
        only(judge(server, key="secret"), picture)

    (seen,) = server.seen
    shown, words = seen.body["messages"][0]["content"]
    assert seen.path == "/v1/messages" and "secret" in str(seen.headers)
    assert (shown["source"]["type"], shown["source"]["media_type"]) == ("base64", "image/jpeg")
    assert "a heron" in words["text"] and "photographs" in seen.body["system"]


def test_votes_are_the_share_of_yes_among_answers_that_are_one_of_the_two(picture: Path) -> None:
    words = ["Yes", "No", "Perhaps", "Yes.", "yes"]
    with Double([message(word) for word in words]) as server:
        answer = only(judge(server, answer="votes", votes=5), picture)

    assert answer.verdict is not None and answer.verdict.probability == 0.75
    assert answer.verdict.reason == "3 of 4 votes" and answer.spent.calls == 5


def test_tokens_and_money_are_counted(picture: Path) -> None:
    budget = Budget()
    with Double(then=message("7")) as server:
        answer = only(judge(server, budget=budget), picture)

    assert answer.spent == budget.spent == (1, 100, 2, pytest.approx(110e-6))


def test_a_refusal_is_a_verdict_of_no_and_counted_as_refused(picture: Path) -> None:
    with Double(then=message("", "refusal")) as server:
        answer = only(judge(server), picture)

    assert answer.refused and answer.verdict is not None and answer.verdict.probability == 0


@pytest.mark.parametrize("trouble", [error(529), error(429, retry_after="0"), message("7")._replace(cut=True), HANG])
def test_a_trouble_that_passes_costs_a_request_and_no_answer(trouble: Response, picture: Path) -> None:
    with Double([trouble], then=message("7")) as server:
        answer = only(judge(server, timeout=0.2 if trouble.hang else 5.0), picture)

    assert answer.verdict is not None and answer.spent.calls == len(server.seen) == 2


def test_an_answer_without_a_number_is_asked_for_twice_more_and_then_a_failure(picture: Path) -> None:
    with Double(then=message("it is lovely")) as server:
        answer = only(judge(server), picture)

    assert answer.failure == "the model answered 'it is lovely', which is no grade from 0 to 10 that has one reading"
    assert len(server.seen) == 3


def test_a_temperature_that_a_model_does_not_take_is_left_out(picture: Path) -> None:
    def fixed(seen: Seen) -> Response:
        return error(400, "temperature is not supported") if "temperature" in seen.body else message("7")

    with Double(then=fixed) as server:
        answer = only(judge(server), picture)

    assert answer.verdict is not None and answer.spent.calls == 2


def test_no_more_requests_leave_than_the_budget_has(picture: Path) -> None:
    with Double(then=message("Yes")) as server, pytest.raises(BudgetSpent):
        only(judge(server, answer="votes", votes=9, budget=Budget(calls=4)), picture)

    assert len(server.seen) == 4


def test_a_wrong_key_ends_the_run(picture: Path) -> None:
    with Double(then=error(401, "invalid x-api-key")) as server, pytest.raises(EyespotError, match="accept the key"):
        only(judge(server), picture)


class Count(pydantic.BaseModel):
    """How many there are."""

    herons: int


def test_an_answer_with_a_form_is_asked_for_in_words() -> None:
    with Double(then=message('Here it is: {"herons": 3}')) as server:
        found = judge(server).language_model.answer([text_message("user", "How many herons?")], Count, max_tokens=99)

    assert found == Count(herons=3)
    assert "response_format" not in server.seen[0].body and '"herons"' in str(server.seen[0].body["messages"])


def test_without_a_key_one_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="set ANTHROPIC_API_KEY"):
        rooms.load("judges", f"anthropic:{MODEL}")
