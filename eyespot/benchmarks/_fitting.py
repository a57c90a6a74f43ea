"""What of a run a task scores: rankings of its own queries and pool, among the candidates where there are any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eyespot.benchmarks._benchmark import Folds, Task
from eyespot.search.rescored import below
from eyespot.types import IdColumn, NothingFound, RankedImage, Run

SHARE = 0.5  # of what a run ranks that must be in the pool, for it to be meant


def answers(task: Task, run: Run) -> bool:
    """Whether a run is meant for a task: it has queries of it, and ranks its pool for them.

    COCO numbers captions and images alike, so that a ranking of images names many "queries" of image→text as well.
    """
    ours = run.only(task.judged.qrels)
    if not len(ours) or not task.pool:
        return len(ours) > 0
    return sum(image in task.pool for image in ours.images.tolist()) >= SHARE * len(ours.images)


def fitted(task: Task, run: Run) -> tuple[Run, list[str]]:
    """The rankings that count, and notes on the rest.

    Raises `NothingFound` if the run has no query of the task, or ranks nothing that can be ranked there.
    """
    without_inputs_run = run.only(task.judged.qrels)
    # A query's own picture leaves unless somebody judged it to be an answer, and so do pictures in doubt
    if not (task.exclude_input or task.exclude_unknown):
        ours = without_inputs_run
    else:
        made = Run({query: _others(task, query, without_inputs_run[query]) for query in without_inputs_run})
        made.header, made.facts, made.notes = (
            without_inputs_run.header,
            without_inputs_run.facts,
            without_inputs_run.notes,
        )
        ours = made
    if not len(ours):
        raise NothingFound(_strange(task, "queries", run.queries, list(task.judged.qrels)))
    if task.judged.candidates is not None:
        return _among(task, ours, task.judged.candidates)
    if not task.pool or not len(ours.codes):
        outside = []
    else:
        inside = np.array([image in task.pool for image in ours.images.tolist()], bool)[ours.codes]  # (hits,)
        if not inside.any():
            raise NothingFound(_strange(task, "pool", ours.images.tolist(), list(task.pool)))
        count = int((~inside).sum())
        outside = [f"{count} hits are not in the benchmark's pool; they count as not relevant"] if count else []
    if task.folds is None:
        return ours, outside
    own, short = _in_folds(task, ours, task.folds)
    return own, outside + short


def unknown(tasks: Sequence[Task], runs: Mapping[str, Run]) -> list[str]:
    """A sentence for each run that has queries of none of the tasks."""
    queries = {query for task in tasks for query in task.judged.queries}
    distinct = {id(run): run for run in runs.values()}.values()
    strange = [(run, [query for query in run if query not in queries]) for run in distinct]
    return [
        f"{len(odd)} of the run's {len(run)} queries are none of this split (such as {odd[0]!r}) and are left out"
        for run, odd in strange
        if odd
    ]


def _others(task: Task, query: str, hits: list[RankedImage]) -> list[RankedImage]:
    left = task.excluded(query)
    return [hit for hit in hits if hit.image not in left] if left else hits


def _in_folds(task: Task, run: Run, folds: Folds) -> tuple[Run, list[str]]:
    """The rankings of each query's own fold, and a note if they end before the deepest cut."""
    lengths = np.diff(run.offsets)
    query = np.array([folds.of_query.get(name, -1) for name in run.queries], np.int64)  # (queries,)
    image = np.array([folds.of_image.get(name, -2) for name in run.images.tolist()], np.int64)  # (images,)
    same = np.repeat(query, lengths) == image[run.codes]  # (hits,)
    rows = np.repeat(np.arange(len(query)), lengths)[same]
    names = np.array([*run.queries, None], dtype=object)[:-1]
    made = Run.from_columns(IdColumn(names, rows), IdColumn(run.images, run.codes[same]), run.score[same])
    made.facts, made.notes = run.facts, run.notes
    made.header = {name: value for name, value in run.header.items() if name != "pool"}  # that of all folds
    deepest = max(measure.cutoff or 1 for measure in task.measures)
    short = int((np.diff(made.offsets) < deepest).sum())
    text = f"{short} of {len(made)} rankings hold fewer than {deepest} of their fold; give longer ones"
    return made, [text] if short else []


def _among(task: Task, run: Run, candidates: Run) -> tuple[Run, list[str]]:
    """The rankings among the candidates: others leave, what is missing goes last, all of it with one score.

    A query that ranks none of its candidates has not been answered: the order in which they were handed out is
    another system's.
    """
    made: dict[str, list[RankedImage]] = {}
    strange = absent = 0
    for query in run:
        allowed = dict.fromkeys(hit.image for hit in candidates[query]) if query in candidates else {}
        survivors = [hit for hit in run[query] if hit.image in allowed]
        ranked, last = {hit.image for hit in survivors}, below(survivors)
        rest = [RankedImage(image, last) for image in allowed if image not in ranked]
        strange += len(run[query]) - len(survivors)
        if survivors:
            made[query], absent = [*survivors, *rest], absent + len(rest)
    if not made:
        raise NothingFound(_strange(task, "candidates", run.images.tolist(), candidates.images.tolist()))
    restricted = Run(made)
    restricted.header, restricted.facts, restricted.notes = run.header, run.facts, run.notes
    notes = [f"{strange} hits that are no candidates of their query were left out"] if strange else []
    notes += [f"{absent} candidates that the run does not rank go last, as equals"] if absent else []
    return restricted, notes


def _strange(task: Task, what: str, theirs: Sequence[str], ours: Sequence[str]) -> str:
    examples = f"the run: {theirs[0] if theirs else 'nothing'!r}, the benchmark: {ours[0] if ours else 'nothing'!r}"
    return f"the run ranks none of the {what} of {task.name}; check that both name them alike ({examples})"
