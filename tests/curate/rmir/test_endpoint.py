"""RMIR against a local server of OpenAI's protocol, with a model that abstains, contradicts itself and breaks form."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from eyespot.curate.rmir import card, panel, questions
from eyespot.curate.rmir.dry_run import plan_steps
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.forms import CONSTRAINTS
from eyespot.curate.rmir.making import RmirJob
from eyespot.pipelines import BudgetSpent, CostLimits, drops, read_recipe, run
from tests.worlds.rmir import Rates, Scripted, behind, files, made, ran, recipe
from tests.worlds.servers import Double

pytestmark = pytest.mark.long  # whole pipelines

BAD = Rates(abstains=0.1, contradicts=0.15, breaks=0.06, refuses=0.06, doubts=0.05)
FEW = "count = 7"


def reasons(found: FinishedSteps, step: str) -> Counter[str]:
    return Counter(one.reason for one in drops(found.of(step).folder))


@pytest.fixture(scope="module")
def misbehaved(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> tuple[FinishedSteps, Scripted, Double]:
    """A set made with such a model, what it did, and the server."""
    out, model = tmp_path_factory.mktemp("misbehaved"), Scripted(BAD)
    with Double(then=model) as server:
        found = made(recipe(out, gallery, behind(server.url), inputs=FEW), out)
    return found, model, server


def test_in_every_step_what_came_is_kept_or_dropped(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    for one in misbehaved[0].done:
        assert one.counts.came + one.counts.added == one.counts.kept + sum(one.counts.dropped.values())


def test_what_the_model_leaves_out_refuses_or_spoils_is_counted(
    misbehaved: tuple[FinishedSteps, Scripted, Double],
) -> None:
    found, model, _ = misbehaved
    did, lost = model.counts("Questions"), reasons(found, "questions")

    assert found.of("questions").counts.failed == did["broken"]
    assert lost[questions.DECLINED] == did["refused"]
    left_out = sum(int(what.split()[-1]) * count for what, count in did.items() if what.startswith("left out"))
    assert sum(count for reason, count in lost.items() if reason.startswith("no fitting question")) == left_out


def test_a_check_that_contradicts_itself_drops_the_question(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, model, _ = misbehaved
    did, lost = model.counts("Checked"), reasons(found, "checked")

    assert lost[questions.AT_ODDS] == did["at odds"] > 0
    assert lost[questions.DECLINED] == did["refused"]
    assert found.of("checked").counts.failed == did["broken"]
    assert not any(lost[questions.FAILS.format(constraint=name)] for name in CONSTRAINTS)


def test_rules_are_broken_by_a_share_of_what_there_is_a_verdict_on(
    misbehaved: tuple[FinishedSteps, Scripted, Double],
) -> None:
    found, model, _ = misbehaved
    did = model.counts("Checked")

    assert did["refused"] + did["broken"] > 0
    assert card._rules(found).note.startswith(f"Of {did['fits'] + did['at odds']} questions that were checked;")


def test_every_vote_is_as_it_was_given(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, model, _ = misbehaved
    votes = Counter((vote["judge"], vote["verdict"]) for vote in found.votes())

    for seat, name in (("first", "first"), ("second/1", "second"), ("second/2", "second")):
        did = model.counts("Vote", name)
        assert votes[seat, "true"] == did["true"] and votes[seat, "false"] == did["false"]
        assert votes[seat, "abstain"] == did["abstain"] + did["refused"]


def test_a_vote_without_form_fails_its_triplet_and_is_never_guessed(
    misbehaved: tuple[FinishedSteps, Scripted, Double],
) -> None:
    found, model, _ = misbehaved
    silent = [one for one in drops(found.of("judged").folder)]

    assert {one.reason for one in silent} == {panel.UNANSWERED}
    assert sum(3 - len(one.record["votes"]) for one in silent) == sum(
        model.counts("Vote", name)["broken"] * times for name, times in (("first", 1), ("second", 2))
    )


def test_calls_and_tokens_are_those_that_the_server_saw(misbehaved: tuple[FinishedSteps, Scripted, Double]) -> None:
    found, _, server = misbehaved
    spent = [one.cost.spent for one in found.done]

    assert sum(one.calls for one in spent) == len(server.seen)
    assert sum(one.tokens_in for one in spent) == 100 * len(server.seen)


def test_a_finished_set_asks_nothing_and_failures_are_asked_again_when_wanted(tmp_path: Path, gallery: Path) -> None:
    model = Scripted(Rates(breaks=0.15))
    with Double(then=model) as server:
        place = recipe(tmp_path, gallery, behind(server.url), inputs="count = 2")
        ran(place, tmp_path)
        before = len(server.seen)
        ran(place, tmp_path)
        again = len(server.seen)
        making = RmirJob(read_recipe(place), tmp_path)
        run(making.pipeline().steps, tmp_path / "work", making.running(retry_failed=True))

    assert again == before
    broken = sum(what == "broken" for what in model.said.values())
    assert again < len(server.seen) <= again + 4 * broken  # twice each, and a judge who votes twice is asked twice


@pytest.mark.long
def test_a_budget_is_never_passed_and_the_set_goes_on_with_more(
    tmp_path: Path, gallery: Path, misbehaved: tuple[FinishedSteps, Scripted, Double]
) -> None:
    with Double(then=Scripted(BAD)) as server:
        place = recipe(tmp_path, gallery, behind(server.url), inputs=FEW)
        with pytest.raises(BudgetSpent, match="30 calls"):
            ran(place, tmp_path, CostLimits(calls=30))
        cut = len(server.seen)
        made(place, tmp_path)

    assert cut <= 30
    whole = files(misbehaved[0].pipe.work.parent)
    addressed = {name for name in whole if name.endswith("step.toml")}  # another port
    assert {name: data for name, data in files(tmp_path).items() if name not in addressed} == {
        name: data for name, data in whole.items() if name not in addressed
    }


def test_a_dry_run_tells_the_most_that_can_be_asked(tmp_path: Path, gallery: Path) -> None:
    """Seven photos, 21 questions, up to 6 + 2 candidates of each, three votes on each; and nothing is asked."""
    with Double(then=Scripted(BAD)) as server:
        making = RmirJob(read_recipe(recipe(tmp_path, gallery, behind(server.url), inputs=FEW)), tmp_path)
        calls = {one.name: one.spent.calls for one in plan_steps(making.pipeline(), making.running())}

    assert [calls[name] for name in ("questions", "checked", "judged")] == [7, 21, 21 * 8 * 3]
    assert server.seen == []


def test_no_picture_leaves_with_its_metadata_or_at_full_size(
    misbehaved: tuple[FinishedSteps, Scripted, Double],
) -> None:
    _, _, server = misbehaved
    parts = [part for seen in server.seen for part in seen.body["messages"][0]["content"]]
    shown = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]

    assert shown and all(url.startswith("data:image/jpeg;base64,") for url in shown)
