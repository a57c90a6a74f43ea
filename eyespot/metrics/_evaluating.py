"""A run and its qrels to scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eyespot.metrics._aligned import UNJUDGED, Aligned, aligned
from eyespot.metrics._floor import tie_range, tied_queries
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import OutsideMeasure
from eyespot.metrics._parsing import parse
from eyespot.metrics._relevant import Ints
from eyespot.metrics._scores import Rules, Scores, labels_of
from eyespot.runs.trec import trec_order
from eyespot.types import Qrels, Run, UsageError

GIVEN = Rules()
FEWEST = 10  # queries of which a bootstrap over queries says something
SHOWN = 3  # measures that a note names
TINY = 1e-9


def evaluate(
    run: Run | Aligned, qrels: Qrels | None, measures: Iterable[Measure | str], rules: Rules = GIVEN
) -> Scores:
    """Every measure of every judged query, in the order of the qrels.

    `run` may be aligned already; then qrels are None, and missing queries come last. Raises `UsageError` for what is
    no measure.
    """
    labelled = labels_of([parse(measure) if isinstance(measure, str) else measure for measure in measures])
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
        relevant = np.concatenate([[0], np.cumsum(qrels.grade >= 1)])[qrels.offsets]  # (queries + 1,)
        empty = [qrels.queries[row] for row in np.flatnonzero(np.diff(relevant) == 0)]
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
    notes = [*_notes(rankings, empty, rules, len(queries)), *_tie_notes(rankings, labelled, rows)]
    return Scores(queries, values, labelled, rules, list(rankings.missing), list(rankings.unjudged), empty, notes)


def _with_hits(rankings: Aligned, qrels: Qrels) -> Aligned:
    """The rankings that hold something: a query with none is missing, in whatever format the run came."""
    if rankings.lengths.all():
        return rankings
    silent = rankings.lengths == 0
    lacking = {*rankings.missing, *(rankings.queries[row] for row in np.flatnonzero(silent))}
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
    if 0 < scored < FEWEST:
        notes.append(f"an interval of fewer than {FEWEST} queries holds less than 95 %, and these are {scored}")
    return notes


def _tie_notes(rankings: Aligned, measures: Mapping[str, Measure], rows: Ints) -> list[str]:
    """Between what the order of equal scores leaves the means of `rows`, as a sentence, where it moves them."""
    if not len(rows) or not tied_queries(rankings).any():
        return []
    moved, ranges = np.zeros(len(rankings.queries), bool), []
    for label, measure in measures.items():
        if not measure.needs_ids:
            worst, best = tie_range(measure, rankings)
            moved |= best - worst > TINY
            low, high = (float(np.append(ends, 0.0)[rows].mean()) for ends in (worst, best))
            ranges += [f"{label} between {low:.4f} and {high:.4f}"] * (high - low > TINY)
    shown = [*ranges[:SHOWN], *[f"and so {len(ranges) - SHOWN} more measures"] * (len(ranges) > SHOWN)]
    count = f"{moved.sum()} of {len(rankings.queries)} queries"
    return [f"equal scores of relevant and other images in {count} leave {', '.join(shown)}"] if ranges else []
