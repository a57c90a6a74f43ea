"""A model's answers beside a person's verdicts: where they narrow the count, where not, and what they never do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from eyespot.ledger.judgements import Judgements, query_digest
from eyespot.search.calibrated import Calibrated, Calibration, made_ranking, with_covariate
from eyespot.search.calibration import Curve, assisted, fit, plan
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Judgement, Run, Verdict
from tests.worlds.judging import HERON, Labels

Reals = NDArray[np.float64]
HITS = 200
RELEVANT = np.random.default_rng(5).permutation(HITS) < 60  # anywhere in the ranking


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
    relevant = rng.permutation(HITS) < rng.integers(8, 20)
    found = assisted(curve_of(relevant), np.where(relevant == (rng.random(HITS) < 0.85), 0.9, 0.1))

    assert found.code == "wider" and found.narrowed <= 0 and found.curve.count().high > found.alone.high


def test_answers_are_not_cut_at_one_half() -> None:
    """A model that never says more than 0.4 helps as much as one that says 1."""
    low, high = (assisted(curve_of(RELEVANT), np.where(RELEVANT, yes, no)) for yes, no in ((0.4, 0.3), (1.0, 0.0)))

    assert low.code == high.code == "helped" and low.curve.count()[1:] == high.curve.count()[1:]


def test_a_model_that_says_yes_to_all_alike_or_at_random_changes_nothing() -> None:
    curve, rng = curve_of(RELEVANT), np.random.default_rng(3)

    same, random = assisted(curve, np.full(HITS, 0.97)), assisted(curve, rng.random(HITS))

    assert (same.code, random.code) == ("constant", "no_help")
    assert same.curve.count() == random.curve.count() == curve.count() and same.narrowed == random.narrowed == 0


def test_a_model_that_is_sure_and_wrong_is_believed_as_far_as_verdicts_bear_it_out() -> None:
    """It says 0.97 of all but twenty hits; taken at its word there would be 180."""
    sure = np.where(np.arange(HITS) % 10 == 0, 0.02, 0.97)

    count = assisted(curve_of(RELEVANT), sure).curve.count()

    assert count.low <= 60 <= count.high


@pytest.mark.parametrize(
    ("relevant", "verdicts", "answered", "code"),
    [
        (RELEVANT, 20, HITS, "few_verdicts"),
        (RELEVANT, 30, 2, "few_answers"),
        (np.zeros(HITS, bool), 30, HITS, "one_sided"),
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
    beyond = np.where(np.arange(1, HITS + 1) > last, 1.0, answers)

    assert last < HITS
    assert assisted(curve, beyond).curve.count() == assisted(curve, answers).curve.count()


def test_hits_that_a_model_did_not_look_at_are_left_to_the_verdicts() -> None:
    """It looked at the first 140 of 200."""
    found = assisted(curve_of(RELEVANT), np.where(np.arange(HITS) < 140, RELEVANT * 0.9, np.nan))

    count = found.curve.count()
    unseen = np.setdiff1d(np.arange(140, HITS), found.curve.sample.ranks - 1)
    assert found.code == "helped" and count.low <= 60 <= count.high
    assert found.curve.probability[unseen].min() > 0.1 and found.curve.probability[unseen].max() < 0.6


def answered(ledger: Judgements, judge: str, relevant: int, hits: int = 300) -> None:
    """A model says 0.9 of the first hits and 0.1 of the others."""
    digest = query_digest(HERON)
    verdicts = (Verdict(0.9 if rank <= relevant else 0.1) for rank in range(1, hits + 1))
    ledger.record(Judgement(digest, f"i{rank}", judge, "p", word) for rank, word in enumerate(verdicts, 1))


def ranking(hits: int = 300) -> Run:
    return Run.from_orders({"q": [f"i{rank}" for rank in range(1, hits + 1)]})


def counted(ledger: Judgements, run: Run, judge: str = "person:ada") -> Calibration:
    """By 30 verdicts on 300 hits, of which the first 20 are relevant."""
    run.facts = {image: {"id": image, "path": f"{image}.jpg"} for image in run.images.tolist()}
    grades = {f"i{rank}": float(rank <= 20) for rank in range(1, 301)}
    stage = JudgeRerank(Labels({"a heron": grades}, name=judge), ledger, depth=300)
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
