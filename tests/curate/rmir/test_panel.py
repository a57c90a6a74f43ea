"""The panel: every judge is asked, whatever it shares with another; and what is wrong with models is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot.curate.rmir import candidates
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.pipelines import BatchStep, RunOptions, Step, drops, plan, read_recipe, run
from eyespot.pipelines.outcomes import Added
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.rmir import DEMONSTRATION, Rates, Scripted, behind, ran, recipe
from tests.worlds.servers import Double, chat


def test_two_servers_of_one_model_are_two_judges(tmp_path: Path, gallery: Path) -> None:
    vote = {"target_description": "b", "input_description": "a", "reasoning": "r"}
    yes, no = (Double(then=chat(json.dumps(vote | {"verdict": verdict}))) for verdict in ("true", "false"))
    with Double(then=Scripted(Rates())) as other, yes, no:
        models = behind(other.url).splitlines()[0] + "".join(
            f'\n{name} = {{ use = "openai:local", url = "{server.url}" }}'
            for name, server in (("first", yes), ("second", no))
        )
        place = recipe(tmp_path, gallery, models, inputs="count = 1", candidates="images = 2")
        place.write_text(place.read_text().replace("images = 6\ntexts = 2\n", "").replace("second = 2", "second = 1"))
        found = ran(place, tmp_path)

    votes = {(vote["judge"], vote["verdict"]) for vote in found.votes()}
    assert votes == {("first", "true"), ("second", "false")} and len(yes.seen) == len(no.seen) > 0


@pytest.mark.parametrize("option", ['side = "x"', "url = 5", "attempts = 2.5", "timeout = true", 'key = "secret"'])
def test_an_option_of_another_kind_is_refused(tmp_path: Path, gallery: Path, option: str) -> None:
    models = "\n".join(f'{name} = {{ use = "openai:m", {option} }}' for name in ("teacher", "first", "second"))
    with raises(UsageError):
        RmirPipeline(read_recipe(recipe(tmp_path, gallery, models)), tmp_path).check()


def test_a_model_that_nobody_knows_is_refused(tmp_path: Path, gallery: Path) -> None:
    unknown = DEMONSTRATION.replace('"demonstration:first"', '"nobody:m"')

    with raises(UsageError):
        RmirPipeline(read_recipe(recipe(tmp_path, gallery, unknown)), tmp_path).check()


@pytest.mark.parametrize("step", ["questions", "checked", "judged"])
def test_a_prompt_of_another_name_is_refused(tmp_path: Path, gallery: Path, step: str) -> None:
    place = recipe(tmp_path, gallery, **{step: 'prompts = { question = "recipe.toml" }'})
    with raises(UsageError):
        _ = RmirPipeline(read_recipe(place), tmp_path).steps


def test_a_query_without_candidates_is_dropped_and_told(tmp_path: Path, gallery: Path) -> None:
    """No photo is wanted, and nothing is said of any that could be searched."""
    making = RmirPipeline(read_recipe(recipe(tmp_path, gallery)), tmp_path)
    seeds = run(making.steps[:1], tmp_path / "seeds")[0].records
    query = {"id": "q", "kind": "causal", "labels": "", "question": "Why?", "target": "a hammer"}
    query |= {"image": next(iter(seeds))["id"], "path": "x.jpg"}
    settings = candidates.CandidateSettings(images=0)
    work = BatchStep(lambda records, _context: candidates.retrieve(making.world, settings, records, seeds))

    steps = [Step("queries", BatchStep(lambda _r, _c: [Added(query)])), Step("candidates", work)]
    done = run(steps, tmp_path / "work")[-1]

    assert [(one.record["id"], one.reason) for one in drops(done.folder)] == [("q", candidates.NOTHING)]


def test_a_dry_run_goes_on_counting_after_the_finished_steps(tmp_path: Path, gallery: Path) -> None:
    """Two photos are drawn, so that six questions may be checked, and 8 candidates of each get 3 votes."""
    models = "\n".join(f'{name} = {{ use = "openai:m" }}' for name in ("teacher", "first", "second"))
    pipe = RmirPipeline(read_recipe(recipe(tmp_path, gallery, models, inputs="count = 2")), tmp_path)
    how = RunOptions(pipe.recipe.seed)
    run(pipe.steps[:2], pipe.work, how)

    planned = plan(pipe.steps, pipe.work, how)

    calls = {one.name: one.spent.calls for one in planned}
    assert [one.name for one in planned if one.finished] == ["seeds", "inputs"]
    assert [calls[name] for name in ("questions", "checked", "judged")] == [2, 6, 6 * 8 * 3]
