"""Systems as the rows of a table, each with interval and time, and beside them what papers print of the same set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eyespot.reports.tables import MEASURED, MISSING, ReportTable, Summary, format_mean, is_fraction, number, tidy_table

NOTE = (
    "Percent; RR as a fraction. In brackets: the 95% interval, bootstrap over queries (2,000 samples). Time: encoding "
    "and search, wall time for each query of one batch."
)


def row_tables(summaries: Sequence[Summary]) -> list[ReportTable]:
    """For each task a table of the systems, then one for each paper's table that ranks the same."""
    names = dict.fromkeys(task["task"] for summary in summaries for task in summary["tasks"])
    tables: list[ReportTable] = []
    for name in names:
        rows = [(summary, task) for summary in summaries for task in summary["tasks"] if task["task"] == name]
        tables += [_measured(rows), *_beside_papers(rows)]
    return tables


def _measured(rows: Sequence[tuple[Summary, Mapping[str, Any]]]) -> ReportTable:
    labels = list(dict.fromkeys(label for _, task in rows for label in task["measures"]))
    columns = ["system", "queries", "images", *labels, f"{labels[0]} by chance", "ms a query"]
    lines = []
    for summary, task in rows:
        means = [_mean(label, task["measures"].get(label)) for label in labels]
        ranked = f"{task['pool']:,}" if task["pool"] else MISSING
        floor = task["measures"].get(labels[0], {}).get("by_chance")  # what a random order of as many images scores
        scale = 1 if is_fraction(labels[0]) else 100
        chance = MISSING if floor is None else f"{number(floor['mean']) * scale:.2g}"
        each = 1000 * sum(map(number, task["seconds"].values()))
        time = (f"{each:,.0f}" if each >= 10 else f"{each:.2g}") if task["seconds"] else MISSING
        lines.append([summary["system"], f"{task['queries']:,}", ranked, *means, chance, time])
    note = " ".join([NOTE, *_not_beside(rows)])
    return tidy_table(_title(rows), columns, lines, note)


def _title(rows: Sequence[tuple[Summary, Mapping[str, Any]]]) -> str:
    summary, task = rows[0]
    return f"{summary['title']} {task['task']}, {summary['split']}"


def _mean(label: str, found: Mapping[str, Any] | None) -> str:
    if found is None:
        return MISSING
    ends = ", ".join(format_mean(label, number(end)) for end in found["interval"])
    return f"{format_mean(label, number(found['mean']))} [{ends}]"


def _not_beside(rows: Sequence[tuple[Summary, Mapping[str, Any]]]) -> Iterator[str]:
    """A sentence for each set of reasons that keep a paper's table away from some rows."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for summary, task in rows:
        for source, notes in task["not_beside"].items():
            why = "; ".join(note["text"] for note in notes)
            reasons.setdefault(why, {}).setdefault(source, []).append(summary["system"])
    for why, sources in reasons.items():
        systems = list(dict.fromkeys(name for names in sources.values() for name in names))
        whose = "" if len(systems) == len(rows) else f" ({', '.join(systems)})"
        yield f"Not beside {'; '.join(sources)}{whose}: {why}."


def _beside_papers(rows: Sequence[tuple[Summary, Mapping[str, Any]]]) -> Iterator[ReportTable]:
    """A table for each table of a paper: the systems that ranked what it ranks, then its own rows."""
    whole = [one for _, task in rows for one in task["published"] if one.get("column") is None]
    for source in dict.fromkeys(one["source"] for one in whole):
        of_source = [one for one in whole if one["source"] == source]
        labels = list(dict.fromkeys(one["measure"] for one in of_source))
        values = {(one["method"], one["measure"]): one["value"] for one in of_source}
        ours = [(s, task) for s, task in rows if any(one["source"] == source for one in task["published"])]
        lines = [
            [f"{summary['system']} ({MEASURED})", *(_mean(label, task["measures"].get(label)) for label in labels)]
            for summary, task in ours
        ]
        for method in dict.fromkeys(method for method, _ in values):
            found = ((label, values.get((method, label))) for label in labels)
            texts = (
                MISSING if v is None else f"{v:.2f}" if is_fraction(label) else f"{100 * v:.1f}" for label, v in found
            )
            lines.append([method, *texts])
        title = f"{_title(rows)}, beside {source}"
        yield tidy_table(title, ["method", *labels], lines, " ".join(_not_compared(ours, source)))


def _not_compared(rows: Sequence[tuple[Summary, Mapping[str, Any]]], source: str) -> Iterator[str]:
    """Why the numbers of a paper are shown without a comparison."""
    reasons: dict[str, list[str]] = {}
    for summary, task in rows:
        notes = [note["text"] for one in task["published"] if one["source"] == source for note in one["reasons"]]
        for text in dict.fromkeys(notes):
            reasons.setdefault(text, []).append(summary["system"])
    for text, systems in reasons.items():
        yield f"Not compared ({', '.join(systems)}): {text}."
