"""A run and its qrels to scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from eyespot.metrics._aligned import UNJUDGED, Aligned, aligned
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import OutsideMeasure
from eyespot.metrics._parsing import parse
from eyespot.metrics._scores import Rules, Scores, labels_of
from eyespot.runs.trec import trec_order
from eyespot.types import Qrels, Run, UsageError

GIVEN = Rules()


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
        rankings = aligned(trec_order(run) if rules.order == "trec" else run, qrels)
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
    found = list(rankings.missing), list(rankings.unjudged), empty
    return Scores(queries, values, labelled, rules, *found, notes=_notes(rankings, labelled, empty, rules))


def _notes(rankings: Aligned, measures: Mapping[str, Measure], empty: Sequence[str], rules: Rules) -> list[str]:
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
    cutoffs = sorted({measure.cutoff for measure in measures.values() if measure.cutoff is not None})
    counts = ((k, rankings.tied_at(k)) for k in cutoffs)
    texts = [
        f"{count} of {len(rankings.queries)} queries have equal scores on both sides of rank {k}: "
        "the order of the run decides which of them count"
        for k, count in counts
        if count
    ]
    return notes + texts
