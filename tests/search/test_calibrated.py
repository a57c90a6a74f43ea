"""A few verdicts through the ledger: what they cost, what they say of the rest, and that none is asked for twice."""

from __future__ import annotations

import numpy as np

from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import Budget, BudgetSpent
from eyespot.search.calibrated import Calibrated
from eyespot.search.calibration import Accuracy
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import EyespotError, NothingFound, Query, Run, UsageError
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
    assert "hits have no verdict" in made.run.notes[0] and made.probability["i1"] > 0.5


def test_what_a_plan_counts_is_never_less_than_what_is_asked(ledger: Judgements) -> None:
    judge = judging(relevant=20)
    stage = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=40)

    before = stage.plan(HERON, ranking())
    stage(HERON, ranking())
    after = stage.plan(HERON, ranking())

    assert before == (40, 40, 0) and after == (40, 0, 0)
    assert Calibrated(stage.stage, verdicts=60).plan(HERON, ranking()).to_ask in range(20, 45)


def test_intervals_hold_the_truth(ledger: Judgements) -> None:
    """Twelve rankings whose relevance falls."""
    missed = 0
    for seed in range(12):
        labels = np.random.default_rng(seed).random(100) < np.minimum(0.9, 8 / np.arange(1, 101))
        query = Query.words(f"thing {seed}", "q")
        grades = {f"i{rank}": float(relevant) for rank, relevant in enumerate(labels, 1)}
        judge = Labels({f"thing {seed}": grades}, name="person:ada")
        count = Calibrated(JudgeRerank(judge, ledger, depth=100), verdicts=24)(query, ranking(100)).count
        missed += not count.low <= labels.sum() <= count.high

    assert missed <= 2


def test_a_judge_that_errs_is_believed_as_far_as_it_is_right(ledger: Judgements) -> None:
    """It says yes to one in seven of the irrelevant; there is nothing relevant."""
    grades = {f"i{rank}": float(rank % 7 == 0) for rank in range(1, HITS + 1)}
    judged = JudgeRerank(Labels({"a heron": grades}, name="person:ada"), ledger, depth=HITS)

    believed = Calibrated(judged, 60)(HERON, ranking()).count
    corrected = Calibrated(judged, 60, Accuracy(0.9, 0.85))(HERON, ranking()).count

    assert believed.low > 0 == corrected.low


def test_a_model_that_nobody_verified_has_an_opinion_and_counts_nothing(ledger: Judgements) -> None:
    """It says yes to 40 of 300, and to as many of those that it looked at as there are."""
    judge = judging(relevant=40, name="openai:tiny")

    made = Calibrated(JudgeRerank(judge, ledger, depth=HITS), verdicts=30)(HERON, ranking())

    yes = sum(int(pair.image[1:]) <= 40 for pair in judge.asked)
    assert made.opinion == ("openai:tiny", yes, 30, HITS) and not made.verified
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
