"""An evaluation as one page to read: numbers, figures, other systems and papers, breakdowns, and how it was made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from eyespot.benchmarks import Evaluation
from eyespot.html import render
from eyespot.reports.examples import Examples
from eyespot.reports.moved import KIT
from eyespot.reports.tables import (
    MEASURED,
    ReportTable,
    Summary,
    breakdowns_of,
    comparisons_of,
    halves,
    numeric,
    results_of,
)

LONG = 20  # rows; a longer table is folded
WIDE = 56  # characters; a wider table does not stand in a column


class Pictured(NamedTuple):
    """The figures of a page, captions with their SVG, and why some were not drawn."""

    drawn: Sequence[tuple[str, str]] = ()
    why_not: str = ""


def page_of(
    evaluation: Evaluation,
    pictured: Pictured,
    beside: Sequence[Summary] = (),
    examples: Examples = Examples(),
) -> str:
    """One self-contained page; `beside` are the summaries of other systems, `examples` the queries to look at."""
    benchmark, main = evaluation.benchmark, results_of(evaluation)
    cite = f"Cite: {benchmark.citation}." if benchmark.citation else ""
    licence = f"Licence of the data: {benchmark.licence}." if benchmark.licence else ""
    made = json.dumps(evaluation.made, indent=2, ensure_ascii=False, default=str) if evaluation.made else ""
    content = {
        "title": main.title,
        "benchmark": benchmark,
        "warnings": evaluation.notes,
        "results": main,
        "comparisons": list(comparisons_of(evaluation, beside)),
        "breakdowns": list(breakdowns_of(evaluation)),
        "made": made,
        "footer": " ".join(part for part in (cite, licence) if part),
    }
    given = {**content, **examples.content(), **_TABLES, **KIT}
    return render("report.html", pictured=pictured, long=LONG, is_wide=_is_wide, **given)


def page_of_table(table: ReportTable, pictured: Pictured, footer: str = "") -> str:
    """One self-contained page of a drawing and the numbers that it shows."""
    content = {"title": table.title, "table": table, "pictured": pictured, "footer": footer}
    return render("report_table.html", **content, **_TABLES)


def _is_wide(table: ReportTable) -> bool:
    return sum(max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)) > WIDE


def _kinds(table: ReportTable) -> list[tuple[bool, bool]]:
    """Of each column whether it holds numbers, and whether something stands behind one of them."""
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    pairs = zip(numeric(table), columns, strict=True)
    return [(right, right and any(halves(cell)[1] for cell in column)) for right, column in pairs]


_TABLES = {"kinds_of": _kinds, "halves": halves, "measured": f"({MEASURED})"}
