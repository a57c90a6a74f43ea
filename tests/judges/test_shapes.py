"""Judges read the replies of today's servers (`shapes.toml`): score, refusal, failure, served model, calls."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges import ask
from eyespot.ledger.judgements import Judgements
from eyespot.types import EyespotError, Judgement, Pair, Query
from tests.lazy_import import requires
from tests.worlds.servers import Double, Response, Seen

pytestmark = requires("openai", "anthropic")

SHAPES = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text(encoding="utf-8"))["shape"]
SERVERS = (
    *("OpenAI gpt-4.1", "OpenAI gpt-5", "Azure", "OpenRouter", "Gemini", "vLLM", "SGLang", "Ollama", "llama.cpp"),
    *("LM Studio", "Anthropic"),
)
CHAT = ("/v1/chat/completions", "/v1/messages")


def responses(shape: dict[str, Any]) -> list[Response]:
    replies = [{"body": reply} if isinstance(reply, str) else reply for reply in shape["replies"]]
    return [Response(reply.get("status", 200), json.loads(reply["body"], strict=False)) for reply in replies]


def judged(shape: dict[str, Any], server: Double, ledger: Judgements, folder: Path) -> Judgement:
    Image.new("RGB", (16, 16), (200, 0, 0)).save(folder / "red.png")
    vendor = shape.get("vendor", "openai")
    url = server.url if vendor == "openai" else server.url.removesuffix("/v1")
    how = {"first_rest": 0.001, "timeout": 5.0, "key": "k", "answer": shape.get("answer")}
    judge = rooms.load("judges", f"{vendor}:tiny", url=url, **how)
    (judgement,) = ask(judge, [Pair(Query.words("a heron"), "red", folder / "red.png")], ledger)
    return judgement


def chats(server: Double) -> list[Seen]:
    return [seen for seen in server.seen if seen.path in CHAT]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_reply_is_read_as_its_server_means_it(shape: dict[str, Any], tmp_path: Path) -> None:
    *first, last = responses(shape)
    with Double(first, then=last) as server, Judgements(tmp_path / "ledger.sqlite") as ledger:
        if "ends" in shape:
            with pytest.raises(EyespotError, match=shape["ends"]):
                judged(shape, server, ledger, tmp_path)
            return
        judgement = judged(shape, server, ledger, tmp_path)
        exchanges = [exchange for exchange in ledger.exchanges([judgement]) if "messages" in exchange.body]

    assert judgement.failure == "" and judgement.verdict is not None
    assert judgement.refused == shape.get("refused", False)
    assert judgement.verdict.probability == pytest.approx(shape.get("score", 0.0), abs=1e-4)
    assert len(chats(server)) == shape.get("calls", 1)
    reply = exchanges[-1].reply
    assert [
        x.field for x in (reply.changes if reply else ()) if not x.sent_as and "logprobs" not in x.field
    ] == shape.get("left_out", [])
    for name in ("served", "fingerprint"):
        if name in shape:
            assert reply is not None and {"served": reply.model, "fingerprint": reply.fingerprint}[name] == shape[name]


def test_every_server_that_judges_promise_has_a_shape_with_a_score() -> None:
    scored = [shape["name"] for shape in SHAPES if "score" in shape]

    assert all(any(name.startswith(server) for name in scored) for server in SERVERS)
