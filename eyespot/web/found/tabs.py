"""A result by verdict: its photos with a yes, a no, a doubt, or none; and how many there are of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from eyespot.types import Judgement, Mask
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import RankedResult

Verdict = Literal["yes", "no", "doubt"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
UNJUDGED = "unjudged"


class VerdictCounts(NamedTuple):
    """How many photos of a result have which verdict; copies and burst frames of a judged photo are not unjudged."""

    all: int
    yes: int
    no: int
    doubt: int
    unjudged: int


def verdict_of(judgement: Judgement | None) -> str | None:
    """`yes`, `no` or `doubt`, as somebody said; None where nobody has."""
    verdict = judgement.verdict if judgement else None
    if verdict is None:
        return None
    return "yes" if verdict.grade else "doubt" if verdict.reason == "doubt" else "no"


def rows_by_verdict(frozen: RankedResult, judgements: Mapping[str, Judgement]) -> dict[str, list[int]]:
    """The rows of a result with each verdict; what a filter leaves out, or the end of the result, is not among them."""
    found: dict[str, list[int]] = {name: [] for name in VERDICTS}
    here = _in_result(frozen)
    for id, judgement in judgements.items():
        row, verdict = frozen.snapshot.row_of(id), verdict_of(judgement)
        if row is not None and verdict is not None and here[row]:
            found[verdict].append(row)
    return found


def _in_result(frozen: RankedResult) -> Mask:
    """The rows that a result shows, also those that stand behind the tile of another, (rows,)."""
    here = frozen.mask & frozen.counted
    if frozen.most is not None:
        within = np.zeros_like(here)
        within[_with_group(frozen, frozen.slice(0, frozen.total).rows.tolist())] = True
        here &= within
    return here


def counted(frozen: RankedResult, by_verdict: Mapping[str, list[int]]) -> VerdictCounts:
    """How many photos there are of each."""
    left = tab_of(frozen, frozen.params, UNJUDGED, by_verdict).total if any(by_verdict.values()) else frozen.total
    yes, no, doubt = (len(by_verdict[name]) for name in VERDICTS)
    return VerdictCounts(frozen.total, yes, no, doubt, left)


def tab_of(
    frozen: RankedResult, params: SearchParams, verdict: str, by_verdict: Mapping[str, list[int]]
) -> RankedResult:
    """The photos of a result with this verdict, or with none, in its order, as a result of its own."""
    if verdict == UNJUDGED:
        judged = _with_group(frozen, [row for rows in by_verdict.values() for row in rows])
        # What ends early ends earlier by what is left out of it
        most = None if frozen.most is None else int((~np.isin(frozen.slice(0, frozen.most).rows, judged)).sum())
        made = frozen.derived(params, f"without {judged}", without=frozen.without.union(judged), most=most)
        ranked = ~np.isin(made.rows, judged)
    else:
        rows = sorted(by_verdict[verdict])
        mask = np.zeros_like(frozen.mask)
        mask[rows] = True
        made = frozen.derived(params, f"{verdict} {rows}", mask=mask, most=None)
        ranked = np.isin(made.rows, rows)
    made.rows, made.scores = made.rows[ranked], made.scores[ranked]
    return made


def ranks_in(frozen: RankedResult, rows: Iterable[int], deep: int) -> dict[int, int]:
    """The rank of rows in a result, from 1, for those among its first `deep` or as far as it was looked at."""
    frozen.slice(0, deep)
    ranked: NDArray[np.int64] = frozen.rows
    at = {int(row): rank for rank, row in enumerate(ranked.tolist(), 1)}
    return {row: at[row] for row in rows if row in at}


def _with_group(frozen: RankedResult, rows: list[int]) -> list[int]:
    """These rows with those that stand behind the same tile."""
    if not frozen.grouped or not rows:
        return sorted(rows)
    numbers = frozen.groups.numbers
    own = np.unique(numbers[rows])
    return sorted({*rows, *np.flatnonzero(np.isin(numbers, own[own >= 0])).tolist()})
