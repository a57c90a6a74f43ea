"""Rankings side by side with their grades: what a run and its qrels become before anything is scored."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics._relevant import Grades, Ints, Reals, RelevantHits, counts_where, offsets_of, rows_between
from eyespot.types import Qrels, Run, UsageError

UNJUDGED = -1


@dataclass(frozen=True, eq=False)
class Aligned:
    """Rankings of judged queries, best first, with the grade of every hit.

    `offsets` (q + 1,), `grades` (hits,) with -1 for unjudged, `scores` (hits,); `ideal_offsets` (q + 1,) and `ideal`,
    the grades above 0 of all judged images of each query, descending. `missing`: judged queries that the run
    lacks; `unjudged`: queries of the run without judgements.
    """

    queries: Sequence[str]
    offsets: Ints
    grades: Grades
    scores: Reals
    ideal_offsets: Ints
    ideal: Grades
    missing: Sequence[str] = ()
    unjudged: Sequence[str] = ()

    def __post_init__(self) -> None:
        whole = {name: np.asarray(getattr(self, name)).dtype.kind != "f" for name in ("grades", "ideal")}
        graded = {name: np.int32 if each else np.float64 for name, each in whole.items()}
        for name, dtype in {"offsets": np.int64, "scores": np.float64, "ideal_offsets": np.int64, **graded}.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        fits = len(self.offsets) == len(self.ideal_offsets) == len(self.queries) + 1
        if not fits or len(self.grades) != len(self.scores) or self.offsets[-1] != len(self.grades):
            raise UsageError("offsets, grades and scores do not fit together; every hit needs a grade and a score")

    @cached_property
    def lengths(self) -> Ints:
        """How many hits each query has, (q,)."""
        return np.diff(self.offsets)

    @property
    def relevant(self) -> Ints:
        """R: how many images are relevant to each query, found or not, (q,)."""
        return self.relevant_at(1)

    def relevant_at(self, rel: int) -> Ints:
        """How many have this grade or more, (q,)."""
        return counts_where(self.ideal_offsets, self.ideal >= rel)

    @cached_property
    def relevant_hits(self) -> RelevantHits:
        """The hits of a grade above 0 with their ranks; made once."""
        rows = np.flatnonzero(self.grades > 0)
        query = np.searchsorted(self.offsets, rows, side="right") - 1
        counts = np.bincount(query, minlength=len(self.queries))
        fresh = np.zeros(len(self.scores) + 1, np.bool_)
        fresh[1:-1] = self.scores[1:] != self.scores[:-1]
        fresh[self.offsets] = True
        groups = np.flatnonzero(fresh)  # where equal scores begin, and the end
        group, before = np.searchsorted(groups, rows, side="right"), self.offsets[query]
        first, last = groups[group - 1] - before + 1, groups[group] - before
        ideal = self.lengths, self.ideal_offsets, self.ideal
        return RelevantHits(offsets_of(counts), rows - before + 1, self.grades[rows], first, last, *ideal)

    def judged_only(self) -> Aligned:
        """The rankings without their unjudged hits."""
        return self.where(self.grades != UNJUDGED)

    def where(self, mask: NDArray[np.bool_]) -> Aligned:
        """The rankings without the hits that are not marked, (hits,)."""
        offsets = offsets_of(counts_where(self.offsets, mask))
        return replace(self, offsets=offsets, grades=self.grades[mask], scores=self.scores[mask])

    def take(self, rows: Any) -> Aligned:
        """These queries: indices or a boolean array (q,)."""
        chosen = np.arange(len(self.queries))[np.asarray(rows)]  # (chosen,)
        lengths, relevant = self.lengths[chosen], np.diff(self.ideal_offsets)[chosen]
        hits = rows_between(self.offsets[chosen], lengths)
        return Aligned(
            [self.queries[row] for row in chosen],
            *(offsets_of(lengths), self.grades[hits], self.scores[hits]),
            *(offsets_of(relevant), self.ideal[rows_between(self.ideal_offsets[chosen], relevant)]),
        )


def aligned(run: Run, qrels: Qrels, removed: Qrels | None = None) -> Aligned:
    """The rankings of the judged queries, in the order of the qrels.

    The pairs in `removed`, whatever their grade, leave the rankings first: ILIAS scores a group of positives as if
    the others were not in the collection.
    """
    if removed is not None:
        marked = copy(removed)
        marked.grade = np.ones_like(removed.grade)
        run = run.without(np.flatnonzero(run.graded(marked) == 1))
    place = {query: row for row, query in enumerate(run.queries)}
    judged = [row for row, query in enumerate(qrels.queries) if query in place]
    queries, rows = [qrels.queries[row] for row in judged], np.array(judged, dtype=np.int64)  # (q,)
    in_run = np.array([place[query] for query in queries], dtype=np.int64)  # (q,)
    lengths, known = np.diff(run.offsets)[in_run], set(qrels.queries)
    hits: Any = slice(None)
    if not np.array_equal(in_run, np.arange(len(run.queries))):
        hits = rows_between(run.offsets[in_run], lengths)
    grades = run.graded(qrels)
    return Aligned(
        queries,
        *(offsets_of(lengths), np.where(grades < 0, grades.dtype.type(UNJUDGED), grades)[hits], run.score[hits]),
        *_ideal(qrels, rows),
        [query for query in qrels.queries if query not in place],
        [query for query in run.queries if query not in known],
    )


def _ideal(qrels: Qrels, judged: Ints) -> tuple[Ints, Grades]:
    """The grades above 0 of these queries, descending: offsets (q + 1,) and grades (relevant,)."""
    lengths = np.diff(qrels.offsets)[judged]
    rows = rows_between(qrels.offsets[judged], lengths)
    query, grades = np.repeat(np.arange(len(judged)), lengths), qrels.grade[rows]
    query, grades = query[grades > 0], grades[grades > 0]
    order = slice(None) if (grades == 1).all() else np.lexsort((-grades, query))
    return offsets_of(np.bincount(query, minlength=len(judged))), grades[order]
