"""Systems as the rows of a table, each with interval and time, and beside them what papers print of the same set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyespot.reports.summary import Summary, summary_beside
from eyespot.reports.tables import (
    MEASURED,
    MISSING,
    ReportTable,
    Systems,
    is_fraction,
    not_beside,
    number,
    printed_mean,
    ranking_the_same,
    tidy_table,
    with_interval,
)

NOTE = (
    "Percent; RR as a fraction. In brackets: the 95% interval, bootstrap over queries (2,000 samples). Time: encoding "
    "and search, wall time for each query of one batch."
)


def row_tables(summaries: Sequence[Summary]) -> list[ReportTable]:
    """For each task a table of the systems, then one for each paper's table that ranks the same."""
    summaries = [summaries[0], *(summary_beside(summaries[0], other) for other in summaries[1:])]
    tables: list[ReportTable] = []
    for name in dict.fromkeys(task["task"] for summary in summaries for task in summary["tasks"]):
        systems = [(one["system"], task) for one in summaries for task in one["tasks"] if task["task"] == name]
        title = f"{summaries[0]['title']} {name}, {summaries[0]['split']}"
        tables += [_measured(title, systems), *_beside_papers(title, systems)]
    return tables


def _measured(title: str, systems: Systems) -> ReportTable:
    labels = list(dict.fromkeys(label for _, task in systems for label in task["measures"]))
    columns = ["system", "queries", "images", *labels, f"{labels[0]} by chance", "ms a query"]
    lines = []
    for name, task in systems:
        ranked = f"{task['pool']:,}" if task["pool"] else MISSING
        floor = task["measures"].get(labels[0], {}).get("by_chance")  # what a random order of as many images scores
        scale = 1 if is_fraction(labels[0]) else 100
        chance = MISSING if floor is None else f"{number(floor['mean']) * scale:.2g}"
        each = 1000 * sum(map(number, task["seconds"].values()))
        time = (f"{each:,.0f}" if each >= 10 else f"{each:.2g}") if task["seconds"] else MISSING
        means = [with_interval(task, label) for label in labels]
        lines.append([name, f"{task['queries']:,}", ranked, *means, chance, time])
    return tidy_table(title, columns, lines, " ".join([NOTE, *not_beside(systems)]))


def _beside_papers(title: str, systems: Systems) -> Iterator[ReportTable]:
    """A table for each table of a paper: the systems that ranked what it ranks, then its own rows."""
    whole = [one for _, task in systems for one in task["published"] if one.get("column") is None]
    for source in dict.fromkeys(one["source"] for one in whole):
        printed = [one for one in whole if one["source"] == source]
        labels = list(dict.fromkeys(one["measure"] for one in printed))
        same = ranking_the_same(systems, source)
        lines = [[f"{name} ({MEASURED})", *(with_interval(task, label) for label in labels)] for name, task in same]
        values = {(one["method"], one["measure"]): one["value"] for one in printed}
        for method in dict.fromkeys(one["method"] for one in printed):
            found = ((label, number(values.get((method, label)))) for label in labels)
            lines.append([method, *(printed_mean(label, v, 2 if is_fraction(label) else 1) for label, v in found)])
        reasons: dict[str, list[str]] = {}  # why its numbers are shown without a comparison, with the systems
        for name, task in same:
            notes = [note["text"] for one in task["published"] if one["source"] == source for note in one["reasons"]]
            for text in dict.fromkeys(notes):
                reasons.setdefault(text, []).append(name)
        note = " ".join(f"Not compared ({', '.join(names)}): {text}." for text, names in reasons.items())
        yield tidy_table(f"{title}, beside {source}", ["method", *labels], lines, note)
