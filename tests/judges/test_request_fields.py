"""What endpoints are asked, word for word; and a user's own fields in it (`--judge extra=JSON`)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.judges import ask
from eyespot.judges._endpoint import request_fields
from eyespot.ledger.judgements import Judgements
from eyespot.types import Query, Term, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises
from tests.worlds import make_gallery
from tests.worlds.judging import judge_of, pairs_of
from tests.worlds.servers import YES, Double, chat, message

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
    """Verdicts of earlier versions stand in ledgers under these digests."""
    model = judge(extra={})

    assert (model.prompt, tuple(model.fallbacks)) == ("d6a8eb639fe34037", ("facb9d8d083cca7f",))


def test_verdicts_of_other_fields_are_not_mixed(ledger: Judgements, pictures: list[Path]) -> None:
    with Double() as server:
        for extra in (None, EXTRA, EXTRA):
            list(ask(judge_of(server, extra=extra), pairs_of(pictures[:1]), ledger))

    assert len(server.seen) == 2


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
