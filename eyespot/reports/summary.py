"""An evaluation as plain data: what `--json` prints, what a report folder keeps, and what figures are drawn from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from eyespot.benchmarks import Evaluation, Printed, Result, beside
from eyespot.storage.digests import json_sha256
from eyespot.types import Note, UsageError, codes_of

FILE = "summary.json"
Summary: TypeAlias = Mapping[str, Any]  # what `summary_of` gives and a report folder keeps


def summary_of(evaluation: Evaluation) -> dict[str, Any]:
    """All of an evaluation but the values of single queries."""
    return {
        "benchmark": evaluation.benchmark.name,
        "title": evaluation.benchmark.title,
        "split": evaluation.split,
        "system": evaluation.system,
        "tasks": [_task(evaluation, result) for result in evaluation.results],
        "notes": evaluation.notes,
        "codes": codes_of(evaluation.notes),
        "citation": evaluation.benchmark.citation,
        "licence": evaluation.benchmark.licence,
        "made": evaluation.made,
    }


def read_summary(place: Path) -> dict[str, Any]:
    """The summary of a report folder (or the file itself); `UsageError` if it is none."""
    path = place / FILE if place.is_dir() else place
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"there is no {path}; give a folder that eyespot eval --out wrote") from None
    except (ValueError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not a summary of eyespot eval ({error})") from None
    if not isinstance(found, dict) or not {"benchmark", "tasks", "system", "made"} <= set(found):
        raise UsageError(f"{path} is not a summary of eyespot eval")
    return found


def summary_beside(ours: Summary, other: Summary) -> dict[str, Any]:
    """Another report as it may stand beside ours: its tasks of the same judgements, its measures under our labels.

    Measures are joined by their definitions, since a label depends on what else was measured. `left_out` has a sentence
    for what is not of the same judgements, or of another definition under our label.
    """
    tasks, left_out, system = [], list(other.get("left_out", ())), other["system"]
    for mine, task in ((m, t) for m in ours["tasks"] for t in other["tasks"] if t["task"] == m["task"]):
        if task.get("judgements") != mine["judgements"]:
            left_out.append(f"{system} was evaluated on other queries or judgements and is left out of {mine['task']}")
            continue
        labels = {json_sha256(found["definition"]): label for label, found in mine["measures"].items()}
        names = {label: labels.get(json_sha256(found["definition"])) for label, found in task["measures"].items()}
        other_ones = [label for label in names if label in mine["measures"] and label not in names.values()]
        left_out += [f"{system} has another definition of {label}, which is left out" for label in other_ones]
        tasks.append(_renamed(task, names))
    return {**other, "tasks": tasks, "left_out": left_out}


def _renamed(value: Any, names: Mapping[str, str | None]) -> Any:
    """The same with these keys under other names, and without those that have none."""
    if isinstance(value, Mapping):
        parts = ((names.get(key, key), part) for key, part in value.items())
        return {name: _renamed(part, names) for name, part in parts if name is not None}
    return [_renamed(part, names) for part in value] if isinstance(value, list) else value


def _task(evaluation: Evaluation, result: Result) -> dict[str, Any]:
    papers = beside(evaluation, result)
    measures: dict[str, dict[str, Any]] = {}
    for label in result.scores.values:
        floor = result.floors.get(label)
        measures[label] = {
            "mean": result.scores.mean(label),
            "interval": list(result.scores.interval(label)),
            "by_chance": floor and {"mean": floor.mean, "error": floor.error, "exact": floor.exact},
            "at_most": result.ceilings.get(label),
            "definition": result.scores.measures[label].definition,
        }
    return {
        "task": result.task.name,
        "queries": len(result.scores.queries),
        "asked": len(result.task.judged.queries),
        "judgements": result.judgements,
        "pool": result.pool,
        "measures": measures,
        "groups": {name: [group._asdict() for group in groups] for name, groups in result.groups.items()},
        "stages": [{"stage": stage.name, "means": stage.scores.means} for stage in result.stages],
        "published": [_printed(result, one, papers.reasons.get(one, [])) for one in papers.rows],
        "comparable": {source: _coded(notes) for source, notes in papers.grounds.items()},
        "not_beside": {source: _coded(notes) for source, notes in papers.without.items()},
        "seconds": dict(result.run.header.get("seconds", {})),
        "missing": list(result.scores.missing),
        "notes": list(result.notes),
        "codes": codes_of(result.notes),
    }


def _printed(result: Result, one: Printed, reasons: Sequence[Note]) -> dict[str, Any]:
    """A published number with ours of the same queries, where there is one; a difference where it may be compared."""
    means = result.scores.means
    if one.column is not None:
        groups = {group.value.casefold(): group.means for group in result.groups.get(one.column, ())}
        means = groups.get(str(one.group).casefold(), {})
    ours = means.get(one.measure)
    about = {name: value for name, value in one._asdict().items() if value is not None and name != "percent"}
    difference = None if ours is None or reasons else ours - one.value
    whether = {"comparable": not reasons, "reasons": _coded(reasons)}
    return {**about, "measured": ours, "difference": difference, **whether}


def _coded(notes: Sequence[Note]) -> list[dict[str, str]]:
    return [{"code": note.code, "text": str(note)} for note in notes]
