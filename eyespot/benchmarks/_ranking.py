"""Rankings of a benchmark from files: one for all tasks, or one for each (`t2i=FILE`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._fitting import answers, fitted
from eyespot.runs import read_run
from eyespot.types import NothingFound, Run, UsageError


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
    read = _RunFiles({})
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


class _RunFiles(NamedTuple):
    """Files that are read once each."""

    runs: dict[tuple[Path, str | None], Run]

    def __call__(self, path: Path, format: str | None) -> Run:
        if (path, format) not in self.runs:
            self.runs[path, format] = read_run(path, format)
        return self.runs[path, format]


def _meant(read: _RunFiles, task: Task, path: Path, format: str | None) -> Run | None:
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
    from dataclasses import replace

    return [replace(task, judged=task.judged.only(_drawn(_judged(task), count, seed))) for task in tasks]


def _judged(task: Task) -> list[str]:
    return [query for query in task.judged.queries if query in task.judged.qrels] or list(task.judged.queries)


def _drawn(queries: list[str], count: int, seed: int) -> list[str]:
    import numpy as np

    if count >= len(queries):
        return queries
    chosen = np.random.default_rng(seed).choice(len(queries), count, replace=False)
    return [queries[row] for row in sorted(chosen.tolist())]


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
