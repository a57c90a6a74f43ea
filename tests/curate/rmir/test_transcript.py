"""What a run says of one record: each prompt, each reply and each decision."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.rmir import panel
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.transcript import Part, as_lines, as_page, first_record, transcript
from eyespot.pipelines import Context, Prompt
from eyespot.pipelines.work_db import WorkDB
from eyespot.types import NothingFound, UsageError, no_progress
from tests.cli.conftest import run_json
from tests.command import refuses, run_eyespot
from tests.worlds.rmir import Rates, Scripted, behind, made, ran, recipe
from tests.worlds.servers import Double, Response, Seen, chat


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> tuple[FinishedSteps, Double]:
    """A set by models behind an address, and the server, with all that it got."""
    pytest.importorskip("openai")
    out = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch, Double(then=Scripted(Rates(breaks=0.03))) as server:
        patch.setenv("OPENAI_API_KEY", "k")
        return made(recipe(out, gallery, behind(server.url), inputs="count = 4"), out), server


def of(parts: list[Part], step: str) -> Part:
    return next(part for part in parts if part["step"] == step)


def test_a_query_goes_from_its_photo_to_the_end(served: tuple[FinishedSteps, Double]) -> None:
    made, _ = served
    out, query = made.pipe.out, made.queries[0]
    parts = transcript(out, query["id"])

    assert [part["step"] for part in parts] == [one.step.name for one in made.done] and first_record(out) == query["id"]
    (check,) = of(parts, "checked")["calls"]
    assert query["question"] in check["words"] and check["model"] == "openai:teacher" and check["answer"]["fits"]
    triplets = {one["id"] for one in made.triplets if one["query"] == query["id"]}
    votes = of(parts, "judged")["calls"]
    assert {one["record"] for one in votes} == triplets | {
        one["id"] for one in made.controls if one["query"] == query["id"]
    }
    assert len(votes) == len(made.seats) * len({one["record"] for one in votes})
    others = {one["record"] for part in parts for one in part["decisions"]} - {query["image"]}
    assert all(id.startswith(query["id"]) for id in others)  # no question of another kind
    assert of(parts, "split")["decisions"][0]["fields"]["tsr"] == query["tsr"]


def test_all_replies_stand_there_word_for_word_and_those_that_failed(served: tuple[FinishedSteps, Double]) -> None:
    made, server = served
    calls = [
        call
        for photo in made.records("inputs")
        for part in transcript(made.pipe.out, photo["id"])
        for call in part["calls"]
    ]

    assert sum(len(call["replies"]) for call in calls) == len(server.seen)
    failed = [call for call in calls if call["answer"] is None]
    assert failed and all(call["replies"][-1]["text"] == "I would rather tell you a story." for call in failed)
    assert all("Question" in call["words"] or "question" in call["words"] for call in failed)


def test_the_lines_and_the_page_have_all_of_it(served: tuple[FinishedSteps, Double]) -> None:
    made, _ = served
    parts = transcript(made.pipe.out, made.queries[0]["id"])
    lines, page = "\n".join(as_lines(parts)), as_page("A query", {made.queries[0]["id"]: parts})

    assert all(f"== {part['step']}" in lines and f"<h3>{part['step']}</h3>" in page for part in parts)
    assert lines.count("Be strict.") == 1  # rules are the same for all votes, and stand there once
    sent = {id for part in parts for call in part["calls"] for id in call["pictures"]}
    assert page.count("data:image/jpeg;base64,") == len(sent)
    printed = run_json("build", "transcript", made.pipe.out)["records"]  # of the first record
    assert printed == json.loads(json.dumps({made.queries[0]["id"]: parts}))


def test_a_model_that_runs_offline_and_a_run_of_an_earlier_version(demonstrated: FinishedSteps, copied: Path) -> None:
    query = demonstrated.queries[0]["id"]
    parts = transcript(copied, query)
    (check,) = of(parts, "checked")["calls"]
    assert f"  <  {check['answer']}" in list(as_lines(parts)) and "dependence" in as_page("A query", {query: parts})
    with sqlite3.connect(copied / "work" / "work.sqlite") as sql:
        sql.executescript(
            "CREATE TABLE old AS SELECT step, prompt FROM uses; DROP TABLE uses; ALTER TABLE old RENAME TO uses"
        )
    sql.close()
    with WorkDB(copied / "work"):
        pass

    assert check["replies"] == [] and check["answer"]["fits"]
    assert not any(part["calls"] for part in transcript(copied, query))


def test_what_is_not_there_is_refused(served: tuple[FinishedSteps, Double], tmp_path: Path) -> None:
    with pytest.raises(NothingFound):
        transcript(served[0].pipe.out, "nobody")
    with pytest.raises(UsageError):
        transcript(tmp_path, "nobody")
    refuses("build", "transcript", tmp_path)


def test_what_prompts_have_in_common_stands_before_the_pictures(served: tuple[FinishedSteps, Double]) -> None:
    first: dict[str, list[dict[str, Any]]] = {}
    for seen in served[1].seen:
        first.setdefault(seen.body["response_format"]["json_schema"]["name"], seen.body["messages"][0]["content"])

    kinds = {name: [part["type"].partition("_")[0] for part in parts] for name, parts in first.items()}
    assert kinds == {
        "Questions": ["text", "image"],
        "Checked": ["text", "image", "text"],
        "Vote": ["text", "image", "image"],
    }
    assert "Question:" not in first["Checked"][0]["text"] and "Question:" in first["Checked"][2]["text"]


@pytest.mark.parametrize(("given", "side"), [({}, 512), ({"side": 768}, 768)])
def test_a_judge_sees_512_pixels_unless_its_model_says_otherwise(given: dict[str, int], side: int) -> None:
    sides, said = [], {"target_description": "", "input_description": "", "reasoning": "", "verdict": "true"}

    def ask(prompt: Prompt) -> dict[str, Any]:
        sides.append(prompt["side"])
        return said

    triplet = {"question": "Why?", "kind": "causal", "image": "a", "path": "a", "candidate": "b", "candidate_path": "b"}
    seats = panel.seats({"small": {"use": "openai:small", **given}}, {"small": 2})
    panel.vote(triplet, Context("judged", 0, ask, no_progress), seats, "{question}")
    assert sides == [side, side]


def test_money_at_an_unknown_price_is_null(served: tuple[FinishedSteps, Double]) -> None:
    rows = [json.loads(line) for line in (served[0].pipe.out / "set" / "losses.jsonl").read_text().splitlines()]
    assert {(row["step"], row["money"]) for row in rows if row["step"] in ("seeds", "judged")} == {
        ("seeds", 0.0),
        ("judged", None),
    }


def believer(seen: Seen) -> Response:
    """Accepts whatever it sees, unless the prompt demands care: then nothing."""
    if seen.body["response_format"]["json_schema"]["name"] != "Vote":
        return Scripted(Rates())(seen)
    verdict = "false" if "Take care." in json.dumps(seen.body["messages"]) else "true"
    return chat(json.dumps({"target_description": "", "input_description": "", "reasoning": "", "verdict": verdict}))


def test_two_prompts_stand_side_by_side_on_the_same_photos(
    gallery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    calls, done = [], []
    with Double(then=believer) as server:
        for name, count, words in (("easy", 3, "Vote."), ("strict", 3, "Take care."), ("other", 2, "Vote.")):
            prompt = f'prompt = """{words}\n{{question}}"""'
            place = recipe(tmp_path, gallery, behind(server.url), inputs=f"count = {count}", judged=prompt)
            done.append(ran(place, tmp_path / name))
            calls.append(len(server.seen) - sum(calls))
    runs = [tmp_path / "easy", tmp_path / "strict"]
    found = json.loads(run_eyespot("build", "compare", *runs, "--json").stdout)
    easy, strict = (found[str(run)] for run in runs)

    assert easy["photos"] == strict["photos"] == 3
    assert easy["controls"] == strict["controls"] == len(done[0].controls) > 0
    assert (easy["accepted"], strict["accepted"]) == (easy["controls"], 0)
    assert easy["kept"]["queries"] == len(done[0].queries) > strict["kept"]["queries"] == 0
    assert [one["spent"]["calls"] for one in (easy, strict)] == calls[:2] and easy["spent"]["money"] is None
    lines = run_eyespot("build", "compare", *runs).stdout
    assert f"0 of {strict['controls']} (0% to " in lines and "unknown" in lines
    refuses("build", "compare", runs[0], tmp_path / "other")
