"""Reliability (TSR): by which votes of which hits it is told, and that the split and the audit tell the same."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.curate.rmir import card, split
from eyespot.curate.rmir.audit import before_last
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.pipelines import BatchStep, Drop, Failed, Keep, MapStep, Outcome, Record, RunOptions, Step, drops, run
from eyespot.pipelines.outcomes import Added
from tests.worlds.rmir import DEMONSTRATION, ran, recipe

FAILING = DEMONSTRATION.replace('"demonstration:first"', '"demonstration:first", silent = 0.08')
NO_TEST_SET = "No query reaches the threshold of reliability, so there is no test set."


def by_hand(made: FinishedSteps, among: set[str]) -> dict[str, float]:
    """The reliability of each query by the formula, from every vote that was written down; three judges, six places."""
    votes: dict[str, list[str]] = defaultdict(list)
    for vote in made.votes():
        votes[vote["triplet"]].append(vote["verdict"])
    hits: dict[str, list[tuple[int, str]]] = {query["id"]: [] for query in made.queries}
    for one in made.records("candidates"):
        if one["query"] in hits and "starter" in one["ranks"] and one["id"] in among:
            hits[one["query"]].append((one["ranks"]["starter"], one["id"]))
    return {query: formula([share(votes[id]) for _, id in sorted(mine)]) for query, mine in hits.items()}


def share(votes: list[str]) -> float:
    return votes.count("false") / len(votes) if votes.count("false") >= 1.5 else 0.0


def formula(shares: list[float]) -> float:
    places = shares + [1.0] * (6 - len(shares))
    return sum(sum(places[i:]) / len(places[i:]) for i in range(6)) / 6


def test_a_hit_on_which_a_judge_failed_counts_by_those_who_answered(copied: Path, gallery: Path) -> None:
    made = ran(recipe(copied, gallery, FAILING), copied)

    failed = [one.record for one in drops(made.of("judged").folder) if "starter" in one.record["ranks"]]
    refused = {one["query"] for one in failed if {vote["verdict"] for vote in one["votes"]} == {"false"}}
    assert refused & {query["id"] for query in made.queries}
    wanted = by_hand(made, {one["id"] for one in made.records("candidates")})
    assert {query["id"]: query["tsr"] for query in made.queries} == pytest.approx(wanted, abs=1e-12)
    hits = {(query["id"], one["id"]) for query in made.queries for one in failed if one["query"] == query["id"]}
    assert f"On {len(hits)} hits of these queries a judge failed." in card._thresholds(made).note


def test_reliability_by_what_the_panel_is_sure_of_alone(copied: Path, gallery: Path) -> None:
    models = FAILING.replace("silent = 0.08", "slips = 0.02")
    made = ran(recipe(copied, gallery, models, split='votes = "confident"\nthreshold = 0.9'), copied)

    scores = {query["id"]: query["tsr"] for query in made.queries}
    assert scores == pytest.approx(by_hand(made, {one["id"] for one in made.records("confident")}), abs=1e-12)
    assert scores != pytest.approx(by_hand(made, {one["id"] for one in made.records("candidates")}), abs=1e-12)


@pytest.mark.parametrize(("threshold", "empty"), [(0.5, False), (1.0, True)])
def test_the_card_says_that_there_is_no_test_set_where_there_is_none(
    copied: Path, gallery: Path, threshold: float, empty: bool
) -> None:
    made = ran(recipe(copied, gallery, split=f"threshold = {threshold}"), copied)

    assert (NO_TEST_SET in card.notes(made)) is empty and bool(made.in_split("test")) is not empty


# -- split and audit ----------------------------------------------------------------------------------------------

LISTS = split.Lists("starter", 4, 3)
VOTES = st.lists(st.sampled_from(["true", "false", "abstain"]), max_size=LISTS.judges)  # who has no vote has failed
TABLES = st.lists(st.lists(VOTES, max_size=LISTS.depth), min_size=1, max_size=12)


def triplets(query: int, table: list[list[str]]) -> list[Record]:
    ballots = ([{"judge": str(at), "verdict": verdict} for at, verdict in enumerate(votes)] for votes in table)
    return [
        {"id": f"{query}/{rank}", "query": str(query), "ranks": {"starter": rank}, "votes": votes}
        for rank, votes in enumerate(ballots, 1)
    ]


def of_the_split(tables: list[list[list[str]]], work: Path, how: RunOptions = RunOptions()) -> dict[str, float]:
    """What the step says of lists whose hits have these votes."""
    found = {one["id"]: one for query, table in enumerate(tables) for one in triplets(query, table)}
    queries = [{"id": str(query), "image": str(query)} for query in range(len(tables))]
    steps = [
        Step("candidates", BatchStep(lambda _records, _context: (Added({"id": id}) for id in found))),
        Step("judged", MapStep(lambda one, _context: judged(found[one["id"]]))),
        Step(
            "confident", BatchStep(lambda records, _: [*(Drop(one, "gone") for one in records), *map(Added, queries)])
        ),
        Step(
            "split",
            BatchStep(lambda records, context: split.split(records, context, split.SplitSettings(), LISTS)),
            needs=("judged", "confident"),
            needs_drops=("judged",),
        ),
    ]
    return {one["id"]: one["tsr"] for one in run(steps, work, how)[-1].records}


def judged(triplet: Record) -> Outcome:
    return Keep(triplet) if len(triplet["votes"]) == LISTS.judges else Failed(triplet, "a judge is silent")


@settings(max_examples=12, deadline=None)
@given(TABLES)
def test_the_audit_tells_of_the_hits_before_the_last_what_the_split_tells_of_a_list_of_them(
    tables: list[list[list[str]]],
) -> None:
    with TemporaryDirectory() as work:
        scores = of_the_split(tables, Path(work))
    longer = {str(query): triplets(query, [*table, ["true"]]) for query, table in enumerate(tables)}
    voted = {one["id"] for hits in longer.values() for one in hits}

    audited = before_last(longer, voted, replace(LISTS, depth=LISTS.depth + 1))

    assert {hits[-1]["id"]: scores[query] for query, hits in longer.items()} == audited


def test_the_split_is_told_anew_when_a_judge_that_failed_answers(tmp_path: Path) -> None:
    """Two of three judges fail, then one: nothing that the step `judged` keeps is another, and reliability is."""
    before = of_the_split([[["false"]]], tmp_path)
    after = of_the_split([[["false", "false"]]], tmp_path, RunOptions(retry_failed=True))

    assert before["0"] < after["0"] == 1.0
