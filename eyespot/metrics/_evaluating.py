"""A run and its qrels to scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eyespot.metrics._aligned import UNJUDGED, Aligned, aligned
from eyespot.metrics._floor import tie_range, tied_queries
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import Function, OutsideMeasure
from eyespot.metrics._parsing import measure_of
from eyespot.metrics._relevant import Ints
from eyespot.metrics._scores import Rules, Scores, labels_of
from eyespot.runs.trec import trec_order
from eyespot.types import Qrels, Run, UsageError

GIVEN = Rules()
FEWEST = 10  # queries of which a bootstrap over queries says something
SHOWN = 3  # measures that a note names
TINY = 1e-9


def evaluate(
    run: Run | Aligned, qrels: Qrels | None, measures: Iterable[Measure | str | Function], rules: Rules = GIVEN
) -> Scores:
    """Every measure of every judged query, in the order of the qrels.

    `run` may be aligned already; then qrels are None, and missing queries come last. Raises `UsageError` for what is
    no measure.
    """
    labelled = labels_of([measure_of(measure) for measure in measures])
    if isinstance(run, Aligned):
        if rules.order == "trec":
            raise UsageError("an aligned run has no image ids to sort ties by; give the run and its qrels")
        rankings = run
    else:
        if qrels is None:
            raise UsageError("a run is scored against qrels; give them")
        rankings = _with_hits(aligned(trec_order(run) if rules.order == "trec" else run, qrels), qrels)
    names = rankings.queries if qrels is None else qrels.queries
    everyone = [*names, *(query for query in rankings.missing if qrels is None)]
    # Queries without a relevant image
    if qrels is None:
        empty = [query for query, count in zip(rankings.queries, rankings.relevant, strict=True) if count == 0]
    else:
        empty = [qrels.queries[row] for row in np.flatnonzero(_relevant(qrels, 1) == 0)]
    skipped = set(rankings.missing if rules.missing == "skip" else ())
    skipped |= set(empty if rules.without_relevant == "skip" else ())
    queries = [query for query in everyone if query not in skipped] if skipped else list(everyone)
    at = {query: row for row, query in enumerate(rankings.queries)}
    rows = np.array([at.get(query, len(at)) for query in queries], np.int64)  # (queries,), one past the last: missing
    values = {}
    for label, measure in labelled.items():
        if isinstance(measure, OutsideMeasure) and qrels is not None and not isinstance(run, Aligned):
            column = measure.values(run, qrels, rankings.queries)  # other programs are given the ids
        else:
            column = measure(rankings)
        values[label] = np.append(column, 0.0)[rows]
    ranges = _tie_ranges(rankings, labelled, rows)
    notes = [*_notes(rankings, empty, rules, len(queries)), *_grade_notes(qrels, labelled), *_tie_notes(ranges)]
    missing, unjudged = list(rankings.missing), list(rankings.unjudged)
    return Scores(queries, values, labelled, rules, missing, unjudged, empty, notes, ranges)


def _with_hits(rankings: Aligned, qrels: Qrels) -> Aligned:
    """The rankings that hold something: a query with none is missing, in whatever format the run came."""
    if rankings.lengths.all():
        return rankings
    silent = rankings.lengths == 0
    lacking = {*rankings.missing, *(rankings.queries[row] for row in np.flatnonzero(silent).tolist())}
    missing = [query for query in qrels.queries if query in lacking]
    return replace(rankings.take(~silent), missing=missing, unjudged=rankings.unjudged)


def _notes(rankings: Aligned, empty: Sequence[str], rules: Rules, scored: int) -> list[str]:
    whole = len(rankings.queries) + len(rankings.missing)
    fate = {"zero": "score 0", "skip": "are left out"}
    cases = [
        (rankings.missing, f"{{}} of {whole} judged queries missing from the run; they {fate[rules.missing]}"),
        (rankings.unjudged, "{} of the run's queries without judgements; they are left out"),
        (empty, f"{{}} of {whole} judged queries without a relevant image; they {fate[rules.without_relevant]}"),
    ]
    notes = [sentence.format(len(queries)) for queries, sentence in cases if queries]
    if len(rankings.grades) and (rankings.grades == UNJUDGED).all():
        notes.append("no image of the run is judged for its query: do the image ids of run and qrels match?")
    if scored == 1:
        notes.append("one query has no interval")
    elif 0 < scored < FEWEST:
        notes.append(f"an interval of fewer than {FEWEST} queries holds less than 95 %, and these are {scored}")
    return notes


def _relevant(qrels: Qrels, rel: float) -> Ints:
    """How many images of each query have at least this grade, (queries,)."""
    return np.diff(np.concatenate([[0], np.cumsum(qrels.grade >= rel)])[qrels.offsets])


def _grade_notes(qrels: Qrels | None, measures: Mapping[str, Measure]) -> list[str]:
    """Queries that a measure of higher grades finds nothing relevant for."""
    grades = sorted({rel for one in measures.values() if (rel := one.definition.get("rel", 1)) > 1})
    short = {rel: int((_relevant(qrels, rel) == 0).sum()) for rel in grades} if qrels is not None else {}
    sentence = "{} of {} judged queries have no image of grade {}; they score 0 where rel is {}"
    return [sentence.format(n, len(qrels or ()), rel, rel) for rel, n in short.items() if n]


def _tie_ranges(rankings: Aligned, measures: Mapping[str, Measure], rows: Ints) -> dict[str, tuple[float, float]]:
    """Between what the order of equal scores leaves the means of `rows`, where it moves them."""
    ranges: dict[str, tuple[float, float]] = {}
    for label, measure in measures.items() if len(rows) and tied_queries(rankings).any() else ():
        if not measure.needs_ids:
            low, high = (float(np.append(ends, 0.0)[rows].mean()) for ends in tie_range(measure, rankings))
            ranges |= {label: (low, high)} if high - low > TINY else {}
    return ranges


def _tie_notes(ranges: Mapping[str, tuple[float, float]]) -> list[str]:
    shown = [f"{label} between {low:.4f} and {high:.4f}" for label, (low, high) in [*ranges.items()][:SHOWN]]
    more = [f"and so {len(ranges) - SHOWN} more measures"] * (len(ranges) > SHOWN)
    sentence = "relevant and other images have equal scores, whose order leaves"
    return [f"{sentence} {', '.join([*shown, *more])}"] if ranges else []
