"""The second stage: what a judge says decides the order of the first hits, and is asked for once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eyespot.ledger.judgements import Judgements
from eyespot.llms.budget import Budget
from eyespot.search.judge_rerank import JudgeRerank, learned_blend
from eyespot.types import Qrels, Run, UsageError
from tests.wording import raises
from tests.worlds.judging import HERON, Labels


def ranked(**rankings: str) -> Run:
    """Images of one letter, best first, each with a picture of its name."""
    run = Run.from_orders({query: list(images) for query, images in rankings.items()})
    run.facts = {image: {"id": image, "path": f"{image}.jpg"} for image in run.images.tolist()}
    return run


def order(run: Run, query: str = "q") -> str:
    return "".join(hit.image for hit in run[query])


def test_equals_stand_as_the_first_stage_had_them_and_no_two_scores_are_equal(ledger: Judgements) -> None:
    judge = Labels({"a heron": {"a": 0.0, "b": 1.0, "c": 0.0, "d": 1.0}})

    run = JudgeRerank(judge, ledger, 4)([HERON], ranked(q="abcd"))

    assert order(run) == "bdac"
    assert [hit.score for hit in run["q"]] == [1.0, pytest.approx(1, abs=1e-6), 0.0, pytest.approx(0, abs=1e-6)]
    assert len({hit.score for hit in run["q"]}) == 4


def test_what_has_no_verdict_keeps_its_order_below_the_judged(ledger: Judgements) -> None:
    judge = Labels({"a heron": {"c": 0.5, "d": 0.1}})

    run = JudgeRerank(judge, ledger, 4)([HERON], ranked(q="abcde"))

    assert order(run) == "cdabe"
    (note,) = run.notes
    assert "a.jpg" in note and "b.jpg" in note and note.startswith("2 hits")


def test_hits_without_a_picture_are_counted_and_not_asked_for(ledger: Judgements) -> None:
    judge, run = Labels({"a heron": {"a": 0.1, "b": 0.2}}), ranked(q="abc")
    run.facts = {"a": run.facts["a"], "b": {"id": "b", "path": None}}

    made = JudgeRerank(judge, ledger, 2)([HERON], run)

    assert [pair.image for pair in judge.asked] == ["a"] and order(made) == "abc"
    assert made.notes[0].startswith("not judged: 1 hit ")


def test_the_header_says_who_judged_asked_how_and_what_it_took(ledger: Judgements) -> None:
    judge = Labels({"a heron": {"a": 0.1}})

    header = JudgeRerank(judge, ledger, 2)([HERON], ranked(q="ab")).header

    counts = {"from_ledger": 0, "asked": 2, "refused": 0, "failed": 1, "unscored": 0}
    assert header == {
        **{"reranked": 2, "judge": "labels:test", "prompt": "0123456789abcdef", "depth": 2},
        "verdicts": {**counts, "calls": 0, "tokens_in": 0, "tokens_out": 0, "money": 0.0},
    }


def test_one_picture_of_two_names_is_judged_once_for_both(ledger: Judgements) -> None:
    judge, run = Labels({"a heron": {"a": 0.1, "z": 0.9}}), ranked(q="abc")
    run.facts = {"a": run.facts["a"], "b": {"id": "z", "path": "z.jpg"}, "c": {"id": "z", "path": "z.jpg"}}

    assert order(JudgeRerank(judge, ledger, 3)([HERON], run)) == "bca" and len(judge.asked) == 2


def test_a_spent_budget_ends_it_and_what_was_answered_counts(ledger: Judgements) -> None:
    judge = Labels({"a heron": {"a": 0.1, "b": 0.9, "c": 0.5}}, budget=Budget(calls=2))
    stage = JudgeRerank(judge, ledger, 3)

    looked = stage.ask([HERON], ranked(q="abc"))

    assert order(stage.reranked(ranked(q="abc"), looked)) == "bac"
    assert "2 calls" in looked.stopped
    assert replace(stage, judge=Labels(judge.said)).plan([HERON], ranked(q="abc")).to_ask == 1


def test_a_blend_adds_the_first_score_from_zero_to_one(ledger: Judgements) -> None:
    """Scores 4, 3, 0 of the first stage become 1, 3/4 and 0; half of that and half of the probability."""
    judge = Labels({"a heron": {"a": 0.0, "b": 0.5, "c": 0.9}})
    run = Run({"q": [("a", 4.0), ("b", 3.0), ("c", 0.0)]})
    run.facts = ranked(q="abc").facts

    made = JudgeRerank(judge, ledger, 3, blend=0.5)([HERON], run)

    assert dict(made["q"]) == pytest.approx({"b": 0.625, "a": 0.5, "c": 0.45}) and order(made) == "bac"
    assert made.header["blend"] == 0.5
    assert order(JudgeRerank(judge, ledger, 3, blend=0.0)([HERON], run)) == "abc"
    with raises(UsageError):
        JudgeRerank(judge, ledger, blend=1.5)


@pytest.mark.parametrize(("relevant", "least", "most"), [("c", 0.55, 1.0), ("a", 0.0, 0.5)])
def test_the_learned_blend_follows_who_is_right(ledger: Judgements, relevant: str, least: float, most: float) -> None:
    stage, run = JudgeRerank(Labels({"a heron": {"a": 0.0, "b": 0.5, "c": 1.0}}), ledger, 3), ranked(q="abc")

    assert least <= learned_blend(stage, run, stage.ask([HERON], run), Qrels({"q": {relevant: 1}}), "RR") <= most
