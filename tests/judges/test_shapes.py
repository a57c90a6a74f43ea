"""Judges read the replies of today's servers (`shapes.toml`): score, refusal, failure, served model, calls."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from eyespot.judges import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import EyespotError, Judgement
from tests.lazy_import import requires
from tests.worlds.judging import CHAT, draw_colours, judge_of, pairs_of
from tests.worlds.servers import Double, Response

pytestmark = requires("openai", "anthropic")

SHAPES = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text(encoding="utf-8"))["shape"]
SERVERS = (
    *("OpenAI gpt-4.1", "OpenAI gpt-5", "Azure", "OpenRouter", "Gemini", "vLLM", "SGLang", "Ollama", "llama.cpp"),
    *("LM Studio", "Anthropic"),
)


def responses(shape: dict[str, Any]) -> list[Response]:
    replies = [{"body": reply} if isinstance(reply, str) else reply for reply in shape["replies"]]
    return [Response(reply.get("status", 200), json.loads(reply["body"], strict=False)) for reply in replies]


def judged(shape: dict[str, Any], server: Double, ledger: Judgements, folder: Path) -> Judgement:
    judge = judge_of(server, shape.get("vendor", "openai"), key="k", answer=shape.get("answer"))
    (judgement,) = ask(judge, pairs_of(draw_colours(folder / "photos", 1)), ledger)
    return judgement


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_reply_is_read_as_its_server_means_it(shape: dict[str, Any], tmp_path: Path, ledger: Judgements) -> None:
    *first, last = responses(shape)
    with Double(first, then=last) as server:
        if "ends" in shape:
            with pytest.raises(EyespotError, match=shape["ends"]):
                judged(shape, server, ledger, tmp_path)
            return
        judgement = judged(shape, server, ledger, tmp_path)
        exchanges = [exchange for exchange in ledger.exchanges([judgement]) if "messages" in exchange.body]

    assert shape.get("failure", "") in judgement.failure and bool(judgement.failure) == ("failure" in shape)
    assert judgement.refused == shape.get("refused", False)
    score = None if judgement.verdict is None else judgement.verdict.probability
    assert score == (None if "failure" in shape else pytest.approx(shape.get("score", 0.0), abs=1e-4))
    assert len([*server.asked(CHAT), *server.asked("/v1/messages")]) == shape.get("calls", 1)
    reply = exchanges[-1].reply
    left_out = [x.field for x in (reply.changes if reply else ()) if not x.sent_as and "logprobs" not in x.field]
    assert left_out == shape.get("left_out", [])
    for name in ("served", "fingerprint"):
        if name in shape:
            assert reply is not None and {"served": reply.model, "fingerprint": reply.fingerprint}[name] == shape[name]


def test_every_server_that_judges_promise_has_a_shape_with_a_score() -> None:
    scored = [shape["name"] for shape in SHAPES if "score" in shape]

    assert all(any(name.startswith(server) for name in scored) for server in SERVERS)
