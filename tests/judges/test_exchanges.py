"""Under each answer in the ledger stands what was sent and what came back, also of failures; a header sums it up."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot import rooms
from eyespot.judges import ask
from eyespot.ledger.export import write_table
from eyespot.ledger.judgements import Judgements
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Exchange, Judgement, Pair, Query, Run
from tests.lazy_import import requires
from tests.worlds.servers import YES, Double, Response, Seen, chat, error, message

pytestmark = requires("openai", "anthropic")

HERON = Query.words("a heron", "q")


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Image.new("RGB", (16, 16), (200, 0, 0)).save(tmp_path / "red.png")
    return tmp_path / "red.png"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Judgements]:
    with Judgements(tmp_path / "ledger.sqlite") as opened:
        yield opened


def judge(server: Double, name: str = "openai:tiny", **options: Any) -> Any:
    how = {"first_rest": 0.001, "timeout": 5.0, **options}
    return rooms.load("judges", name, url=server.url, **how)


def judged(server: Double, photo: Path, ledger: Judgements, **options: Any) -> Judgement:
    (judgement,) = ask(judge(server, **options), [Pair(HERON, "red", photo)], ledger)
    return judgement


def named(response: Response, served: str, fingerprint: str) -> Response:
    return response._replace(data={**response.data, "model": served, "system_fingerprint": fingerprint})


def without_temperature(seen: Seen) -> Response:
    if "temperature" in seen.body:
        return Response(400, {"error": {"message": "Unsupported value", "param": "temperature"}})
    return named(YES, "tiny-2026-01-01", "fp_1")


def sent_picture(seen: Seen) -> str:
    url = seen.body["messages"][-1]["content"][0]["image_url"]["url"]
    return hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest()


def test_the_body_as_sent_and_the_reply_stand_under_the_answer(photo: Path, ledger: Judgements) -> None:
    with Double(then=without_temperature) as server:
        judgement = judged(server, photo, ledger)

    refused, answered = ledger.exchanges([judgement])
    last = json.loads(json.dumps(server.seen[-1].body))
    last["messages"][-1]["content"][0]["image_url"]["url"] = "<picture 1>"
    assert answered.body == last and "temperature" in refused.body
    assert answered.pictures == (sent_picture(server.seen[-1]),) and "base64" not in json.dumps(answered.body)
    assert (refused.reply, refused.trouble) == (None, "the server answers 400: Unsupported value")
    reply = answered.reply
    assert reply is not None and reply.logprobs is not None
    assert (reply.text, reply.finish, reply.model, reply.fingerprint) == ("Yes", "stop", "tiny-2026-01-01", "fp_1")
    assert (reply.usage.tokens_in, reply.usage.tokens_out, sorted(dict(reply.logprobs))) == (100, 1, ["No", "Yes"])
    assert [change.field for change in reply.changes] == ["temperature"]


def test_a_failure_keeps_every_text_that_it_failed_on(photo: Path, ledger: Judgements) -> None:
    with Double([chat("Perhaps"), chat("It depends"), chat("Who knows")]) as server:
        judgement = judged(server, photo, ledger, answer="words")

    assert judgement.verdict is None
    assert [texts(exchange) for exchange in ledger.exchanges([judgement])] == ["Perhaps", "It depends", "Who knows"]


def texts(exchange: Exchange) -> str:
    return exchange.reply.text if exchange.reply else exchange.trouble


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (error(400, "bad image"), "the server answers 400: bad image"),
        (error(500, "down"), "the server answers 500: down, 2 times"),
        (chat("I'm sorry, but I can't help with that."), "I'm sorry, but I can't help with that."),
    ],
)
def test_refusals_and_errors_stand_there_word_for_word(
    response: Response, text: str, photo: Path, ledger: Judgements
) -> None:
    with Double(then=response) as server:
        judgement = judged(server, photo, ledger, attempts=2)

    assert [texts(exchange) for exchange in ledger.exchanges([judgement])] == [text]


def test_every_vote_is_there(photo: Path, ledger: Judgements) -> None:
    with Double([chat("Yes"), chat("Hm"), chat("No")]) as server:
        judgement = judged(server, photo, ledger, answer="votes", votes=3)

    several = ledger.exchanges([judgement])
    assert [texts(exchange) for exchange in several] == ["Yes", "Hm", "No"]
    assert {exchange.body["temperature"] for exchange in several} == {1}


def test_anthropics_pictures_are_digests_too(photo: Path, ledger: Judgements) -> None:
    with Double(then=message("9")) as server:
        judgement = judged(server, photo, ledger, name="anthropic:tiny", key="k")

    (exchange,) = ledger.exchanges([judgement])
    assert exchange.body["messages"][0]["content"][0]["source"]["data"] == "<picture 1>" and len(exchange.pictures) == 1
    assert exchange.reply is not None and (exchange.reply.text, exchange.reply.finish) == ("9", "end_turn")


def test_one_request_for_many_pictures_is_stored_once(photo: Path, ledger: Judgements) -> None:
    for number in range(3):
        Image.new("RGB", (16, 16), (0, number, 0)).save(photo.with_name(f"{number}.png"))
    pairs = [Pair(HERON, path.stem, path) for path in sorted(photo.parent.glob("*.png"))]
    with Double() as server:
        judgements = list(ask(judge(server), pairs, ledger))

    several = ledger.exchanges(judgements)
    assert len({exchange.pictures for exchange in several}) == 4
    assert len({json.dumps(exchange.body) for exchange in several}) == 1
    (bodies,) = ledger._reading.execute("SELECT count(*) FROM requests").fetchone()
    assert bodies == 1


def test_the_header_of_a_run_says_what_was_not_accepted_also_when_nothing_is_asked(
    photo: Path, ledger: Judgements
) -> None:
    run = Run.from_orders({"q": ["red"]})
    run.facts = {"red": {"id": "red", "path": str(photo)}}
    with Double(then=without_temperature) as server:
        headers = [JudgeRerank(judge(server), ledger)([HERON], run).header for _ in range(2)]

    assert len(server.seen) == 2
    for header in headers:
        assert header["not_accepted"] == ["temperature 0: not accepted by openai:tiny@localhost"]
        assert (header["served"], header["fingerprints"]) == ({"tiny-2026-01-01": 1}, {"fp_1": 1})


def test_a_judge_without_requests_has_nothing_to_say_of_them(photo: Path, ledger: Judgements) -> None:
    run = Run.from_orders({"q": ["red"]})
    run.facts = {"red": {"id": "red", "path": str(photo)}}
    with Double() as server:
        header = JudgeRerank(judge(server), ledger)([HERON], run).header

    assert "not_accepted" not in header and "served" not in header


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_exported_table_has_them(ending: str, photo: Path, ledger: Judgements, tmp_path: Path) -> None:
    with Double(then=without_temperature) as server:
        judged(server, photo, ledger)
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


def test_a_ledger_of_an_earlier_version_is_read(photo: Path, ledger: Judgements) -> None:
    with Double() as server:
        judgement = judged(server, photo, ledger)
        ledger._writing.executescript("DROP TABLE exchanges; DROP TABLE requests")
        with Judgements(ledger.path) as again:
            assert again.exchanges([judgement]) == [] and again.served([judgement]) == []
            assert judged(server, photo, again).verdict == judgement.verdict
            later = judged(server, photo, again, answer="words")
            assert len(again.exchanges([later])) == 1
    assert len(server.seen) == 2
