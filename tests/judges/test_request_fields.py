"""A user's own fields in what endpoints are asked (`--judge extra=JSON`): sent as they are, and part of who judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from eyespot import rooms
from eyespot.cli import app
from eyespot.gallery.indexing import index
from eyespot.judges._endpoint import EndpointJudge
from eyespot.judges._endpoint.settings import request_fields
from eyespot.judges._rounds import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import EyespotError, Pair, Query, UsageError
from tests.worlds.servers import Double, Response, chat, message

EXTRA = {"reasoning_effort": "none", "provider": {"require_parameters": True}}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    Image.new("RGB", (40, 30), (200, 0, 0)).save(tmp_path / "a.png")
    return Pair(Query.words("a heron"), "a", tmp_path / "a.png")


def judge(url: str, kind: str = "openai", **options: Any) -> EndpointJudge:
    made: EndpointJudge = rooms.load("judges", f"{kind}:tiny", url=url, key="k", first_rest=0.001, **options)
    return made


def test_fields_are_sent_with_every_question(pair: Pair) -> None:
    with Double(then=chat("Yes")) as server:
        list(judge(server.url, extra=EXTRA).judge([pair]))

    requests = server.asked("/v1/chat/completions")
    assert len(requests) == 1 and all(EXTRA.items() <= one.body.items() for one in requests)


def test_anthropic_gets_them_too(pair: Pair) -> None:
    with Double(then=message("7")) as server:
        list(judge(server.url.removesuffix("/v1"), "anthropic", extra={"service_tier": "auto"}).judge([pair]))

    assert server.seen[0].body["service_tier"] == "auto"


def test_other_fields_make_another_judge_whatever_their_order() -> None:
    url = "http://localhost:1/v1"
    ordered, reverse = judge(url, extra=EXTRA), judge(url, extra=dict(reversed(EXTRA.items())))
    prompts = {judge(url, extra=extra).prompt for extra in (EXTRA, {"reasoning_effort": "low"}, {"seed": 1})}

    assert ordered.prompt == reverse.prompt and len(prompts | {judge(url).prompt}) == 4
    assert not set(ordered.fallbacks) & set(judge(url).fallbacks)


def test_without_fields_a_judge_is_who_it_was() -> None:
    """Verdicts of earlier versions stand in ledgers under these digests."""
    model = judge("http://localhost:1/v1", extra={})

    assert (model.prompt, tuple(model.fallbacks)) == ("d6a8eb639fe34037", ("9fae434e023f2cc5", "facb9d8d083cca7f"))


def test_verdicts_of_other_fields_are_not_mixed(tmp_path: Path, pair: Pair) -> None:
    with Double() as server, Judgements(tmp_path / "ledger.sqlite") as ledger:
        for extra in (None, EXTRA, EXTRA):
            list(ask(judge(server.url, extra=extra), [pair], ledger))

    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{reasoning", "extra is no JSON (Expecting property name enclosed in double quotes at 1)"),
        ('["a"]', "extra is no JSON object"),
        ('"none"', "extra is no JSON object"),
        ('{"a": NaN}', "extra is no JSON (NaN is no number of JSON)"),
    ],
)
def test_what_is_no_object_of_fields_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        request_fields(text)

    assert str(raised.value) == f"""{sentence}; write the request's own fields, as in '{{"reasoning_effort": "low"}}'"""


@pytest.mark.parametrize(
    ("field", "way"),
    [("messages", "leave it out"), ("model", "leave it out"), ("max_tokens", "say answer_tokens instead")],
)
def test_a_field_that_is_set_already_is_refused(field: str, way: str) -> None:
    with pytest.raises(UsageError) as raised:
        judge("http://localhost:1/v1", extra={"seed": 1, field: 1})

    assert str(raised.value) == f"openai: extra holds {field}, which is set already; {way}"


def test_the_way_out_for_a_limit_works(pair: Pair) -> None:
    with Double(then=chat("Yes")) as server:
        list(judge(server.url, answer="words", answer_tokens=2000).judge([pair]))

    assert server.seen[0].body["max_tokens"] == 2000


def test_a_field_that_a_model_does_not_know_ends_the_run_with_its_name(pair: Pair) -> None:
    error = {"message": "Unknown parameter: 'reasoning_effort'.", "param": "reasoning_effort"}
    with (
        Double(then=Response(400, {"error": error})) as server,
        pytest.raises(EyespotError, match="does not accept reasoning_effort"),
    ):
        list(judge(server.url, extra=EXTRA).judge([pair]))

    assert len(server.seen) == 1


# -- on the command line -------------------------------------------------------------------------------------------


@pytest.fixture
def gallery(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    for number in range(2):
        Image.new("RGB", (60, 40), (200 * number, 90, 0)).save(tmp_path / "photos" / f"{number}.png")
    index(tmp_path / "g", [str(tmp_path / "photos")], [rooms.load("encoders", "starter")])
    return tmp_path / "g"


def search(gallery: Path, *words: str) -> Any:
    return CliRunner().invoke(app, ["search", "a heron", "-g", str(gallery), "--rerank", "openai:tiny", *words])


@pytest.mark.long
def test_a_search_sends_them_and_asks_anew_for_others(gallery: Path) -> None:
    with Double() as server:
        codes = [
            search(gallery, "--judge", f"url={server.url}", "--judge", f"extra={json.dumps(extra)}").exit_code
            for extra in (EXTRA, EXTRA, {"seed": 1})
        ]

    assert codes == [0, 0, 0]
    assert [one.body.get("reasoning_effort") for one in server.seen] == ["none", "none", None, None]


def test_a_search_refuses_what_is_no_object(gallery: Path) -> None:
    raised = search(gallery, "--judge", "url=http://localhost:1/v1", "--judge", "extra={reasoning").exception

    assert isinstance(raised, UsageError) and str(raised).startswith("extra is no JSON (")
