"""What is Anthropic's own among the judges behind endpoints; what both vendors share is tried in `test_openai`."""

from __future__ import annotations

from pathlib import Path

import pydantic
import pytest

from eyespot.llms import text_message
from tests.worlds.judging import judge_of, only_answer
from tests.worlds.servers import HANG, Double, Response, Seen, error, message


@pytest.mark.parametrize(("text", "score"), [("7", 0.7), ("10/10", 1.0), ("I give it a 0.", 0.0)])
def test_a_grade_from_0_to_10_is_the_score(text: str, score: float, pictures: list[Path]) -> None:
    with Double(then=message(text)) as server:
        answer = only_answer(judge_of(server, "anthropic", key="secret"), pictures[:1])

    assert answer.verdict is not None and answer.verdict.probability == pytest.approx(score)
    assert server.seen[0].path == "/v1/messages" and "secret" in str(server.seen[0].headers)


def no_temperature(seen: Seen) -> Response:
    return error(400, "temperature is not supported") if "temperature" in seen.body else message("7")


@pytest.mark.parametrize(
    "trouble", [error(529), error(429, retry_after="0"), message("7")._replace(cut=True), HANG, no_temperature]
)
def test_a_trouble_that_passes_costs_a_request_and_no_answer(trouble: Response, pictures: list[Path]) -> None:
    hangs = trouble is HANG
    with Double(
        [] if callable(trouble) else [trouble], no_temperature if callable(trouble) else message("7")
    ) as server:
        answer = only_answer(judge_of(server, "anthropic", timeout=0.2 if hangs else 5.0), pictures[:1])

    assert answer.verdict is not None and answer.spent.calls == len(server.seen) == 2


def test_an_answer_without_a_number_is_asked_for_twice_more_and_then_a_failure(pictures: list[Path]) -> None:
    with Double(then=message("it is lovely")) as server:
        answer = only_answer(judge_of(server, "anthropic"), pictures[:1])

    assert "it is lovely" in answer.failure and len(server.seen) == 3


class Count(pydantic.BaseModel):
    herons: int


def test_an_answer_with_a_form_is_asked_for_in_words() -> None:
    with Double(then=message('Here it is: {"herons": 3}')) as server:
        model = judge_of(server, "anthropic").language_model
        found = model.answer([text_message("user", "How many herons?")], Count, max_tokens=99)

    assert found == Count(herons=3)
    assert "response_format" not in server.seen[0].body and '"herons"' in str(server.seen[0].body["messages"])
