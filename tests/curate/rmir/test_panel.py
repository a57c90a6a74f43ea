"""The panel: every judge is asked, whatever it shares with another, and prompts are one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot.curate.rmir import candidates
from eyespot.curate.rmir.dry_run import plan_steps
from eyespot.curate.rmir.making import RmirJob
from eyespot.pipelines import BatchStep, RunOptions, Step, drops, read_recipe, run
from eyespot.pipelines.outcomes import Added
from eyespot.types import UsageError
from tests.worlds.rmir import DEMONSTRATION, Rates, Scripted, behind, ran, recipe
from tests.worlds.servers import Double, Response, Seen, chat


def says(verdict: str, requests: list[Seen]):
    def answer(seen: Seen) -> Response:
        requests.append(seen)
        payload = {"target_description": "b", "input_description": "a", "reasoning": "r", "verdict": verdict}
        return chat(json.dumps(payload))

    return answer


def test_two_servers_of_one_model_are_two_judges(tmp_path: Path, gallery: Path) -> None:
    yes, no = list[Seen](), list[Seen]()
    one, two = Double(then=says("true", yes)), Double(then=says("false", no))
    with Double(then=Scripted(Rates())) as other, one, two:
        models = behind(other.url).splitlines()[0] + "".join(
            f'\n{name} = {{ use = "openai:local", url = "{url}" }}'
            for name, url in (("first", one.url), ("second", two.url))
        )
        place = recipe(tmp_path, gallery, models, inputs="count = 1", candidates="images = 2")
        place.write_text(place.read_text().replace("images = 6\ntexts = 2\n", "").replace("second = 2", "second = 1"))
        found = ran(place, tmp_path)

    votes = {(vote["judge"], vote["verdict"]) for vote in found.votes()}
    assert votes == {("first", "true"), ("second", "false")} and len(yes) == len(no) > 0


def test_a_prompt_of_ones_own_may_show_json(tmp_path: Path, gallery: Path) -> None:
    (tmp_path / "mine.md").write_text('Answer as {"verdict": "true"}. {question}')
    with Double(then=Scripted(Rates())) as server:
        place = recipe(tmp_path, gallery, behind(server.url), inputs="count = 1", judged='prompt = "mine.md"')
        ran(place, tmp_path)
    prompts = [str(one.body["messages"]) for one in server.seen]

    assert any('Answer as {"verdict": "true"}. What is' in one for one in prompts)


@pytest.mark.parametrize("step", ["questions", "checked", "judged"])
def test_a_prompt_of_another_name_is_refused(tmp_path: Path, gallery: Path, step: str) -> None:
    place = recipe(tmp_path, gallery, **{step: 'prompts = { question = "recipe.toml" }'})

    with pytest.raises(UsageError, match=f"step {step} has one prompt, and no 'question'"):
        _ = RmirJob(read_recipe(place), tmp_path).pipeline().steps


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ('side = "x"', "openai:m: side is 'x'; give a number"),
        ("url = 5", "openai:m: url is 5; give an address"),
        ("attempts = 2.5", "openai:m: attempts is 2.5; give a number"),
        ("timeout = true", "openai:m: timeout is True; give a number"),
    ],
)
def test_an_option_of_another_kind_is_told_in_a_sentence(
    tmp_path: Path, gallery: Path, option: str, sentence: str
) -> None:
    models = "\n".join(f'{name} = {{ use = "openai:m", {option} }}' for name in ("teacher", "first", "second"))

    with pytest.raises(UsageError, match=sentence):
        RmirJob(read_recipe(recipe(tmp_path, gallery, models)), tmp_path).check()


def test_a_demonstration_that_is_told_no_share_says_so(tmp_path: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:teacher"', '"demonstration:teacher", abstains = "often"')

    with pytest.raises(UsageError, match="the demonstration's abstains is 'often'; give a share"):
        ran(recipe(tmp_path, gallery, models), tmp_path)


def test_a_query_without_candidates_is_dropped_and_told(tmp_path: Path, gallery: Path) -> None:
    """No photo is wanted, and nothing is said of any that could be searched."""
    making = RmirJob(read_recipe(recipe(tmp_path, gallery)), tmp_path)
    seeds = run(making.pipeline().steps[:1], tmp_path / "seeds")[0].records
    query = {"id": "q", "kind": "causal", "labels": "", "question": "Why?", "target": "a hammer"}
    query |= {"image": next(iter(seeds))["id"], "path": "x.jpg"}
    settings = candidates.CandidateSettings(images=0)
    work = BatchStep(lambda records, _context: candidates.retrieve(making.pipeline().world, settings, records, seeds))

    steps = [Step("queries", BatchStep(lambda _r, _c: [Added(query)])), Step("candidates", work)]
    done = run(steps, tmp_path / "work")[-1]

    assert [(one.record["id"], one.reason) for one in drops(done.folder)] == [("q", candidates.NOTHING)]


def test_a_dry_run_goes_on_counting_after_the_finished_steps(tmp_path: Path, gallery: Path) -> None:
    """Two photos are drawn, so that six questions may be checked, and 8 candidates of each get 3 votes."""
    models = "\n".join(f'{name} = {{ use = "openai:m" }}' for name in ("teacher", "first", "second"))
    pipe = RmirJob(read_recipe(recipe(tmp_path, gallery, models, inputs="count = 2")), tmp_path).pipeline()
    how = RunOptions(pipe.recipe.seed)
    run(pipe.steps[:2], pipe.work, how)

    planned = plan_steps(pipe, how)

    calls = {one.name: one.spent.calls for one in planned}
    assert [one.name for one in planned if one.finished] == ["seeds", "inputs"]
    assert [calls[name] for name in ("questions", "checked", "judged")] == [2, 6, 6 * 8 * 3]
