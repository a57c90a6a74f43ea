"""A few verdicts through the ledger: what they cost, that each is requested once, and what a model adds to them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.search.calibrated import Calibrated, Calibration, made_ranking, with_covariate
from eyespot.search.calibration import Accuracy, Curve, assisted, fit, plan
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import EyespotError, Judgement, NothingFound, Run, UsageError, Verdict
from tests.wording import raises
from tests.worlds.judging import HERON, Labels

HITS = 300


def ranking(hits: int = HITS) -> Run:
    run = Run.from_orders({"q": [f"i{rank}" for rank in range(1, hits + 1)]})
    run.facts = {image: {"id": image, "path": f"{image}.jpg"} for image in run.images.tolist()}
    return run


def judging(relevant: int, hits: int = HITS, name: str = "person:ada", **options: Budget) -> Labels:
    """Somebody who is right; the first so many are relevant."""
    grades = {f"i{rank}": float(rank <= relevant) for rank in range(1, hits + 1)}
    return Labels({"a heron": grades}, name=name, **options)


def test_as_many_pictures_are_looked_at_as_asked_and_the_rest_is_inferred(ledger: Judgements) -> None:
    judge = judging(relevant=20)

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=40)(HERON, ranking())

    assert len({pair.image for pair in judge.asked}) == len(judge.asked) == 40
    assert made.count.low <= 20 <= made.count.high and made.curve.hits == HITS
    assert made.probability["i1"] > 0.9 > 0.1 > made.probability[f"i{HITS}"]


def test_all_of_a_short_ranking_is_known_for_sure(ledger: Judgements) -> None:
    made = Calibrated(JudgeRerank(judging(relevant=3), ledger, depth=100), verdicts=40)(HERON, ranking(12))

    assert made.count == (3.0, 3, 3, 3)
    assert made.likely(1.0)[:3] == (3, -3.0, 1.0)


def test_more_verdicts_begin_with_those_that_are_there_and_the_same_again_asks_nothing(ledger: Judgements) -> None:
    judge = judging(relevant=20)
    Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=32)(HERON, ranking())

    more, again = (Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=64)(HERON, ranking()) for _ in range(2))

    assert len(judge.asked) == 64 and again.result.stats[:2] == (64, 0)
    assert (again.curve.probability == more.curve.probability).all()


def test_verdicts_of_a_re_ranking_count_as_well(ledger: Judgements) -> None:
    judge = judging(relevant=20)
    JudgeRerank(judge, ledger, depth=30)([HERON], ranking())
    calls = len(judge.asked)

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=20)(HERON, ranking())

    assert set(range(1, 31)) <= set(made.curve.sample.ranks.tolist())
    assert len(judge.asked) - calls < 20 and made.result.stats.known >= 30


def test_verdicts_at_other_ranks_do_not_speak_for_their_neighbours(ledger: Judgements) -> None:
    """Another search showed the judge one picture that here stands last."""
    judge, other = judging(relevant=20), ranking()
    other = Run.from_orders({"q": [f"i{HITS}", *other.images[:-1].tolist()]})
    other.facts = ranking().facts
    JudgeRerank(judge, ledger, depth=1)([HERON], other)

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=16)(HERON, ranking())

    assert len(made.curve.sample.ranks) == 16


def test_a_budget_that_ends_early_leaves_what_was_answered(ledger: Judgements) -> None:
    judge = judging(relevant=20, budget=Budget(calls=10))

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=40)(HERON, ranking())

    assert len(made.curve.sample.ranks) == 10 and "10 calls" in made.result.stopped
    assert made.run.notes == [made.result.stopped] and made.run.header["verdicts"]["asked"] == 10


def test_without_a_single_verdict_there_is_no_curve(ledger: Judgements) -> None:
    silent = Calibrated(JudgeRerank(Labels({"a heron": {}}), ledger, depth=HITS), verdicts=40)
    poor = Calibrated(JudgeRerank(judging(20, budget=Budget(calls=0)), ledger, depth=HITS), verdicts=40)

    with raises(EyespotError):
        silent(HERON, ranking())
    with raises(BudgetSpent):
        poor(HERON, ranking())


def test_pictures_that_fail_are_asked_for_once_and_told(ledger: Judgements) -> None:
    judge = judging(relevant=20)
    del judge.said["a heron"]["i1"], judge.said["a heron"]["i2"]  # type: ignore[attr-defined]

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=60)(HERON, ranking())

    assert len({pair.image for pair in judge.asked}) == len(judge.asked)
    assert "without a verdict" in made.run.notes[0] and made.probability["i1"] > 0.5


def test_what_a_plan_counts_is_never_less_than_what_is_asked(ledger: Judgements) -> None:
    judge = judging(relevant=20)
    stage = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=40)

    before = stage.plan(HERON, ranking())
    stage(HERON, ranking())
    after = stage.plan(HERON, ranking())

    assert before == (40, 40, 0) and after == (40, 0, 0)
    assert Calibrated(stage.stage, verdicts=60).plan(HERON, ranking()).to_ask in range(20, 45)


def test_a_model_that_nobody_verified_has_an_opinion_and_counts_nothing(ledger: Judgements) -> None:
    """It says yes to 40 of 300, and to as many of those that it looked at as there are."""
    judge = judging(relevant=40, name="openai:tiny")

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=30)(HERON, ranking())

    yes = sum(int(pair.image[1:]) <= 40 for pair in judge.asked)
    assert [*made.opinion.values()] == ["openai:tiny", yes, 30, HITS] and not made.verified
    for number in (lambda: made.count, lambda: made.probability, lambda: made.likely(0.5)):
        with raises(UsageError):
            number()


def test_a_model_whose_errors_were_measured_counts(ledger: Judgements) -> None:
    stage = JudgeRerank(judging(relevant=40, name="openai:tiny"), ledger, depth=HITS)

    made = Calibrated(stage, 60, Accuracy(0.95, 0.95, 50, 50))(HERON, ranking())

    assert made.verified and made.count.low <= 40 <= made.count.high


def test_what_cannot_be_calibrated_is_refused(ledger: Judgements) -> None:
    """Without verdicts, and where no first hits are good enough."""
    stage = JudgeRerank(judging(relevant=0), ledger, depth=HITS)

    with raises(UsageError):
        Calibrated(stage, verdicts=0)
    with raises(NothingFound):
        Calibrated(stage, verdicts=30)(HERON, ranking()).likely(0.5)


# -- a model's answers beside a person's verdicts: where they narrow the count, where not, and what they never do ---


ANSWERS = 200
RELEVANT = np.random.default_rng(5).permutation(ANSWERS) < 60  # anywhere in the ranking


def curve_of(relevant: NDArray[np.bool_], verdicts: int = 30) -> Curve:
    sample = plan(len(relevant), verdicts, seed=1)
    return fit(-np.arange(len(relevant)), sample, relevant[sample.ranks - 1], seed=1)


def test_answers_of_a_model_that_is_right_narrow_the_count_around_the_truth() -> None:
    found = assisted(curve_of(RELEVANT), np.where(RELEVANT, 0.98, 0.03))

    count = found.curve.count()
    assert found.code == "helped" and found.narrowed > 0.5
    assert count.low <= 60 <= count.high and count.high - count.low < 25 < found.alone.high - found.alone.low
    assert found.curve.probability[RELEVANT].mean() > 0.9 > 0.1 > found.curve.probability[~RELEVANT].mean()
    assert found.curve.count(10).low <= RELEVANT[:10].sum() <= found.curve.count(10).high


def test_answers_that_leave_more_open_count_as_well() -> None:
    rng = np.random.default_rng(19)
    relevant = rng.permutation(ANSWERS) < rng.integers(8, 20)
    found = assisted(curve_of(relevant), np.where(relevant == (rng.random(ANSWERS) < 0.85), 0.9, 0.1))

    assert found.code == "wider" and found.narrowed <= 0 and found.curve.count().high > found.alone.high


def test_answers_are_not_cut_at_one_half() -> None:
    """A model that never says more than 0.4 helps as much as one that says 1."""
    low, high = (assisted(curve_of(RELEVANT), np.where(RELEVANT, yes, no)) for yes, no in ((0.4, 0.3), (1.0, 0.0)))

    assert low.code == high.code == "helped" and low.curve.count()[1:] == high.curve.count()[1:]


def test_a_model_that_says_yes_to_all_alike_or_at_random_changes_nothing() -> None:
    curve, rng = curve_of(RELEVANT), np.random.default_rng(3)

    same, random = assisted(curve, np.full(ANSWERS, 0.97)), assisted(curve, rng.random(ANSWERS))

    assert (same.code, random.code) == ("constant", "no_help")
    assert same.curve.count() == random.curve.count() == curve.count() and same.narrowed == random.narrowed == 0


def test_a_model_that_is_sure_and_wrong_is_believed_as_far_as_verdicts_bear_it_out() -> None:
    """It says 0.97 of all but twenty hits; taken at its word there would be 180."""
    sure = np.where(np.arange(ANSWERS) % 10 == 0, 0.02, 0.97)

    count = assisted(curve_of(RELEVANT), sure).curve.count()

    assert count.low <= 60 <= count.high


@pytest.mark.parametrize(
    ("relevant", "verdicts", "answered", "code"),
    [
        (RELEVANT, 20, ANSWERS, "few_verdicts"),
        (RELEVANT, 30, 2, "few_answers"),
        (np.zeros(ANSWERS, bool), 30, ANSWERS, "one_sided"),
        (np.arange(10_001) < 60, 30, 10_001, "deep"),
    ],
)
def test_without_a_fit_people_count_alone(relevant: NDArray[np.bool_], verdicts: int, answered: int, code: str) -> None:
    curve = curve_of(relevant, verdicts)
    answers = np.where(np.arange(len(relevant)) < answered, relevant * 0.9, np.nan)

    found = assisted(curve, answers)

    assert found.code == code and found.curve is curve


def test_answers_beyond_the_last_judged_hit_have_no_part() -> None:
    curve, answers = curve_of(RELEVANT), np.where(RELEVANT, 0.98, 0.03)
    last = int(curve.sample.ranks.max())
    beyond = np.where(np.arange(1, ANSWERS + 1) > last, 1.0, answers)

    assert last < ANSWERS
    assert assisted(curve, beyond).curve.count() == assisted(curve, answers).curve.count()


def test_hits_that_a_model_did_not_look_at_are_left_to_the_verdicts() -> None:
    """It looked at the first 140 of 200."""
    found = assisted(curve_of(RELEVANT), np.where(np.arange(ANSWERS) < 140, RELEVANT * 0.9, np.nan))

    count = found.curve.count()
    unseen = np.setdiff1d(np.arange(140, ANSWERS), found.curve.sample.ranks - 1)
    assert found.code == "helped" and count.low <= 60 <= count.high
    assert found.curve.probability[unseen].min() > 0.1 and found.curve.probability[unseen].max() < 0.6


def answered(ledger: Judgements, judge: str, relevant: int, hits: int = HITS) -> None:
    """A model says 0.9 of the first hits and 0.1 of the others."""
    digest = query_digest(HERON)
    verdicts = (Verdict(0.9 if rank <= relevant else 0.1) for rank in range(1, hits + 1))
    ledger.record(Judgement(digest, f"i{rank}", judge, "p", word) for rank, word in enumerate(verdicts, 1))


def counted(ledger: Judgements, run: Run, judge: str = "person:ada") -> Calibration:
    """By 30 verdicts on 300 hits, of which the first 20 are relevant."""
    stage = JudgeRerank(judging(20, name=judge), ledger, depth=HITS)
    return with_covariate(Calibrated(stage, 30)(HERON, run), HERON, ledger)


def test_the_model_with_the_most_answers_is_taken_from_the_ledger(ledger: Judgements) -> None:
    answered(ledger, "openai:small", 20, hits=40)
    answered(ledger, "openai:tiny", 20)

    covariate = counted(ledger, ranking()).covariate

    assert covariate is not None and (covariate.judge, covariate.answers) == ("openai:tiny", 300)
    assert covariate.as_json()["code"] == "helped" and 0 < covariate.as_json()["narrowed"] < 1


def test_a_model_that_made_the_ranking_is_no_witness_of_it(ledger: Judgements) -> None:
    alone = counted(ledger, ranking()).count
    answered(ledger, "encoder:starter", 20)
    run = ranking()
    run.header["encoder"] = "starter"

    made = counted(ledger, run)

    assert made.covariate is not None and made.covariate.code == "own_encoder"
    assert made.count == made.covariate.alone == alone


def test_without_a_model_or_without_a_person_there_is_no_covariate(ledger: Judgements) -> None:
    assert counted(ledger, ranking()).covariate is None
    answered(ledger, "openai:tiny", 20)
    assert counted(ledger, ranking(), judge="openai:other").covariate is None


@pytest.mark.parametrize(
    ("judge", "header", "own"),
    [
        ("encoder:starter", {"encoder": "starter"}, True),
        ("encoder:starter", {"encoder": "open_clip:ViT-B-32/x"}, False),
        ("encoder:starter", {}, True),  # nobody knows what made the ranking
        ("encoder:hf:org/blip@v1", {"encoder": "hf:org/blip"}, True),
        ("blip_itm:org/blip", {"encoder": "hf:org/blip"}, True),
        ("encoder:starter", {"fused": "rrf", "of": [{"encoder": "other"}, {"encoder": "starter"}]}, True),
        ("openai:tiny", {}, False),
    ],
)
def test_who_made_a_ranking_is_known_by_the_model_s_name(judge: str, header: dict[str, object], own: bool) -> None:
    run = ranking(3)
    run.header |= header

    assert made_ranking(judge, run) is own
