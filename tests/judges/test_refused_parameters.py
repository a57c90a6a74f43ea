"""What models refuse of a request, in the words of real servers: asked again without it, learned once, told once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pydantic
import pytest

from eyespot import rooms
from eyespot.judges._endpoint import request_fields
from eyespot.llms import text_message
from eyespot.types import EyespotError, Query, Reply, Term, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises
from tests.worlds import make_gallery
from tests.worlds.judging import CHAT, judge_of, only_answer, pairs_of
from tests.worlds.servers import YES, Double, Response, Seen, chat, error, message

ASKED = {"max_tokens": 300, "temperature": 0.25, "logprobs": True, "top_logprobs": 20}


def ask_server(server: Double, **options: Any) -> Reply:
    """The reply to one question with all that a server may refuse."""
    return judge_of(server).language_model.chat([text_message("user", "?")], **{**ASKED, **options})


def complaint(status: int, message: str, **facts: Any) -> Response:
    """An error in the form of OpenAI's."""
    return Response(status, {"error": {"message": message, "type": "invalid_request_error", **facts}})


CUT_OFF = complaint(400, "Could not finish the message because max_tokens or model output limit was reached.")


def thinker(seen: Seen) -> Response:
    """Refuses what OpenAI's gpt-5 does, one parameter after the other, in its words."""
    body = seen.body
    if "logprobs" in body:
        return complaint(403, "You are not allowed to request logprobs from this model", param=None, code=None)
    if "temperature" in body:
        words = f"Unsupported value: 'temperature' does not support {body['temperature']} with this model. "
        return complaint(400, words + "Only the default (1) value is supported.", param="temperature")
    if "max_tokens" in body:
        words = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        more = {"param": "max_tokens", "code": "unsupported_parameter"}
        return complaint(400, words + "Use 'max_completion_tokens' instead.", **more)
    return CUT_OFF if body["max_completion_tokens"] < 16 else chat("Yes")


OPENROUTER = {"raw": '{"error": {"message": "Unsupported parameter", "param": "temperature"}}', "provider_name": "x"}
GEMINI = [{"error": {"code": 400, "message": "Logprobs is not enabled for models/gemini-2.5-pro", "status": "INVALID"}}]
REFUSALS = [
    ("logprobs", complaint(403, "You are not allowed to request logprobs from this model", param=None)),
    ("logprobs", complaint(400, "Unsupported parameter", param="logprobs", code="unsupported_parameter")),
    ("logprobs", Response(400, GEMINI)),
    ("logprobs", error(400, 'Invalid JSON payload received. Unknown name "logprobs": Cannot find field.')),
    ("logprobs", Response(422, {"detail": [{"loc": ["body", "logprobs"], "msg": "Extra inputs are not permitted"}]})),
    ("logprobs", error(501, "logprobs are not implemented")),
    ("temperature", complaint(400, "Unsupported value", param="temperature", code="unsupported_value")),
    ("temperature", error(400, "`temperature` is deprecated for this model.")),
    ("temperature", Response(400, {"error": {"message": "Provider returned error", "metadata": OPENROUTER}})),
    ("temperature", complaint(400, "No support for parameters: ['temperature']", param="None", code="400")),
    ("temperature", error(404, "No endpoints found that can handle the requested parameters: temperature")),
    ("max_tokens", Response(400, {"object": "error", "message": "max_tokens is not supported", "code": 400})),
]


@pytest.mark.parametrize(("field", "refusal"), REFUSALS, ids=range(len(REFUSALS)))
def test_what_is_refused_is_left_out_in_whichever_words_it_is_said(field: str, refusal: Response) -> None:
    def refuses(seen: Seen) -> Response:
        return refusal if field in seen.body else YES

    with Double(then=refuses) as server:
        reply = ask_server(server)

    last = server.seen[-1].body
    rest = {name for name in ASKED if name not in (field, f"top_{field}")}
    assert rest <= set(last) and field not in last
    assert [change.field for change in reply.changes] == [name for name in ASKED if name not in rest]


def test_several_refusals_in_a_row_cost_a_request_each_and_are_learned_for_the_run(pictures: list[Path]) -> None:
    with Double(then=thinker) as server:
        model = judge_of(server)
        answers = list(model.judge(pairs_of(pictures[:6])))

    assert [answer.verdict.probability for answer in answers if answer.verdict] == [1.0] * 6
    chats = server.asked(CHAT)
    assert [len(chats), sorted(answer.spent.calls for answer in answers)[:5]] == [4 + 6, [1] * 5]
    assert all("temperature" not in one.body and "logprobs" not in one.body for one in chats[-6:])
    assert len([note for note in model.notes if "temperature 0" in note]) == 1


def test_a_limit_too_small_to_think_is_raised_once() -> None:
    with Double(then=thinker) as server:
        reply = ask_server(server, max_tokens=1)

    assert server.seen[-1].body["max_completion_tokens"] == 16
    assert ("max_tokens", 1, "max_completion_tokens", 16) in [tuple(change) for change in reply.changes]


TOO_LARGE = complaint(400, "'max_tokens' is too large: 50. The context has 4096, 4090 are used", param="max_tokens")


@pytest.mark.parametrize(
    ("script", "way_out"), [([CUT_OFF], "answer_tokens"), ([TOO_LARGE, TOO_LARGE], "too large")], ids=["cut", "passed"]
)
def test_a_limit_fails_the_question_alone(script: list[Response], way_out: str, pictures: list[Path]) -> None:
    with Double(list(script), then=chat("Yes")) as server:
        first, second = judge_of(server, workers=1, answer="words", answer_tokens=50).judge(pairs_of(pictures[:2]))

    assert way_out in first.failure and second.verdict is not None


def test_a_field_that_nobody_may_leave_out_ends_the_run_with_its_name() -> None:
    refusal = complaint(400, "Unknown parameter: 'reasoning_effort'.", param="reasoning_effort")
    with Double(then=refusal) as server, raises(EyespotError):
        ask_server(server, reasoning_effort="none")

    assert len(server.seen) == 1


@pytest.mark.parametrize(("then", "without"), [(thinker, "without temperature 0"), (YES, "")])
def test_a_verdict_says_without_what_it_was_asked(then: Any, without: str, pictures: list[Path]) -> None:
    with Double(then=then) as server:
        answer = only_answer(judge_of(server), pictures[:1])

    assert answer.verdict is not None and answer.verdict.reason.endswith(without)
    assert bool(answer.verdict.reason) == bool(without)


def thoughtful(seen: Seen) -> Response:
    """gpt-5 as it is without options: 600 tokens of thought, then a word."""
    refusal = thinker(seen)
    if refusal.status != 200 or seen.body["max_completion_tokens"] >= 600:
        return refusal
    return chat("", finish="length")


def test_a_model_that_thinks_gets_room_for_it_once(pictures: list[Path]) -> None:
    with Double(then=thoughtful) as server:
        model = judge_of(server)
        answers = list(model.judge(pairs_of(pictures[:6])))

    assert [answer.verdict.probability for answer in answers if answer.verdict] == [1.0] * 6
    chats = server.asked(CHAT)
    assert [one.body["max_completion_tokens"] for one in chats[-6:]] == [2048] * 6
    assert sorted(answer.spent.calls for answer in answers)[:5] == [1] * 5


def test_a_limit_of_the_users_own_stands(pictures: list[Path]) -> None:
    with Double(then=thoughtful) as server:
        answer = only_answer(judge_of(server, answer_tokens=50), pictures[:1])

    assert "answer_tokens" in answer.failure
    assert max(one.body.get("max_completion_tokens", 0) for one in server.asked(CHAT)) == 50


def test_room_is_made_too_where_the_limit_is_refused(pictures: list[Path]) -> None:
    with Double([CUT_OFF], then=chat("Yes")) as server:
        answers = list(judge_of(server, answer="words").judge(pairs_of(pictures[:6])))

    assert [one.body["max_tokens"] for one in server.seen] == [16, *[2048] * 6] and all(one.verdict for one in answers)


# -- what endpoints are asked, word for word; and a user's own fields in it (`--judge extra=JSON`) ----------------


EXTRA = {"reasoning_effort": "none", "provider": {"require_parameters": True}}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "probabilities": ("openai", {}),
    "words": ("openai", {"answer": "words"}),
    "words of a length": ("openai", {"answer": "words", "answer_tokens": 2000}),
    "grades": ("openai", {"answer": "grades"}),
    "fields": ("openai", {"extra": EXTRA}),
    "anthropic": ("anthropic", {"key": "k"}),
    "anthropic's words": ("anthropic", {"key": "k", "answer": "words", "extra": {"service_tier": "auto"}}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_word_for_word_that_of_the_snapshot(name: str, pictures: list[Path]) -> None:
    """The query has a picture of its own, which is shown before the one to judge."""
    vendor, options = REQUESTS[name]
    query = Query("q", (Term(1.0, image=pictures[0]), Term(1.0, text="at night")))
    then = message("7" if "answer" not in options else "Yes") if vendor == "anthropic" else YES
    with Double(then=chat("7") if name == "grades" else then) as server:
        list(judge_of(server, vendor, **options).judge(pairs_of(pictures[1:2], query)))

    check_wording(re.sub(r"/9j/[\w+/=]+", "PICTURE", json.dumps(server.seen[0].body, sort_keys=True)))


def judge(**options: Any) -> Any:
    return rooms.load("judges", "openai:tiny", url="http://localhost:1/v1", key="k", **options)


def test_other_fields_make_another_judge_whatever_their_order() -> None:
    ordered, reverse = judge(extra=EXTRA), judge(extra=dict(reversed(EXTRA.items())))
    prompts = {judge(extra=extra).prompt for extra in (EXTRA, {"reasoning_effort": "low"}, {"seed": 1})}

    assert ordered.prompt == reverse.prompt and len(prompts | {judge().prompt}) == 4
    assert not set(ordered.fallbacks) & set(judge().fallbacks)


def test_without_fields_a_judge_is_who_it_was() -> None:
    """Verdicts stand in ledgers under these digests, which change with what is sent and with nothing else."""
    model = judge(extra={})

    assert (model.prompt, tuple(model.fallbacks)) == ("8166c9a55676e1c0", ("57fcfac56ccff80a",))


@pytest.mark.parametrize("text", ["{reasoning", '["a"]', '"none"', '{"a": NaN}'])
def test_what_is_no_object_of_fields_is_refused(text: str) -> None:
    with raises(UsageError):
        request_fields(text)


@pytest.mark.long
def test_a_search_sends_them_and_asks_anew_for_others(tmp_path: Path) -> None:
    line = ["search", "a heron", "-g", make_gallery(tmp_path, 2), "--rerank", "openai:tiny"]
    with Double() as server:
        url = f"url={server.url}"
        for extra in (EXTRA, EXTRA, {"seed": 1}):
            done = run_eyespot(*line, "--judge", url, "--judge", f"extra={json.dumps(extra)}")
            assert done.returncode == 0, done.stderr
        refuses(*line, "--judge", url, "--judge", "extra={reasoning")

    assert [one.body.get("reasoning_effort") for one in server.seen] == ["none", "none", None, None]


class Count(pydantic.BaseModel):
    herons: int


def test_an_answer_with_a_form_is_asked_for_in_words() -> None:
    with Double(then=message('Here it is: {"herons": 3}')) as server:
        model = judge_of(server, "anthropic").language_model
        found = model.answer([text_message("user", "How many herons?")], Count, max_tokens=99)

    assert found == Count(herons=3)
    assert "response_format" not in server.seen[0].body and '"herons"' in str(server.seen[0].body["messages"])
