"""A model behind an address that abstains, refuses, repeats itself and breaks the format: the losses tell all of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot.curate.recos import making, subtasks
from eyespot.curate.recos.captions import DOMAINS
from eyespot.curate.recos.making import RecosSteps
from eyespot.curate.recos.pipeline import RecosPipeline, Round
from eyespot.pipelines import BudgetSpent, CostLimits, drops, read_recipe, run
from tests.command import run_eyespot
from tests.worlds.recos import Rates, Scripted, behind, files, made, put, recipe
from tests.worlds.servers import Double

pytestmark = pytest.mark.long  # whole pipelines

ONLY_PHOTOS = {"draw": "subtasks = {}"}
COLLECT = """
[steps.subtasks.colour]
count = 16
words = ["red", "blue", "green"]
[steps.subtasks.object]
count = 8
queries = ["a windmill", "a fish", "ice"]
"""


def of(made: RecosSteps, name: str):
    return next(one for one in made.done if one.step.name == name)


def test_pictures_and_captions_are_lost_as_often_as_the_model_misbehaved(tmp_path: Path, gallery: Path) -> None:
    settings = {**ONLY_PHOTOS, "collect": f'galleries = {{ own = "{gallery}" }}\n{COLLECT}'}
    script = Scripted(Rates(abstains=0.25, breaks=0.4, refuses=0.15, repeats=0.4))
    with Double(then=script) as server:
        found = made(recipe(tmp_path, gallery, behind(server.url), **settings), tmp_path / "out")
    replies, counts = script.counts("Captions"), of(found, "caption").counts
    swaps, dropped = script.counts("Swaps"), dict(of(found, "confuse").counts.dropped)

    assert {"broken", "refused", "abstained", "repeated", "answered"} == set(replies)
    assert counts.dropped == {
        "declined": replies["refused"],
        "no answer": replies["broken"],
        "repeated caption": replies["repeated"],
        "unsuitable": replies["abstained"],
    }
    assert counts.kept == 5 * replies["answered"] + 4 * replies["repeated"] and counts.failed == replies["broken"]
    strange = [one.record for one in drops(of(found, "confuse").folder) if one.reason == "caption of no original"]
    assert sum(one["number"] == 3 for one in strange) == swaps["answered"]  # each answer speaks of a caption 9
    assert len(strange) == dropped.pop("caption of no original", 0)  # others are of captions that were lost before
    losses = {"declined": swaps["refused"], "no answer": swaps["broken"], "unsuitable": swaps["abstained"]}
    assert {reason: dropped.get(reason, 0) for reason in losses} == losses
    assert set(dropped) <= {*losses, "no attribute of the sub-task", "too much is changed"}


def test_lost_pictures_are_replaced_and_no_caption_is_asked_for_twice(tmp_path: Path, gallery: Path) -> None:
    """The note says that a larger count takes further pictures."""
    script, out = Scripted(Rates(abstains=0.4)), tmp_path / "out"
    line = '[steps.subtasks.colour]\ncount = 6\nwords = ["red", "blue", "green", "white"]\n'
    collect = {**ONLY_PHOTOS, "collect": f'galleries = {{ own = "{gallery}" }}\n{line}'}
    with Double(then=script) as server:
        first = made(recipe(tmp_path, gallery, behind(server.url), **collect), out)
        assert any("of 6 pictures have captions" in note for note in making.notes(first))
        collect["collect"] = collect["collect"].replace("count = 6", "count = 12")
        again = made(recipe(tmp_path, gallery, behind(server.url), **collect), out)
        prompts = Counter(put(seen) for seen in server.seen if '"Captions"' in str(seen.body).replace("'", '"'))

    before, after = ({one["image"] for one in found.captions("v0")} for found in (first, again))
    assert len(before) < 6 and before < after
    assert set(prompts.values()) == {1}
    gone = len({one.record["image"] for one in drops(of(again, "caption").folder)})
    assert f"{gone} of 12 pictures of v0 lost all their captions and are left out with them." in list(
        making.notes(again)
    )


def test_what_is_wanted_is_reached_or_the_gap_is_named(tmp_path: Path, gallery: Path) -> None:
    """Lost captions are replaced, then further photos are taken; a drawn sub-task is drawn on."""
    script, out = Scripted(Rates(abstains=0.3, repeats=0.5)), tmp_path / "out"
    lines = '[steps.subtasks.colour]\nwant = 5\nwords = ["red", "blue", "green", "white"]\n'
    lines += "[steps.subtasks.numerical]\nwant = 3\n"
    settings = {"draw": "subtasks = { numerical = 1 }", "complete": "least = 5"}
    settings["collect"] = f'galleries = {{ own = "{gallery}" }}\n{lines}'
    with Double(then=script) as server:
        place = recipe(tmp_path, gallery, behind(server.url), **settings)
        found = in_rounds(place, out)
        first, ran_again = found.captions("v0"), [one.ran for one in in_rounds(place, out).done]
        prompts = Counter(put(seen) for seen in server.seen if '"Captions"' in str(seen.body).replace("'", '"'))
        settings["collect"] = settings["collect"].replace("want = 5", "want = 30")
        more = in_rounds(recipe(tmp_path, gallery, behind(server.url), **settings), out)

    assert Counter(one["subtask"] for one in {one["image"]: one for one in first}.values()) == {
        "colour": 5,
        "numerical": 3,
    }
    assert set(Counter(one["image"] for one in first).values()) == {5}
    replaced = {one["image"] for one in first if one["number"] > 5}
    assert replaced and replaced <= set(found.pipe.round.captions)
    assert set(prompts.values()) == {1} and not any(ran_again)
    ((name, wanted, taken, left, cause),) = making.shortfalls(more)
    assert (name, wanted, taken) == ("colour", 30, 19) and 5 < left < 19 and "step" in cause
    assert any(note.startswith(f"Sub-task colour: {left} of 30 pictures") for note in making.notes(more))


def in_rounds(place: Path, out: Path, limits: CostLimits | None = None) -> RecosSteps:
    pipe = RecosPipeline(read_recipe(place), out)
    return RecosSteps(*making.in_rounds(pipe, lambda steps: run(steps, pipe.work, pipe.running(limits))))


def test_rounds_that_are_cut_off_end_in_the_same_files(tmp_path: Path, gallery: Path) -> None:
    """Wherever the budget ends, and no question is paid for twice."""
    collect = (
        f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\nwant = 6\nwords = ["red", "blue", "white"]'
    )
    settings = {**ONLY_PHOTOS, "collect": collect, "complete": "least = 5"}
    with Double(then=Scripted(Rates(abstains=0.3, repeats=0.5))) as server:
        place = recipe(tmp_path, gallery, behind(server.url), **settings)
        whole, asked = in_rounds(place, tmp_path / "whole"), len(server.seen)
        for part in (0.2, 0.5, 0.9):
            with pytest.raises(BudgetSpent):
                in_rounds(place, tmp_path / "cut", CostLimits(calls=int(part * asked)))
        again = in_rounds(place, tmp_path / "cut")

    assert again.pipe.round == whole.pipe.round != Round() and len(server.seen) == 2 * asked
    assert files(tmp_path / "cut") == files(tmp_path / "whole")


@pytest.mark.skipif(find_spec("harper") is None, reason="harper is not installed")
@pytest.mark.parametrize("domain", ["everyday", "plants"])
def test_a_domain_of_the_package_runs_to_the_end(domain: str, tmp_path: Path, gallery: Path) -> None:
    """Sub-tasks are those of the file, also ones that the package does not know; a model checks every caption."""
    text, place = (DOMAINS / f"{domain}.toml").read_text(encoding="utf-8"), tmp_path / "mine.toml"
    with Double(then=Scripted(Rates(untrue=0.2))) as server:
        models = [f'{name} = {{ use = "openai:{name}", url = "{server.url}" }}' for name in ("writer", "judge")]
        text = re.sub(r"(?s)\[models\].*?\n\n", "\n".join(["[models]", *models, "\n"]), text)
        place.write_text(re.sub("= (150|60)", "= 4", text), encoding="utf-8")
        settings = read_recipe(place).steps[2].settings["subtasks"]
        photos = [name for name, it in settings.items() if "queries" in it and name != "ocr"]
        line = ("build", "recos", place, "-g", f"own={gallery}", "--out", tmp_path / "out", "--limit", 15, "--json")
        done = run_eyespot(*line)

    assert done.returncode == 0, done.stderr
    steps = {one["name"]: one for one in json.loads(done.stdout)["steps"]}
    captions = pq.read_table(tmp_path / "out" / "set" / "captions.parquet").to_pylist()
    forms = [
        (seen.body["response_format"]["json_schema"]["name"], str(seen.body["messages"][0])) for seen in server.seen
    ]
    texts = [text for form, text in forms if form == "Captions"]
    assert texts and [text for text in texts if not any(settings[name]["about"] in text for name in photos)] == []
    assert steps["verify"]["dropped"]["not true of its picture"] > 0
    attributes = {one["attribute"] for one in captions if one["version"] == "v1"}
    assert attributes and attributes <= {it for one in settings.values() for it in one["attributes"]}
    missing = {one["subtask"]: one["wanted"] for one in json.loads(done.stdout)["missing"]}  # of a trial: nearly all
    assert missing == {name: settings[name]["want"] for name in missing} and set(photos) <= set(missing)


def test_the_everyday_domain_says_what_the_package_knows() -> None:
    (collect,) = [step for step in read_recipe(DOMAINS / "everyday.toml").steps if step.step == "collect"]
    for name, told in collect.settings["subtasks"].items():
        known = subtasks.subtask(name)
        assert (told["about"], tuple(told["attributes"])) == (known.about, known.attributes)
