"""Numbers of papers that stand beside measured ones, but are not compared: each for a reason with a code."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eyespot.benchmarks import Beside, Evaluation, Printed, Rescored, Task, benchmark, beside, scored
from eyespot.benchmarks._papers import impossible
from eyespot.metrics import parse
from eyespot.reports.summary import summary_of
from eyespot.reports.tables import comparisons_of
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, RankedImage, Run
from tests.worlds.benchmarks import PAPER, PRINTED, heron

FIRST = "Initial ranking"
TWO_STAGES = (
    Printed(PAPER, FIRST, "t2i", "Hit@1", 0.5),
    Printed(PAPER, "GPT", "t2i", "Hit@1", 0.9, wording="inquire", first_stage=FIRST),
)


def task(*measures: str) -> Task:
    """Two queries, each with the relevant image a."""
    judged = JudgedQueries({"q1": {}, "q2": {}}, Qrels({"q1": {"a": 1}, "q2": {"a": 1}}))
    return Task("t2i", judged, [parse(measure) for measure in measures or ("Hit@1",)])


def evaluated(
    run: Run, made: Task, printed: Sequence[Printed] = PRINTED, second: Run | None = None, **arguments: str
) -> Evaluation:
    result = scored(made, run, Rescored(second, 2) if second is not None else None)
    return Evaluation(heron(printed), "test", "ours", [result], {"arguments": arguments})


def papers(evaluation: Evaluation) -> Beside:
    return beside(evaluation, evaluation.results[0])


def reasons(evaluation: Evaluation) -> dict[str, list[tuple[str, str]]]:
    """Why a method's number is not compared, by the name of the method."""
    return {row.method: [(why.code, str(why)) for why in whys] for row, whys in papers(evaluation).reasons.items()}


def text(evaluation: Evaluation) -> str:
    return "\n".join(" | ".join(row) for table in comparisons_of(evaluation) for row in table.rows)


def codes(evaluation: Evaluation) -> dict[str, list[str]]:
    return {method: [code for code, _ in whys] for method, whys in reasons(evaluation).items()}


def scores(**rankings: str) -> Run:
    """Images of one letter; `=` gives the next one the same score: scores(q1="a=bc")."""
    made: dict[str, list[RankedImage]] = {}
    for query, letters in rankings.items():
        score, hits = 9.0, []
        for letter in letters:
            score -= letter != "="
            hits += [RankedImage(letter, score)] if letter != "=" else []
            score += letter == "="
        made[query] = hits
    return Run(made)


def test_a_number_that_equal_scores_decide_is_not_compared() -> None:
    made = evaluated(scores(q1="b=a", q2="ab"), task())

    ((code, why),) = reasons(made)["CLIP"]
    assert code == "ties" and "50.0 %" in why
    assert "minus published" not in text(made) and "CLIP | 34.2" in text(made)
    assert why.split(";")[0] in "".join(table.note for table in comparisons_of(made))

    decided = evaluated(scores(q1="ab=c", q2="abc"), task())
    assert reasons(decided) == {} and "CLIP | 34.2 (+65.8)" in text(decided)


def test_rankings_that_end_before_the_cut_are_not_compared() -> None:
    printed = [Printed(PAPER, "CLIP", "t2i", "Hit@3", 0.5)]

    short = evaluated(scores(q1="bc", q2="abc"), task("Hit@3"), printed)
    whole = evaluated(scores(q1="bcd", q2="abc"), task("Hit@3"), printed)

    assert codes(short) == {"CLIP": ["cut"]}
    assert reasons(whole) == {} and "CLIP | 50.0 (0.0)" in text(whole)


@pytest.mark.parametrize(
    ("judge", "wording", "expected"),
    [
        ("openai:gpt-4o", "", {"GPT": ["wording"]}),
        ("transformers:vila", "plain", {"GPT": ["wording"]}),
        ("openai:gpt-4o", "inquire:clone", {}),
        ("encoder:starter", "", {}),
        ("", "", {}),
    ],
)
def test_another_prompt_makes_another_system(judge: str, wording: str, expected: dict[str, list[str]]) -> None:
    run = scores(q1="ab", q2="ba")
    run.header["judge"] = judge
    made = evaluated(run, task(), TWO_STAGES, wording=wording)

    assert codes(made) == expected
    assert text(made).endswith("GPT | 90.0") == bool(expected)


@pytest.mark.parametrize(
    ("view", "expected"),
    [("centre crop of 224 x 224", {"ViT": ["view"]}), ("longer side 384, positions interpolated", {}), ("", {})],
)
def test_another_preprocessing_than_the_paper_s_is_not_compared(view: str, expected: dict[str, list[str]]) -> None:
    run = scores(q1="ab", q2="ba")
    run.header |= {"view": view} if view else {}
    rows = [Printed("Heron (2020)", "ViT", "t2i", "Hit@1", 0.9, view="longer side 384, positions interpolated")]
    made = evaluated(run, task(), rows)

    assert codes(made) == expected
    grounds = [str(note) for notes in papers(made).grounds.values() for note in notes if note.code == "view"]
    assert grounds == ([f"pictures: {view}"] if view and not expected else [])


def test_re_ranking_another_first_stage_is_not_compared_with_re_ranking_the_paper_s() -> None:
    second = scores(q1="ab", q2="ab")

    same = evaluated(scores(q1="ab", q2="ba"), task(), TWO_STAGES, second)  # 50 % before, as printed
    other = evaluated(scores(q1="ba", q2="ba"), task(), TWO_STAGES, second)

    assert reasons(same) == {} and codes(other) == {"GPT": ["first-stage"]}


def test_inquire_s_tables_say_what_answers_a_prompt_and_what_is_re_ranked() -> None:
    full, rerank = (benchmark(name).printed() for name in ("inquire-fullrank", "inquire-rerank"))
    third, fifth = (
        [row for row in full if row.source == "INQUIRE, table 3"],
        [row for row in rerank if row.source == "INQUIRE, table 5"],
    )
    first = "Initial ranking (ViT-H/14)"

    assert {row.method for row in third if row.wording is None} == {first, "Best possible rerank"}
    assert {row.first_stage for row in third} == {None, first}
    assert {row.method for row in fifth if row.wording} == {
        "LLaVA-v1.6-34B",
        "VILA-13B",
        "VILA-40B",
        "GPT-4V",
        "GPT-4o",
    }
    assert {row.method for row in rerank if not row.wording} >= {"Random", "CLIP ViT-H-14", "SigLIP SO400M-14"}


def test_cells_that_contradict_each_other_are_marked_and_not_compared() -> None:
    cells = {"Hit@1": 0.7, "Hit@2": 0.898, "Hit@3": 0.89}
    printed = [Printed(PAPER, "X2-VLM", "t2i", measure, value) for measure, value in cells.items()]
    made = evaluated(scores(q1="abc", q2="abc"), task(*cells), printed)

    assert "X2-VLM | 70.0 (+30.0) | 89.8 (impossible) | 89.0 (impossible)" in text(made)
    assert set(codes(made)["X2-VLM"]) == {"cell"}


def test_the_papers_impossible_cells_are_those_that_were_found_by_reading() -> None:
    recos, flickr, every = (
        {(row.source, row.method, row.task, row.measure) for row in impossible(benchmark(name).printed())}
        for name in ("recos", "flickr30k", "coco5k")
    )

    assert recos == {("ReCoS, table 2 (ReCoS v1)", "X2-VLM", "i2t", measure) for measure in ("Hit@5", "Hit@10")}
    assert {method for _, method, _, _ in flickr} == {"ALBEF"} and len(flickr) == 6
    assert every == set()


def test_json_has_the_code_beside_the_sentence() -> None:
    (made,) = summary_of(evaluated(scores(q1="b=a", q2="ab"), task()))["tasks"]
    (row, *_) = made["published"]

    assert (row["comparable"], row["difference"], row["measured"]) == (False, None, 0.5)
    assert [reason["code"] for reason in row["reasons"]] == ["ties"] and made["comparable"] == {}

    (compared,) = summary_of(evaluated(scores(q1="ab", q2="ab"), task()))["tasks"]
    assert compared["published"][0]["comparable"] and compared["published"][0]["difference"] == pytest.approx(0.658)
    assert [ground["code"] for ground in compared["comparable"][PAPER]] == ["queries", "images", "ties", "cut"]

    (away,) = summary_of(evaluated(scores(q1="ab"), task()))["tasks"]
    assert away["published"] == [] and [reason["code"] for reason in away["not_beside"][PAPER]] == ["queries"]
