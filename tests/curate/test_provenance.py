"""What models were asked in truth: what a server would not take is told, stands on the data card, and can end a run."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.llms.prices import Prices
from eyespot.pipelines import Context, Keep, MapStep, Outcome, Record, RunOptions, Step, StepResult, read_recipe, run
from eyespot.pipelines.data_card import CardContent, card_of, write_card
from eyespot.pipelines.prompts import AnswerForm, Models, PromptPicture, ask_model, prompt_of
from eyespot.pipelines.work_db import WorkDB
from eyespot.types import Exchange, EyespotError, Price
from tests.wording import raises
from tests.worlds.batches import BatchServer
from tests.worlds.pipelines import source
from tests.worlds.rmir import recipe
from tests.worlds.servers import Double, Response, Seen, chat, message


class Word(AnswerForm):
    """An answer of one word."""

    word: str


WORD = '{"word": "yes"}'
MODEL = {"use": "openai:gpt-x", "temperature": 0.25, "max_tokens": 300, "attempts": 2, "first_rest": 0.01}


def complaint(name: str) -> Response:
    """A refusal as OpenAI writes it."""
    error = {"message": f"Unsupported parameter: '{name}'", "param": name, "code": "unsupported_parameter"}
    return Response(400, {"error": error})


def thinker(seen: Seen) -> Response:
    """Takes no temperature and no limit by its older name; says what it is called in full."""
    if name := next((name for name in ("temperature", "max_tokens") if name in seen.body), ""):
        return complaint(name)
    answer = chat(WORD)
    return answer._replace(data={**answer.data, "model": "gpt-x-2026-01-01"})


def steps(server: Double, count: int = 6, version: int = 1) -> list[Step]:
    model = {**MODEL, "url": server.url}

    def ask(record: Record, context: Context) -> Outcome:
        ask_model(context, prompt_of(model, record["id"], Word), Word)
        return Keep(record)

    return [source(count), Step("asked", MapStep(ask, workers=4), version, models={"m": MODEL})]


def put(folder: Path, server: Double, version: int = 1, **how: Any) -> list[StepResult]:
    """The steps, run with models behind the server."""
    strict = how.pop("strict", False)
    return run(steps(server, version=version), folder, RunOptions(client=Models(strict=strict, **how), strict=strict))


def otherwise(done: list[StepResult]) -> list[list[Any]]:
    """What the card says of requests that differ from the recipe."""
    return [list(row) for row in card_of(done, CardContent("A set")).requests.rows]


DROPPED = ["asked", "openai:gpt-x", "temperature 0.25 not accepted: model's own was used", "6 of 6"]
ALL = [
    ["asked", "openai:gpt-x", "answered as gpt-x-2026-01-01", "6 of 6"],
    DROPPED,
    ["asked", "openai:gpt-x", "max_tokens 300 sent as max_completion_tokens", "6 of 6"],
]


def test_the_card_counts_what_was_not_accepted_from_the_answers_and_one_note_tells_it(tmp_path: Path) -> None:
    notes: list[str] = []
    with Double(then=thinker) as server:
        done = put(tmp_path, server, note=notes.append)

    assert otherwise(done) == ALL and len(notes) == 1 and "temperature 0.25" in notes[0]
    assert len(server.seen) == 2 + 6  # four workers learn it from one
    (origin,) = done[-1].origins
    assert (origin.model, origin.provenance.served, origin.answers) == ("openai:gpt-x", "gpt-x-2026-01-01", 6)


def test_both_layouts_of_the_card_show_it_unless_a_model_takes_all(tmp_path: Path) -> None:
    texts = {}
    for name, script in {"takes all": chat(WORD), "thinks": thinker}.items():
        with Double(then=script) as server:
            write_card(card_of(put(tmp_path / name / "work", server), CardContent("A set")), tmp_path / name)
        for file in ("card.md", "card.html"):
            texts[name, file] = (tmp_path / name / file).read_text(encoding="utf-8")

    told = {key: "temperature 0.25 not accepted" in text for key, text in texts.items()}
    assert {key[0] for key, there in told.items() if there} == {"thinks"} and sum(told.values()) == 2


def test_answers_with_and_without_a_setting_are_counted_apart(tmp_path: Path) -> None:
    """As behind a router, whose providers differ."""
    with Double([chat(WORD)] * 2, then=thinker) as server:
        done = put(tmp_path, server)
    assert [row[2:] for row in otherwise(done) if "temperature" in row[2]] == [[DROPPED[2], "4 of 6"]]


def test_a_form_that_is_not_accepted_is_recorded_too(tmp_path: Path) -> None:
    with Double(
        then=lambda seen: complaint("response_format") if "response_format" in seen.body else chat(WORD)
    ) as server:
        done = put(tmp_path, server)

    what = "response_format json_schema not accepted: the form was asked for in words alone"
    assert otherwise(done) == [["asked", "openai:gpt-x", what, "6 of 6"]]


def test_a_finished_set_and_a_newer_version_of_the_step_keep_the_record(tmp_path: Path) -> None:
    with Double(then=thinker) as server:
        put(tmp_path, server)
        paid = len(server.seen)
        finished, newer = put(tmp_path, server), put(tmp_path, server, version=2)

    assert otherwise(finished) == otherwise(newer) == ALL and len(server.seen) == paid
    assert (finished[-1].ran, newer[-1].ran) == (False, True)


def test_answers_of_earlier_versions_are_read_and_said_to_be_unrecorded(tmp_path: Path) -> None:
    with Double(then=thinker) as server:
        put(tmp_path, server)
        with sqlite3.connect(tmp_path / "work.sqlite") as sql:  # as they wrote it
            sql.executescript("DROP TABLE provenance; DROP TABLE uses")
        sql.close()
        paid = len(server.seen)
        finished, again = otherwise(put(tmp_path, server)), otherwise(put(tmp_path, server, version=2))

    assert finished == [] and len(server.seen) == paid
    assert again == [["asked", "openai:gpt-x", "whether its settings were accepted is not recorded", "6 of 6"]]


def test_the_limit_of_a_recipe_is_never_raised(tmp_path: Path) -> None:
    with Double(then=chat("", finish="length")) as server:
        done = put(tmp_path, server)
    assert {one.body["max_tokens"] for one in server.seen} == {300} and done[-1].counts.failed == 6


def test_a_strict_recipe_ends_with_the_first_refusal_and_takes_over_no_other_answers(tmp_path: Path) -> None:
    with Double(then=thinker) as server:
        with raises(EyespotError):
            put(tmp_path / "new", server, strict=True)
        assert all("temperature" in one.body for one in server.seen)
        put(tmp_path / "old", server)
        with raises(EyespotError):
            put(tmp_path / "old", server, strict=True)


def test_a_strict_recipe_takes_a_newer_name_for_the_same(tmp_path: Path) -> None:
    with Double(then=lambda seen: complaint("max_tokens") if "max_tokens" in seen.body else chat(WORD)) as server:
        assert put(tmp_path, server, strict=True)[-1].counts.kept == 6


@pytest.mark.parametrize("making", [RmirPipeline, RecosPipeline])
def test_a_recipe_says_strict(tmp_path: Path, making: Any) -> None:
    place = recipe(tmp_path, tmp_path / "gallery")
    text = place.read_text(encoding="utf-8")
    flags = []
    for line in ("", "strict = true\n"):
        place.write_text(line + text, encoding="utf-8")
        how = making(read_recipe(place), tmp_path / "out").running()
        flags.append((how.strict, how.client.strict))

    assert flags == [(False, False), (True, True)]


def exchanges(folder: Path) -> list[Exchange]:
    """All that stands in the work database, in the order of the prompts."""
    with WorkDB(folder) as work, sqlite3.connect(folder / "work.sqlite") as sql:
        owners = [owner for (owner,) in sql.execute("SELECT DISTINCT owner FROM exchanges")]
        return [exchange for owner in owners for exchange in work.exchanges(owner)]


def test_the_body_as_sent_and_the_served_model_stand_under_each_answer(tmp_path: Path) -> None:
    with Double(then=thinker) as server:
        put(tmp_path, server)

    replies = [one for one in exchanges(tmp_path) if one.reply is not None]
    assert len(replies) == 6 and {one.reply.model for one in replies if one.reply} == {"gpt-x-2026-01-01"}
    bodies = [one.body for one in server.seen if not {"temperature", "max_tokens"} & set(one.body)]
    assert sorted(map(json.dumps, bodies)) == sorted(json.dumps(one.body) for one in replies)
    assert {one.trouble for one in exchanges(tmp_path)} > {""}  # what was refused is there, too


def test_what_a_model_said_that_failed_is_kept_as_it_said_it(tmp_path: Path) -> None:
    with Double(then=chat("No word, but a sentence.")) as server:
        done = put(tmp_path, server)
        again = run(steps(server), tmp_path, RunOptions(client=Models(), retry_failed=True))

    texts = [one.reply.text for one in exchanges(tmp_path) if one.reply is not None]
    assert done[-1].counts.failed == again[-1].counts.failed == 6
    assert texts == ["No word, but a sentence."] * len(server.seen) and len(server.seen) == 24


def test_a_picture_is_read_and_encoded_once_a_run(tmp_path: Path) -> None:
    """Judges see an input with each of its candidates: the second request needs no file."""
    place = tmp_path / "one.png"
    Image.new("RGB", (40, 30), "red").save(place)
    with Double(then=chat(WORD)) as server:

        def ask(record: Record, context: Context) -> Outcome:
            shown = [PromptPicture("its digest", str(place))]
            ask_model(context, prompt_of({**MODEL, "url": server.url}, record["id"], Word, shown), Word)
            place.unlink(missing_ok=True)
            return Keep(record)

        run([source(3), Step("asked", MapStep(ask))], tmp_path / "work", RunOptions(client=Models()))
        sent = [
            part["image_url"]
            for seen in server.seen
            for part in seen.body["messages"][0]["content"]
            if part["type"] == "image_url"
        ]

    assert len(sent) == 3 and sent[0] == sent[1] == sent[2]


@pytest.mark.parametrize("batch", [False, True])
def test_anthropic_caches_all_but_the_candidate_and_what_is_stored_costs_a_quarter_more(
    tmp_path: Path, batch: bool
) -> None:
    """In a batch nobody knows what will be read again, and nothing is marked; what was read has its own price."""
    pictures = [PromptPicture(name, str(tmp_path / f"{name}.png")) for name in ("input", "candidate")]
    for picture in pictures:
        Image.new("RGB", (8, 8)).save(picture.path)
    read = {"cache_creation_input_tokens": 400, "cache_read_input_tokens": 1000}
    reply = message(WORD)
    reply.data["usage"] = {"input_tokens": 100, "output_tokens": 10, **read}

    def ask(record: Record, context: Context) -> Outcome:
        way = {"use": "anthropic:m", "url": server.url}
        ask_model(context, prompt_of(way, "Does the second answer?", Word, pictures), Word)
        return Keep(record)

    batches = BatchServer(lambda _seen: reply)
    with Double(then=reply, offers=batches if batch else {}) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "k")
        models = Models(prices=Prices({"m": Price(4.0, 20.0, "2026", Path(), 0.4, 0.5, 0.2)}))
        options = RunOptions(client=models, batch=batch)
        done = run([source(1), Step("asked", MapStep(ask))], tmp_path / "work", options)

    sent = [json.loads(body) for body in batches.sent] or [seen.body for seen in server.seen]
    content = sent[0]["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "text", "image", "image"]
    assert ["cache_control" in part for part in content] == [False, False, not batch, False]
    price = (100 * 4 + 400 * 5 + 1000 * 0.4 + 10 * 20) / (2 if batch else 1)
    assert done[-1].cost.spent.money == pytest.approx(price / 1e6)
