"""Results made of a result: the photos of one verdict, a judge's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, get_args

import numpy as np

from eyespot.judges import JudgeStats as Counted, known, prompts_of
from eyespot.ledger.judgements import query_digest
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, points
from eyespot.types import Judgement, Mask, Query, RankedImage, Run, UsageError
from eyespot.web._problems import Problem
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import Countable, JudgedPlace, RankedResult
from eyespot.web.pictures import read_original

Verdict = Literal["yes", "no", "doubt"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
UNJUDGED = "unjudged"


def verdict_of(judgement: Judgement | None) -> str | None:
    """`yes`, `no` or `doubt`, as somebody said; None where nobody has."""
    verdict = judgement.verdict if judgement else None
    if verdict is None:
        return None
    return "yes" if verdict.grade else "doubt" if verdict.reason == "doubt" else "no"


def rows_by_verdict(
    result: RankedResult, judgements: Mapping[str, Judgement], here: Mask | None = None
) -> dict[str, list[int]]:
    """The rows with each verdict among those of a mask, (rows,); usually among what the result shows."""
    found: dict[str, list[int]] = {name: [] for name in VERDICTS}
    if here is None:
        here = result.mask & result.counted  # also what stands behind the tile of another
        if result.most is not None:
            within = np.zeros_like(here)
            within[result.with_groups(result.slice(0, result.total).rows.tolist())] = True
            here &= within
    for id, judgement in judgements.items():
        row, verdict = result.snapshot.row_of(id), verdict_of(judgement)
        if row is not None and verdict is not None and here[row]:
            found[verdict].append(row)
    return found


def counted(result: RankedResult, by_verdict: Mapping[str, list[int]]) -> tuple[int, int, int, int, int]:
    """How many photos a result has in all, with a yes, a no, a doubt, and unjudged.

    Copies and burst frames of a judged photo are not unjudged.
    """
    left = tab_of(result, result.params, UNJUDGED, by_verdict).total if any(by_verdict.values()) else result.total
    yes, no, doubt = (len(by_verdict[name]) for name in VERDICTS)
    return result.total, yes, no, doubt, left


def tab_of(
    result: RankedResult, params: SearchParams, verdict: str, by_verdict: Mapping[str, list[int]]
) -> RankedResult:
    """The photos of a result with this verdict, or with none, in its order, as a result of its own."""
    if verdict == UNJUDGED:
        judged = result.with_groups([row for rows in by_verdict.values() for row in rows])
        # What ends early ends earlier by what is left out of it
        most = None if result.most is None else int((~np.isin(result.slice(0, result.most).rows, judged)).sum())
        made = result.derived(params, f"without {judged}", without=result.without.union(judged), most=most)
        ranked = ~np.isin(made.rows, judged)
    else:
        rows = sorted(by_verdict[verdict])
        mask = np.zeros_like(result.mask)
        mask[rows] = True
        made = result.derived(params, f"{verdict} {rows}", mask=mask, most=None)
        ranked = np.isin(made.rows, rows)
    made.rows, made.scores = made.rows[ranked], made.scores[ranked]
    return made


def countable_of(result: RankedResult, verdict: str | None, judgements: Mapping[str, Judgement]) -> Countable:
    """What a result, or a tab of it, could show without any filter; counts of filters are of these."""
    every = result.countable
    if verdict is None:
        return every
    by_verdict, rows = rows_by_verdict(result, judgements, every.rows), every.rows.copy()
    if verdict == UNJUDGED:
        rows[result.with_groups([row for several in by_verdict.values() for row in several])] = False
        return every._replace(rows=rows)
    return Countable(np.isin(np.arange(len(rows)), by_verdict[verdict]), False)


def query_to_judge(result: RankedResult) -> Query:
    """What judges are asked; `UsageError` for a search that has neither words nor a picture."""
    if result.query is None:
        raise UsageError("a judge needs words or a picture to judge by; search for some, and let it look then")
    return result.query


def run_of(result: RankedResult, depth: int) -> Run:
    """The first hits under the ids of their pictures; what lies behind an address has no picture here."""
    found = result.slice(0, depth)
    pictures = result.snapshot.pictures(found.rows.tolist())
    # The last bit of a score may differ between two rounds of a search.
    scores = np.minimum.accumulate(found.scores).tolist()
    hits = [RankedImage(id, score) for (id, _), score in zip(pictures, scores, strict=True)]
    run = Run({query_to_judge(result).id: hits})
    run.header["encoder"] = result.snapshot.view.space.encoder
    for id, places in pictures:
        path = next((place.place for place in places if "://" not in place.place), None)
        run.facts[id] = {"id": id, "path": path}
    return run


def leave_out_changed(run: Run, result: RankedResult, ranks: Sequence[int]) -> None:
    """Hits at these ranks whose picture is gone, or is another one by now, are shown to no judge."""
    rows = result.slice(0, max(ranks)).rows[np.array(ranks) - 1].tolist()
    for id, places in result.snapshot.pictures(rows):
        run.facts[id]["path"] = None
        with suppress(Problem):
            run.facts[id]["path"] = read_original(id, places)[0]


def in_judged_order(result: RankedResult, params: SearchParams, stage: JudgeRerank) -> RankedResult:
    """The ranking in the judge's order by the verdicts that the ledger has; the others follow as they were."""
    query, run = query_to_judge(result), run_of(result, stage.depth)
    rank = {hit.image: at for at, hit in enumerate(run[query.id], 1)}
    answers = known(stage.judge, stage.ledger, query_digest(query), rank)
    judge_result = JudgeResult({query.id: answers}, Counted(), prompts=prompts_of(stage.judge))
    reranked = stage.reranked(run, judge_result)
    row = dict(zip(rank, result.slice(0, stage.depth).rows.tolist(), strict=True))
    verdicts = {id: judge_result.verdict(query.id, id) for id in rank}
    judged = {row[id]: JudgedPlace(rank[id], points(verdict) if verdict else None) for id, verdict in verdicts.items()}
    return result.in_order(params, [row[hit.image] for hit in reranked[query.id]], judged)
