"""Under each answer in the ledger stands what was sent and what came back, also of failures; a header sums it up."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from eyespot.judges import ask
from eyespot.ledger.export import write_table
from eyespot.ledger.judgements import Judgements
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.storage import exchange_log
from eyespot.storage.exchange_log import PART, TEXTS
from eyespot.types import Exchange, EyespotError, Judgement
from tests.worlds.judging import CHAT, HERON, draw_colours, judge_of, pairs_of, pictures_sent, run_of
from tests.worlds.servers import YES, Double, Response, Seen, chat, error, message


def judged(server: Double, pictures: list[Path], ledger: Judgements, **options: Any) -> Judgement:
    (judgement,) = ask(judge_of(server, **options), pairs_of(pictures[:1]), ledger)
    return judgement


def named(response: Response, served: str, fingerprint: str) -> Response:
    return response._replace(data={**response.data, "model": served, "system_fingerprint": fingerprint})


def without_temperature(seen: Seen) -> Response:
    if "temperature" in seen.body:
        return Response(400, {"error": {"message": "Unsupported value", "param": "temperature"}})
    return named(YES, "tiny-2026-01-01", "fp_1")


def test_the_body_as_sent_and_the_reply_stand_under_the_answer(pictures: list[Path], ledger: Judgements) -> None:
    with Double(then=without_temperature) as server:
        judgement = judged(server, pictures, ledger)

    refused, answered = ledger.exchanges([judgement])
    last = json.loads(json.dumps(server.seen[-1].body))
    last["messages"][-1]["content"][0]["image_url"]["url"] = "<picture 1>"
    assert answered.body == last and "temperature" in refused.body
    assert len(answered.pictures) == len(pictures_sent(server.seen[-1])) == 1 and "base64" not in json.dumps(
        answered.body
    )
    assert refused.reply is None and "Unsupported value" in refused.trouble
    reply = answered.reply
    assert reply is not None and reply.logprobs is not None
    assert (reply.text, reply.finish, reply.model, reply.fingerprint) == ("Yes", "stop", "tiny-2026-01-01", "fp_1")
    assert (reply.usage.tokens_in, reply.usage.tokens_out, sorted(dict(reply.logprobs))) == (100, 1, ["No", "Yes"])
    assert [change.field for change in reply.changes] == ["temperature"]


@pytest.mark.parametrize(
    ("answer", "script", "said"),
    [
        ("words", [chat("Perhaps"), chat("It depends"), chat("Who knows")], ["Perhaps", "It depends", "Who knows"]),
        (None, [error(400, "bad image")], ["bad image"]),
        (None, [error(500, "down")] * 2, ["down, 2 attempts"]),
        (None, [chat("I'm sorry, I can't help.")], ["I'm sorry, I can't help."]),
    ],
    ids=["failures", "refused", "down", "declined"],
)
def test_all_that_was_said_stands_there_word_for_word(
    answer: str | None, script: list[Response], said: list[str], pictures: list[Path], ledger: Judgements
) -> None:
    with Double(script) as server:
        judgement = judged(server, pictures, ledger, answer=answer, attempts=2)

    several = ledger.exchanges([judgement])
    texts = [exchange.reply.text if exchange.reply else exchange.trouble for exchange in several]
    assert len(texts) == len(said) and all(text.endswith(end) for text, end in zip(texts, said, strict=True))


def test_anthropics_pictures_are_digests_too(pictures: list[Path], ledger: Judgements) -> None:
    with Double(then=message("9")) as server:
        judgement = judged(server, pictures, ledger, vendor="anthropic", key="k")

    (exchange,) = ledger.exchanges([judgement])
    source = server.seen[-1].body["messages"][0]["content"][0]["source"]
    assert exchange.body["messages"][0]["content"][0]["source"]["data"] == "<picture 1>"
    assert exchange.pictures == (hashlib.sha256(base64.b64decode(source["data"])).hexdigest(),)
    assert exchange.reply is not None and (exchange.reply.text, exchange.reply.finish) == ("9", "end_turn")


def test_one_request_for_many_pictures_is_stored_once(pictures: list[Path], ledger: Judgements) -> None:
    with Double() as server:
        judgements = list(ask(judge_of(server), pairs_of(pictures[:4]), ledger))

    several = ledger.exchanges(judgements)
    assert len({exchange.pictures for exchange in several}) == 4
    assert len({json.dumps(exchange.body) for exchange in several}) == 1
    with closing(sqlite3.connect(ledger.path)) as read:
        assert read.execute("SELECT count(*) FROM requests").fetchone() == (1,)


bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9) | st.text("ab\n", min_size=199),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([PART, TEXTS, "messages"]), inner),
)


@given(bodies=st.lists(st.dictionaries(st.sampled_from(["messages", "model", TEXTS]), bodies), min_size=1))
def test_any_request_is_read_as_it_was_sent(bodies: list[dict[str, Any]]) -> None:
    with closing(sqlite3.connect(":memory:")) as sql:
        exchange_log.insert(sql, "all", [Exchange(body, ()) for body in bodies])
        assert [exchange.body for exchange in exchange_log.read(sql, ["all"])] == bodies


def test_rules_and_forms_that_requests_share_are_stored_once() -> None:
    def body(number: int) -> dict[str, Any]:
        content = [{"type": "text", "text": text} for text in (f"{'A rule. ' * 500}\n\n{number}", f"Caption: {number}")]
        return {"messages": [{"role": "user", "content": content}], "response_format": {"schema": ["field"] * 300}}

    with closing(sqlite3.connect(":memory:")) as sql:
        exchange_log.insert(sql, "all", [Exchange(body(number), ()) for number in range(50)])
        (pages,), (size,) = (sql.execute(f"PRAGMA page_{word}").fetchone() for word in ("count", "size"))

    assert pages * size < 50 * 1000  # alone one has 6.5 kB


def test_the_header_of_a_run_says_what_was_not_accepted_also_when_nothing_is_asked(
    pictures: list[Path], ledger: Judgements
) -> None:
    with Double(then=without_temperature) as server:
        headers = [JudgeRerank(judge_of(server), ledger)([HERON], run_of(pictures[:1])).header for _ in range(2)]

    assert len(server.seen) == 2
    for header in headers:
        assert "temperature 0" in header["not_accepted"][0]
        assert (header["served"], header["fingerprints"]) == ({"tiny-2026-01-01": 1}, {"fp_1": 1})


def test_a_model_that_changes_in_mid_run_is_a_note_and_in_the_header(pictures: list[Path], ledger: Judgements) -> None:
    with Double([named(YES, "tiny-05", "")], then=named(YES, "tiny-08", "")) as server:
        found = JudgeRerank(judge_of(server), ledger)([HERON], run_of(pictures[:3]))

    assert found.header["served"] == {"tiny-05": 1, "tiny-08": 2}
    assert [note for note in found.notes if "tiny-05 (1), tiny-08 (2)" in note]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_exported_table_has_them(ending: str, pictures: list[Path], ledger: Judgements, tmp_path: Path) -> None:
    with Double(then=without_temperature) as server:
        judged(server, pictures, ledger)
    place = tmp_path / f"verdicts.{ending}"
    write_table(ledger.rows(), {}, place, ledger)

    if ending == "jsonl":
        (row,) = [json.loads(line) for line in place.read_text().splitlines()]
    else:
        import pyarrow.parquet as pq

        (row,) = pq.read_table(place).to_pylist()
    refused, answered = json.loads(row["exchanges"])
    assert refused["reply"] is None and "400" in refused["trouble"]
    assert answered["reply"]["model"] == "tiny-2026-01-01" and answered["reply"]["usage"]["tokens_in"] == 100
    assert answered["reply"]["changes"][0]["field"] == "temperature" and answered["body"]["max_tokens"] == 1


def test_a_ledger_of_an_earlier_version_is_read(pictures: list[Path], tmp_path: Path) -> None:
    place = tmp_path / "older.sqlite"
    with Double() as server:
        with Judgements(place) as ledger:
            judgement = judged(server, pictures, ledger)
        with closing(sqlite3.connect(place)) as older:
            older.executescript("DROP TABLE exchanges; DROP TABLE requests")
        with Judgements(place) as again:
            assert again.exchanges([judgement]) == [] and again.served([judgement]) == []
            assert judged(server, pictures, again).verdict == judgement.verdict
            later = judged(server, pictures, again, answer="words")
            assert len(again.exchanges([later])) == 1
    assert len(server.seen) == 2


# -- judges read the replies of today's servers (`shapes.toml`) ---------------------------------------------------


SHAPES = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text(encoding="utf-8"))["shape"]
SERVERS = (
    *("OpenAI gpt-4.1", "OpenAI gpt-5", "Azure", "OpenRouter", "Gemini", "vLLM", "SGLang", "Ollama", "llama.cpp"),
    *("LM Studio", "Anthropic"),
)


def responses(shape: dict[str, Any]) -> list[Response]:
    replies = [{"body": reply} if isinstance(reply, str) else reply for reply in shape["replies"]]
    return [Response(reply.get("status", 200), json.loads(reply["body"], strict=False)) for reply in replies]


def shapes_judged(shape: dict[str, Any], server: Double, ledger: Judgements, folder: Path) -> Judgement:
    judge = judge_of(server, shape.get("vendor", "openai"), key="k", answer=shape.get("answer"))
    (judgement,) = ask(judge, pairs_of(draw_colours(folder / "photos", 1)), ledger)
    return judgement


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
def test_a_reply_is_read_as_its_server_means_it(shape: dict[str, Any], tmp_path: Path, ledger: Judgements) -> None:
    *first, last = responses(shape)
    with Double(first, then=last) as server:
        if "ends" in shape:
            with pytest.raises(EyespotError, match=shape["ends"]):
                shapes_judged(shape, server, ledger, tmp_path)
            return
        judgement = shapes_judged(shape, server, ledger, tmp_path)
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
