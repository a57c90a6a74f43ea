"""What models refuse of a request, in the words of real servers: asked again without it, learned once, told once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges._endpoint import EndpointJudge
from eyespot.judges._rounds import ask
from eyespot.ledger.export import write_table
from eyespot.ledger.judgements import Judgements
from eyespot.llms import Reply, text_message
from eyespot.types import EyespotError, Pair, Query
from tests.worlds.servers import YES, Double, Response, Seen, chat, error

CHAT = "/v1/chat/completions"
ASKED = {"max_tokens": 300, "temperature": 0.25, "logprobs": True, "top_logprobs": 20}


@pytest.fixture
def pictures(tmp_path: Path) -> list[Path]:
    """Six pictures of one colour each."""
    paths = [tmp_path / f"{number}.png" for number in range(6)]
    for number, path in enumerate(paths):
        Image.new("RGB", (40, 30), (40 * number, 0, 0)).save(path)
    return paths


def judge(server: Double, **options: Any) -> EndpointJudge:
    made: EndpointJudge = rooms.load("judges", "openai:tiny", url=server.url, first_rest=0.001, timeout=5.0, **options)
    return made


def pairs(pictures: list[Path]) -> list[Pair]:
    return [Pair(Query.words("a heron"), path.stem, path) for path in pictures]


def ask_server(server: Double, **options: Any) -> Reply:
    """The reply to one question with all that a server may refuse."""
    return judge(server).language_model.chat([text_message("user", "?")], **{**ASKED, **options})


def complaint(status: int, message: str, **facts: Any) -> Response:
    """An error in the form of OpenAI's."""
    return Response(status, {"error": {"message": message, "type": "invalid_request_error", **facts}})


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
    if body["max_completion_tokens"] < 16:
        return complaint(400, "Could not finish the message because max_tokens or model output limit was reached.")
    return chat("Yes")


# -- one parameter ------------------------------------------------------------------------------------------------

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
        model = judge(server)
        answers = list(model.judge(pairs(pictures)))

    assert [answer.verdict.probability for answer in answers if answer.verdict] == [1.0] * 6
    chats = server.asked(CHAT)
    assert [len(chats), sorted(answer.spent.calls for answer in answers)[:5]] == [4 + 6, [1] * 5]
    assert all("temperature" not in one.body and "logprobs" not in one.body for one in chats[-6:])


def test_what_is_left_out_is_told_in_one_sentence(pictures: list[Path]) -> None:
    with Double(then=thinker) as server:
        model = judge(server)
        list(model.judge(pairs(pictures)))

    assert [note for note in model.notes if "accept" in note] == [
        "openai:tiny@localhost does not accept temperature 0; it is asked without"
    ]


def test_workers_who_begin_at_once_learn_from_one_of_them() -> None:
    def slow(seen: Seen) -> Response:
        time.sleep(0.05)
        return thinker(seen)

    with Double(then=slow) as server, ThreadPoolExecutor(8) as pool:
        endpoint = judge(server).language_model
        replies = list(pool.map(lambda _: endpoint.chat([text_message("user", "?")], **ASKED), range(8)))

    assert {reply.text for reply in replies} == {"Yes"} and len(server.seen) == 3 + 8


def test_a_limit_too_small_to_think_is_raised_once() -> None:
    with Double(then=thinker) as server:
        reply = ask_server(server, max_tokens=1)

    assert server.seen[-1].body["max_completion_tokens"] == 16
    assert ("max_tokens", 1, "max_completion_tokens", 16) in [tuple(change) for change in reply.changes]


def test_an_answer_that_its_limit_cuts_off_fails_alone_with_the_way_out(pictures: list[Path]) -> None:
    cut = complaint(400, "Could not finish the message because max_tokens or model output limit was reached.")
    with Double([cut], then=chat("Yes")) as server:
        first, second = judge(server, workers=1, answer="words", answer_tokens=50).judge(pairs(pictures[:2]))

    assert first.failure.endswith("let it have more tokens (answer_tokens of a judge, max_tokens of a recipe)")
    assert second.verdict is not None


def test_a_limit_that_one_question_passes_fails_that_question_alone(pictures: list[Path]) -> None:
    long = complaint(
        400, "'max_tokens' is too large: 16. The context has 4096 tokens, 4090 are used", param="max_tokens"
    )
    with Double([long, long], then=chat("Yes")) as server:
        first, second = judge(server, workers=1, answer="words").judge(pairs(pictures[:2]))

    assert "too large" in first.failure and second.verdict is not None


# -- what is no refusal of a parameter ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_bad_key_is_still_blamed(status: int, pictures: list[Path]) -> None:
    with (
        Double(then=error(status, "Incorrect API key provided")) as server,
        pytest.raises(EyespotError, match=r"does not accept the key \(Incorrect API key provided\)"),
    ):
        list(judge(server).judge(pairs(pictures[:1])))

    assert len(server.seen) == 1


def test_the_key_is_not_blamed_for_a_model_that_it_may_not_use(pictures: list[Path]) -> None:
    words = "Project `proj_1` does not have access to model `tiny`"
    with (
        Double(then=complaint(403, words, code="model_not_found")) as server,
        pytest.raises(EyespotError, match="the key may not use the model 'tiny'"),
    ):
        list(judge(server).judge(pairs(pictures[:1])))


@pytest.fixture
def strict() -> Iterator[Double]:
    """A server that names a parameter which is the user's own."""
    refusal = complaint(400, "Unknown parameter: 'reasoning_effort'.", param="reasoning_effort")
    with Double(then=refusal) as server:
        yield server


def test_a_field_that_nobody_may_leave_out_ends_the_run_with_its_name(strict: Double) -> None:
    with pytest.raises(EyespotError, match=r"^tiny at .* does not accept reasoning_effort \(.*\); leave it out"):
        judge(strict).language_model.chat([text_message("user", "?")], reasoning_effort="none")

    assert len(strict.seen) == 1


def test_a_router_without_a_provider_for_all_that_is_asked_is_no_unknown_model() -> None:
    words = "No endpoints found that can handle the requested parameters."
    with (
        Double(then=error(404, words)) as server,
        pytest.raises(EyespotError, match="no provider of the model 'tiny' takes all that is asked of it"),
    ):
        ask_server(server)


# -- what the ledger says ------------------------------------------------------------------------------------------


def test_a_verdict_says_without_what_it_was_asked(tmp_path: Path, pictures: list[Path]) -> None:
    with Double(then=thinker) as server, Judgements(tmp_path / "ledger.sqlite") as ledger:
        list(ask(judge(server), pairs(pictures[:2]), ledger))
        write_table(ledger.rows(), {}, tmp_path / "verdicts.jsonl")

    reasons = [json.loads(line)["reason"] for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert reasons == ["said 'Yes'; asked without temperature 0"] * 2


def test_a_verdict_of_a_model_that_takes_all_says_nothing_of_that(pictures: list[Path]) -> None:
    with Double() as server:
        answer = next(judge(server).judge(pairs(pictures[:1])))

    assert answer.verdict is not None and answer.verdict.reason == ""


# -- models that think before they answer --------------------------------------------------------------------------


def thoughtful(seen: Seen) -> Response:
    """gpt-5 as it is without options: 600 tokens of thought, then a word."""
    refusal = thinker(seen)
    if refusal.status != 200 or seen.body["max_completion_tokens"] >= 600:
        return refusal
    return chat("", finish="length")


def test_a_model_that_thinks_gets_room_for_it_once(pictures: list[Path]) -> None:
    with Double(then=thoughtful) as server:
        model = judge(server)
        answers = list(model.judge(pairs(pictures)))

    assert [answer.verdict.probability for answer in answers if answer.verdict] == [1.0] * 6
    chats = server.asked(CHAT)
    assert [one.body["max_completion_tokens"] for one in chats[-6:]] == [2048] * 6
    assert sorted(answer.spent.calls for answer in answers)[:5] == [1] * 5


def test_a_limit_of_the_users_own_stands(pictures: list[Path]) -> None:
    with Double(then=thoughtful) as server:
        (answer,) = judge(server, answer_tokens=50).judge(pairs(pictures[:1]))

    assert "let it have more tokens (option answer_tokens)" in answer.failure
    assert max(one.body.get("max_completion_tokens", 0) for one in server.asked(CHAT)) == 50


def test_room_is_made_too_where_the_limit_is_refused(pictures: list[Path]) -> None:
    cut = complaint(400, "Could not finish the message because max_tokens or model output limit was reached.")
    with Double([cut], then=chat("Yes")) as server:
        answers = list(judge(server, answer="words").judge(pairs(pictures)))

    assert [one.body["max_tokens"] for one in server.seen] == [16, *[2048] * 6] and all(one.verdict for one in answers)
