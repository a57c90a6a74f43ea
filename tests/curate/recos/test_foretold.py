"""What a set would cost at most, counted by hand, before anything is asked."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.pipelines import plan as plan_of
from eyespot.pipelines import read_recipe, run
from tests.command import run_eyespot
from tests.worlds.recos import recipe

MODEL = 'writer = { use = "openai:gpt-5" }'


def test_the_most_that_can_come_to_each_step(tmp_path: Path, gallery: Path) -> None:
    """Nine are drawn; v0 has eleven pictures, seven of them photos; in two rounds each caption is written again."""
    making = RecosPipeline(read_recipe(recipe(tmp_path, gallery, MODEL)), tmp_path / "out")

    plan = {one.name: (one.records, one.spent.calls) for one in plan_of(making.steps, making.work, making.running())}

    assert plan == {
        "draw": (0, 0),
        "render": (9, 0),
        "collect": (9, 0),
        "caption": (11, 7),
        "discriminate": (55, 7 * 5 * 2),
        "review": (55, 0),
        "complete": (55, 0),
        "pair": (55, 0),
        "confuse": (66, 7),
        "confuse-apart": (110, 0),
        "expand": (110, 0),
        "hash": (176, 0),  # 22 pictures bring three each
        "distinct": (176, 0),
    }


def test_what_is_finished_makes_the_rest_exact(tmp_path: Path, gallery: Path) -> None:
    """Of six photos that are wanted of a kind the gallery has less."""
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 40\nwords = ["red"]'
    place = recipe(tmp_path, gallery, MODEL, draw="subtasks = {}", collect=collect)
    making = RecosPipeline(read_recipe(place), tmp_path / "out")
    photos = run(making.steps[:3], making.work, making.running())[-1].counts.kept

    plan = {one.name: one for one in plan_of(making.steps, making.work, making.running())}

    assert 0 < photos < 40 and plan["collect"].finished
    assert (plan["caption"].spent.calls, plan["discriminate"].spent.calls) == (photos, photos * 5 * 2)


def test_the_verb_tells_calls_and_money_without_a_key(tmp_path: Path, gallery: Path) -> None:
    shown = run_eyespot("build", "recos", recipe(tmp_path, gallery, MODEL), "--out", tmp_path / "made", "--dry-run")
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("discriminate")]
    assert "at most 55 records" in line and "70 calls" in line and "$" in line and not line.endswith("$0.00")
