"""Rankings of a benchmark from files, and what of a run a task scores: its own queries, pool and candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from eyespot.benchmarks._benchmark import Task
from eyespot.runs import read_run
from eyespot.search.rescored import below
from eyespot.types import NothingFound, RankedImage, Run, UsageError, quantity


def runs_of(tasks: Sequence[Task], given: Sequence[str], format: str | None = None) -> dict[str, Run]:
    """The run of every task that has one: `given` are files, or NAME=FILE; a similarity matrix is read both ways.

    A file without a name serves every task whose queries and pool it ranks. Raises `NothingFound` if that is none.
    """
    only = tasks[0].name if len(tasks) == 1 else None
    parts = [(name or only, path) for name, path in (_parts(tasks, one) for one in given)]
    named = dict(parts)
    if len(named) < len(parts):
        twice = next(name for name in named if [name for name, _ in parts].count(name) > 1)
        if twice is not None:
            raise UsageError(f"--run {twice}=FILE is given more than once; keep one of them")
    if None in named and len(parts) > 1:
        raise UsageError(f"name the task of each file, as in --run {tasks[0].name}=FILE; there are: {_names(tasks)}")
    read = cache(read_run)
    found: dict[str, Run] = {}
    for task in tasks:
        if task.name in named:
            found[task.name] = _meant(read, task, named[task.name], format) or read(named[task.name], format)
        elif None in named and (run := _meant(read, task, named[None], format)) is not None:
            found[task.name] = run
    if not found:
        path = next(iter(named.values()))
        fitted(tasks[0], read(path, format))  # says what does not fit
        raise NothingFound(f"{path} ranks the pool of no task; name the one it is for: --run {tasks[0].name}={path}")
    return found


def files_of(tasks: Sequence[Task], given: Sequence[str]) -> list[Path]:
    """The files among what `runs_of` is given."""
    return list(dict.fromkeys(path for _, path in (_parts(tasks, one) for one in given)))


def _meant(read: Callable[..., Run], task: Task, path: Path, format: str | None) -> Run | None:
    """A file as rankings for this task, or None; of a matrix either its rows are the queries, or its columns."""
    run = read(path, format)
    if answers(task, run):
        return run
    if format is None and path.suffix == ".npz":
        try:
            turned = read(path, "npz:i2t")
        except UsageError:  # the k best of each query, which have one way only
            return None
        return turned if answers(task, turned) else None
    return None


def _parts(tasks: Sequence[Task], given: str) -> tuple[str | None, Path]:
    name, sign, path = given.partition("=")
    if sign and name in {task.name for task in tasks}:
        return name, Path(path).expanduser()
    if sign and "/" not in name and not Path(given).expanduser().exists():
        raise UsageError(f"there is no task {name!r} here; there are: {_names(tasks)}")
    return None, Path(given).expanduser()


def _names(tasks: Sequence[Task]) -> str:
    return ", ".join(task.name for task in tasks)


def sampled(tasks: Sequence[Task], count: int, seed: int = 0) -> list[Task]:
    """The tasks with `count` queries each, drawn by the seed; all of them where there are not more."""
    found = []
    for task in tasks:
        queries = [query for query in task.judged.queries if query in task.judged.qrels] or list(task.judged.queries)
        if count < len(queries):
            chosen = np.random.default_rng(seed).choice(len(queries), count, replace=False)
            queries = [queries[row] for row in sorted(chosen.tolist())]
        found.append(replace(task, judged=task.judged.only(queries)))
    return found


def aliases(names: Sequence[str], facts: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    """What images may be called in a gallery: as they are, by their path, its last part, and that without ending.

    A way in which two of them would be called alike is none: it would take one picture for both.
    """
    paths = [str(facts.get(name, {}).get("path") or name) for name in names]
    files = [path.rpartition("/")[2] for path in paths]
    stems = [file.rpartition(".")[0] or file for file in files]
    found = [list(names)]
    for other in (paths, files, stems):
        if other not in found and len(set(other)) == len(names):
            found.append(other)
    return found


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
    ours = run.only(task.judged.qrels)
    # A query's own picture leaves unless somebody judged it to be an answer, and so do pictures in doubt
    if task.exclude_input or task.exclude_unknown:
        left = {query: task.excluded(query) for query in ours}
        ours = ours.reranked({query: [hit for hit in ours[query] if hit.image not in left[query]] for query in ours})
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
        outside = [f"not relevant, for the benchmark's pool lacks them: {quantity(count, 'hit')}"] if count else []
    return ours, outside


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
    notes = [f"left out: {quantity(strange, 'hit')} beside the candidates of the query"] if strange else []
    notes += [f"last, as equals: {quantity(absent, 'candidate')} that the run does not rank"] if absent else []
    return run.reranked(made), notes


def _strange(task: Task, what: str, ranked: Sequence[str], known: Sequence[str]) -> str:
    examples = f"the run: {ranked[0] if ranked else 'nothing'!r}, the benchmark: {known[0] if known else 'nothing'!r}"
    return f"the run ranks none of the {what} of {task.name}; check that both name them alike ({examples})"
