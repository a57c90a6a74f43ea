"""Reliability (TSR): the split and the audit tell the same, and the split hangs on judges that failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.curate.rmir import panel
from eyespot.curate.rmir.audit import before_last
from eyespot.pipelines import BatchStep, Drop, Failed, Keep, MapStep, Outcome, Record, RunOptions, Step, run
from eyespot.pipelines.outcomes import Added

LISTS = panel.Lists("starter", 4, 3)
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
            BatchStep(lambda records, context: panel.split(records, context, panel.SplitSettings(), LISTS)),
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
