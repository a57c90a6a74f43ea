"""The table that was made beside the one that is printed: per cell our number, its interval, and whether they compare.

The rule of what may be compared is that of `eyespot eval` (docs/research/eval.md); its reports apply it to each number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.benchmarks import Printed, benchmark
from eyespot.reports.summary import FILE, Summary, read_summary
from eyespot.reports.tables import ReportTable, bracketed, format_mean, number
from eyespot.reproduce.recipes import TableRecipe, TableSystem

COMPARABLE = "comparable"
OF_SAMPLE = (
    "These are figures of the sample: made-up queries over a few of eyespot's sample photos, with the built-in encoder "
    "in place of every model. They show that the commands run, and say nothing about the paper's systems."
)


class TableCell(NamedTuple):
    """One number: as printed (None in a sample), as measured with its 95% interval, and whether the two compare."""

    source: str
    method: str
    what: str
    measure: str
    printed: float | None
    measured: float | None
    interval: tuple[float, float] | None
    verdict: str


def reports_of(recipe: TableRecipe, work: Path, sample: bool) -> dict[str, list[Summary]]:
    """The reports that are here, by the name of their system."""
    found: dict[str, list[Summary]] = {}
    for command in recipe.every_command(sample):
        if command.report and (work / command.report / FILE).is_file():
            for system in command.systems:
                found.setdefault(system, []).append(read_summary(work / command.report))
    return found


def cells(recipe: TableRecipe, work: Path, failed: Mapping[str, str] | None = None) -> list[TableCell]:
    """A cell for every printed number of the table, then what systems that it does not have measured.

    `failed`: why a system has no report, by its name.
    """
    reports, found = reports_of(recipe, work, False), []
    for name in recipe.benchmarks:
        for row in benchmark(name).printed():
            if row.source in recipe.sources:
                fits = (one for one in recipe.systems if one.method == row.method and one.source in ("", row.source))
                system = next(fits, None)
                whose = (system.of or system.name) if system else ""
                summaries = [one for one in reports.get(whose, []) if one["benchmark"] == name]
                lacking = f"there is no report of {whose} yet"
                if system and system.by_hand:
                    line = f"eyespot reproduce {recipe.name} --only {whose}"
                    lacking = f"it is not run by itself: {system.by_hand}; then: {line}"
                lacking = (failed or {}).get(whose, lacking)
                found.append(_cell(recipe, row, system, summaries, lacking))
    printed = {cell.method for cell in found}
    more = {one.method: reports.get(one.name, []) for one in recipe.systems if one.method not in printed}
    return [*found, *_unprinted(more, recipe.name, "not printed")]


def _cell(
    recipe: TableRecipe, row: Printed, system: TableSystem | None, reports: list[Summary], lacking: str
) -> TableCell:
    parts = [row.task, row.group, row.depth and f"top {row.depth}", row.split, row.images and f"{row.images:,} images"]
    what = ", ".join(part for part in parts if part)
    blank = TableCell(row.source, row.method, what, row.measure, row.value, None, None, "")
    if system is None:
        why = next((why for method, why in recipe.missing.items() if method in (row.method, "*")), "no step makes it")
        return blank._replace(verdict=f"not comparable, because it is not run here: {why}")
    key = {name: value for name, value in row._asdict().items() if value is not None and name != "percent"}
    reasons: list[str] = []
    for task in (task for one in reports for task in one["tasks"] if task["task"] == row.task):
        entry = next((one for one in task["published"] if all(one.get(n) == v for n, v in key.items())), None)
        if entry is not None:
            value, ends, no_value = entry["measured"], _interval(row, task), "the data do not say this breakdown"
            if system.stage:
                value, ends = _of_stage(system.stage, row.measure, task), None
                no_value = f"the report has no stage {system.stage!r}"
            if value is None:
                return blank._replace(verdict=f"not comparable, because {no_value}")
            why = "not comparable, because " + "; ".join(reason["text"] for reason in entry["reasons"])
            return blank._replace(measured=value, interval=ends, verdict=COMPARABLE if entry["comparable"] else why)
        reasons += [note["text"] for note in task["not_beside"].get(row.source, [])]
        other = any(note["code"] in ("set", "split", "images") for note in task["not_beside"].get(row.source, []))
        plain = not system.stage and (row.column, row.depth) == (None, None)
        if plain and not other and row.measure in task["measures"]:  # of the same pool: shown, though not compared
            mean = number(task["measures"][row.measure]["mean"])
            blank = blank._replace(measured=mean, interval=_interval(row, task))
    why = "; ".join(dict.fromkeys(reasons)) or lacking
    return blank._replace(verdict=f"not comparable, because {why}")


def _of_stage(stage: str, measure: str, task: Mapping[str, Any]) -> float | None:
    if stage == "chance":
        floor = task["measures"].get(measure, {}).get("by_chance")
        return None if floor is None else float(floor["mean"])
    return next((one["means"].get(measure) for one in task["stages"] if one["stage"].startswith(stage)), None)


def _interval(row: Printed, task: Mapping[str, Any]) -> tuple[float, float] | None:
    if row.column is None:
        ends = task["measures"][row.measure]["interval"]
    else:
        groups = {str(group["value"]).casefold(): group for group in task["groups"].get(row.column, [])}
        ends = groups.get(str(row.group).casefold(), {}).get("intervals", {}).get(row.measure)
    return None if ends is None else (number(ends[0]), number(ends[1]))


def sample_cells(recipe: TableRecipe, work: Path) -> Iterator[TableCell]:
    """What the miniature measured; nothing printed stands beside it."""
    reports = reports_of(recipe, work, True)
    methods = {one.method: reports.get(one.name, []) for one in recipe.sample_systems}
    return _unprinted(methods, "sample", "of the sample")


def _unprinted(reports: Mapping[str, list[Summary]], source: str, verdict: str) -> Iterator[TableCell]:
    for method, summary in ((method, one) for method, several in reports.items() for one in several):
        # With the split and the depth of a judge, by which reports of one system differ
        given = summary["made"].get("arguments", {})
        split = "" if summary["split"] == "test" else f", {summary['split']}"
        rest = split + (f", top {given['depth']}" if given.get("rerank") else "")
        for task in summary["tasks"]:
            what = f"{summary['benchmark']} {task['task']}{rest}"
            for label, value in task["measures"].items():
                ends, mean = (number(value["interval"][0]), number(value["interval"][1])), number(value["mean"])
                yield TableCell(source, method, what, label, None, mean, ends, verdict)


def as_table(recipe: TableRecipe, found: list[TableCell], sample: bool) -> ReportTable:
    """The cells as a table for people."""
    rows = []
    for cell in found:
        ours = bracketed(cell.measure, cell.measured, cell.interval)
        printed = "" if cell.printed is None else format_mean(cell.measure, cell.printed)
        row = [cell.source, cell.method, cell.what, cell.measure, printed, ours, cell.verdict]
        rows.append([*row[1:4], ours] if sample else row)
    columns = ["method", "task", "measure", "measured"]
    if not sample:
        columns = ["source", *columns[:3], "printed", "measured", "beside each other"]
    note = OF_SAMPLE if sample else "Percent; RR as a fraction. In brackets: the 95% interval, bootstrap over queries."
    title = f"{recipe.title}: a miniature, not the paper's data" if sample else recipe.title
    return ReportTable(title, columns, rows, note)
