"""A model behind an address that abstains, refuses, repeats itself and breaks the format: the losses tell all of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from eyespot.curate.recos import card
from eyespot.curate.recos.card import RecosSteps
from eyespot.pipelines import BudgetSpent, CostLimits, drops
from tests.worlds.recos import Rates, Scripted, behind, files, made, put, ran, recipe
from tests.worlds.servers import Double

pytestmark = pytest.mark.long  # whole pipelines

RATES = Rates(abstains=0.25, breaks=0.15, refuses=0.15, repeats=0.4)
ONLY_PHOTOS = {"draw": "subtasks = {}"}
COLLECT = """
[steps.subtasks.colour]
count = 8
words = ["red", "blue", "green"]
[steps.subtasks.object]
count = 4
queries = ["a windmill", "a fish", "ice"]
"""


def of(made: RecosSteps, name: str):
    return next(one for one in made.done if one.step.name == name)


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> tuple[RecosSteps, Scripted]:
    folder, script = tmp_path_factory.mktemp("misbehaved"), Scripted(RATES)
    settings = {**ONLY_PHOTOS, "collect": f'galleries = {{ own = "{gallery}" }}\n{COLLECT}'}
    with Double(then=script) as server:
        return made(recipe(folder, gallery, behind(server.url), **settings), folder / "out"), script


def test_pictures_are_lost_as_often_as_the_model_misbehaved(misbehaved: tuple[RecosSteps, Scripted]) -> None:
    found, script = misbehaved
    replies, counts = script.counts("Captions"), of(found, "caption").counts

    assert {"broken", "refused", "abstained", "repeated", "answered"} == set(replies)
    assert counts.dropped == {
        "declined": replies["refused"],
        "no answer": replies["broken"],
        "repeated caption": replies["repeated"],
        "unsuitable": replies["abstained"],
    }
    assert counts.kept == 5 * replies["answered"] + 4 * replies["repeated"]


def test_confusing_captions_are_lost_as_often_too(misbehaved: tuple[RecosSteps, Scripted]) -> None:
    found, script = misbehaved
    replies, counts = script.counts("Swaps"), of(found, "confuse").counts
    dropped = dict(counts.dropped)

    assert dropped.pop("caption of no original", 0) == replies["answered"]  # each answer speaks of a caption 9
    losses = {"declined": replies["refused"], "no answer": replies["broken"], "unsuitable": replies["abstained"]}
    assert {reason: dropped.get(reason, 0) for reason in losses} == losses
    assert set(dropped) <= {*losses, "no attribute of the sub-task", "too much is changed"}


def test_what_a_model_did_not_answer_failed_and_can_be_tried_again(misbehaved: tuple[RecosSteps, Scripted]) -> None:
    found, script = misbehaved
    failed = [one for one in drops(of(found, "caption").folder) if one.reason == "no answer"]

    assert of(found, "caption").counts.failed == len(failed) == script.counts("Captions")["broken"] > 0


def test_nothing_is_asked_twice_and_the_budget_holds(tmp_path: Path, gallery: Path) -> None:
    settings = {**ONLY_PHOTOS, "collect": f'galleries = {{ own = "{gallery}" }}\n{COLLECT}'}
    with Double(then=Scripted()) as server:
        place = recipe(tmp_path, gallery, behind(server.url), **settings)
        with pytest.raises(BudgetSpent):
            ran(place, tmp_path / "out", CostLimits(calls=5))
        assert len(server.seen) == 5
        made(place, tmp_path / "out")
        calls, before = len(server.seen), files(tmp_path / "out")
        made(place, tmp_path / "out")

        assert len(server.seen) == calls == len({str(one.body) for one in server.seen})
        assert files(tmp_path / "out") == before


def test_a_sub_task_that_lost_pictures_is_filled_up_and_no_caption_is_asked_for_twice(
    tmp_path: Path, gallery: Path
) -> None:
    """The note says how many spare pictures it takes; with them the sub-task has the wanted number."""
    script, out = Scripted(Rates(abstains=0.4)), tmp_path / "out"
    line = '[steps.subtasks.colour]\ncount = 6\nwords = ["red", "blue", "green", "white"]\n'
    collect = {**ONLY_PHOTOS, "collect": f'galleries = {{ own = "{gallery}" }}\n{line}'}
    with Double(then=script) as server:
        first = made(recipe(tmp_path, gallery, behind(server.url), **collect), out)
        (note,) = [note for note in card.notes(first) if "spare = " in note]
        spare = int(note.partition("spare = ")[2].split()[0])
        collect["collect"] += f"spare = {spare + 4}\n"
        again = made(recipe(tmp_path, gallery, behind(server.url), **collect), out)
        prompts = Counter(put(seen) for seen in server.seen if '"Captions"' in str(seen.body).replace("'", '"'))

    before, after = ({one["image"] for one in found.captions("v0")} for found in (first, again))
    assert len(before) < len(after) == 6 and before < after
    assert set(prompts.values()) == {1}
    notes = list(card.notes(again))
    gone = len({one.record["image"] for one in drops(of(again, "caption").folder)})
    assert not [note for note in notes if "spare = " in note]
    assert f"{gone} of {6 + gone} pictures of v0 lost all their captions and are left out with them." in notes


def test_drawn_pictures_are_captioned_by_who_drew_them(tmp_path: Path, gallery: Path) -> None:
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.numerical]\ncount = 5'
    with Double(then=Scripted()) as server:
        settings = {"draw": "subtasks = { numerical = 8 }", "collect": collect}
        found = made(recipe(tmp_path, gallery, behind(server.url), **settings), tmp_path / "out")

        assert server.seen == [] and of(found, "caption").counts.kept == 25
