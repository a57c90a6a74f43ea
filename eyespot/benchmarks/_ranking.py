"""Rankings of a benchmark from files: one for all tasks, or one for each (`t2i=FILE`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from eyespot.benchmarks._benchmark import Task
from eyespot.runs import read_run
from eyespot.types import Run, UsageError


def runs_of(tasks: Sequence[Task], given: Sequence[str], format: str | None = None) -> dict[str, Run]:
    """The run of every task that has one: `given` are files, or NAME=FILE; a similarity matrix is read both ways.

    A file without a name serves all tasks; what of it belongs to which is told by its queries.
    """
    named = dict(_parts(tasks, one) for one in given)
    if None in named and len(named) < len(given):
        raise UsageError(f"name the task of each file, as in --run {tasks[0].name}=FILE; there are: {_names(tasks)}")
    found: dict[str, Run] = {}
    read: dict[tuple[Path, str | None], Run] = {}
    for task in tasks:
        path = named.get(task.name, named.get(None))
        if path is not None:
            key = (path, format or ("npz:i2t" if task.way == "i2t" and path.suffix == ".npz" else None))
            if key not in read:
                read[key] = read_run(*key)
            found[task.name] = read[key]
    return found


def _parts(tasks: Sequence[Task], given: str) -> tuple[str | None, Path]:
    name, sign, path = given.partition("=")
    if sign and name in {task.name for task in tasks}:
        return name, Path(path).expanduser()
    if sign and not Path(given).expanduser().exists() and "/" not in name:
        raise UsageError(f"there is no task {name!r} here; there are: {_names(tasks)}")
    return None, Path(given).expanduser()


def _names(tasks: Sequence[Task]) -> str:
    return ", ".join(task.name for task in tasks)


def sampled(tasks: Sequence[Task], count: int, seed: int = 0) -> list[Task]:
    """The tasks with `count` queries each, drawn by the seed; all of them where there are not more."""
    from dataclasses import replace

    return [replace(task, judged=task.judged.only(_drawn(list(task.judged.queries), count, seed))) for task in tasks]


def _drawn(queries: list[str], count: int, seed: int) -> list[str]:
    import numpy as np

    if count >= len(queries):
        return queries
    chosen = np.random.default_rng(seed).choice(len(queries), count, replace=False)
    return [queries[row] for row in sorted(chosen.tolist())]


def aliases(names: Sequence[str], facts: Mapping[str, Mapping[str, object]]) -> list[list[str]]:
    """What images may be called in a gallery: as they are, by their path, its last part, and that without ending."""
    paths = [str(facts.get(name, {}).get("path") or name) for name in names]
    files = [path.rpartition("/")[2] for path in paths]
    stems = [file.rpartition(".")[0] or file for file in files]
    found = [list(names)]
    for other in (paths, files, stems):
        if other not in found:
            found.append(other)
    return found
