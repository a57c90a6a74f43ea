"""An evaluation as one page to read, and a report on disk: rankings, values, summary, tables, figures, the page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.benchmarks import Evaluation
from eyespot.html import render
from eyespot.metrics import evaluate
from eyespot.reports.drawing import figures_of
from eyespot.reports.examples import Examples
from eyespot.reports.figures.sheet import as_svg, save
from eyespot.reports.moved import KIT
from eyespot.reports.summary import FILE, Summary, summary_beside, summary_of
from eyespot.reports.tables import (
    MEASURED,
    ReportTable,
    as_latex,
    as_markdown,
    breakdowns_of,
    comparisons_of,
    halves,
    numeric,
    results_of,
    tables_of,
)
from eyespot.runs import write_run
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import EyespotError, Run, UsageError

LONG = 20  # rows; a longer table is folded
OUTCOMES = ("refused", "failed", "unscored")  # of the verdicts behind a run
WIDE = 56  # characters; a wider table does not stand in a column


@dataclass(frozen=True)
class Pictured:
    """The figures of a page, captions with their SVG, and why some were not drawn."""

    drawn: Sequence[tuple[str, str]] = ()
    why_not: str = ""


def page_of(
    evaluation: Evaluation, pictured: Pictured, beside: Sequence[Summary] = (), examples: Examples = Examples()
) -> str:
    """One self-contained page; `beside` are the summaries of other systems, `examples` the queries to look at."""
    benchmark, main = evaluation.benchmark, results_of(evaluation)
    foot = {"Cite": benchmark.citation, "Licence of the data": benchmark.licence}
    every = ((one.run, one.task.judged.qrels, ["Judged@10"], one.task.rules) for one in evaluation.results)
    shares = [share for given in every for share in evaluate(*given).means.values()]
    content = {
        "title": main.title,
        "benchmark": benchmark,
        "warnings": evaluation.notes,
        "results": main,
        "judged": ", ".join(f"{share:.0%}" for share in shares),
        "comparisons": list(comparisons_of(evaluation, beside)),
        "breakdowns": list(breakdowns_of(evaluation)),
        "made": evaluation.made and json.dumps(evaluation.made, indent=2, ensure_ascii=False, default=str),
        "footer": " ".join(f"{name}: {text}." for name, text in foot.items() if text),
    }

    def is_wide(table: ReportTable) -> bool:
        return sum(max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)) > WIDE

    given = {**content, **examples.content(), **_TABLES, **KIT}
    return render("report.html", pictured=pictured, long=LONG, is_wide=is_wide, **given)


def _kinds(table: ReportTable) -> list[tuple[bool, bool]]:
    """Of each column whether it holds numbers, and whether something stands behind one of them."""
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    pairs = zip(numeric(table), columns, strict=True)
    return [(right, right and any(halves(cell)[1] for cell in column)) for right, column in pairs]


_TABLES = {"kinds_of": _kinds, "halves": halves, "measured": f"({MEASURED})"}


def write(
    evaluation: Evaluation, out: Path, beside: Sequence[Summary] = (), examples: Examples = Examples()
) -> list[Path]:
    """Everything into a folder, file by file and each whole; the summary comes last.

    `beside` are the summaries of other systems, in the same tables and figures; `examples` the queries to look at.
    Without matplotlib the rest is written and the page says what to install. Returns the files. Raises `UsageError` if
    `beside` is of another benchmark.
    """
    others = comparable(evaluation, beside)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; name a folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / FILE).exists() and not (out / "tables.md").exists():
        raise UsageError(f"{out} holds other things; name a new folder with --out")
    make_folder(out)
    files = []
    ranked = {id(result.run): result for result in reversed(evaluation.results)}
    for result in (one for one in evaluation.results if ranked[id(one.run)] is one):  # of two tasks written once
        files.append(out / (f"run-{result.task.name}.parquet" if len(evaluation.results) > 1 else "run.parquet"))
        write_run(_without_costs(result.run), files[-1])
    files.append(_values(evaluation, out))
    tables = tables_of(evaluation, others)
    files += [_text(out / "tables.md", as_markdown(tables)), _text(out / "tables.tex", as_latex(tables))]
    drawn, why_not = list[tuple[str, str]](), ""
    try:
        figures = list(figures_of(evaluation, [summary_of(evaluation), *others]))
        if figures:
            make_folder(out / "figures")
        files += [path for one in figures for path in save(one.figure, out / "figures" / one.name)]
        drawn = [(one.caption, as_svg(one.figure)) for one in figures]
    except EyespotError as error:  # without matplotlib none are drawn
        why_not = f"Figures were not drawn: {error}"
    files.append(_text(out / "report.html", page_of(evaluation, Pictured(drawn, why_not), others, examples)))
    summary = json.dumps(_plain(summary_of(evaluation)), indent=2, ensure_ascii=False, default=str) + "\n"
    files.append(_text(out / FILE, summary))
    return files


def _without_costs(run: Run) -> Run:
    """The run without what this time took and cost, which the summary has: equal rankings are equal bytes."""
    made, verdicts = copy(run), run.header.get("verdicts")
    made.header = {name: value for name, value in run.header.items() if name not in ("seconds", "verdicts")}
    if isinstance(verdicts, dict):  # a run that was read may have anything there
        made.header["verdicts"] = {name: verdicts[name] for name in OUTCOMES if name in verdicts}
    return made


def comparable(evaluation: Evaluation, beside: Sequence[Summary]) -> list[Summary]:
    """The other summaries as far as they are of the same data and measures, each system under a name of its own.

    `UsageError` if one is of another benchmark or split.
    """
    found: list[Summary] = []
    taken, ours = [evaluation.system], summary_of(evaluation) if beside else {}
    for summary in beside:
        other, wanted = (summary["benchmark"], summary.get("split")), (evaluation.benchmark.name, evaluation.split)
        if other != wanted:
            raise UsageError(f"a report on {' '.join(map(str, other))} cannot stand beside one on {' '.join(wanted)}")
        turn = sum(name == summary["system"] for name in taken)
        taken.append(summary["system"])
        named = {**summary, "system": f"{summary['system']} ({turn + 1})"} if turn else summary
        found.append(summary_beside(ours, named))
    return found


def _values(evaluation: Evaluation, folder: Path) -> Path:
    """per_query.parquet: a row for each task and query, a column for each measure (null where another task has it)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = []
    for result in evaluation.results:
        columns_of = result.scores.values
        values = zip(*(column.tolist() for column in columns_of.values()), strict=True)
        for query, scores in zip(result.scores.queries, values, strict=True):
            text = result.task.judged.queries.get(query, {}).get("text")
            row = {"task": result.task.name, "query": query, "text": None if text is None else str(text)}
            rows.append(row | dict(zip(columns_of, scores, strict=True)))
    labels = dict.fromkeys(label for result in evaluation.results for label in result.scores.values)
    kinds = dict.fromkeys(("task", "query", "text"), pa.string()) | dict.fromkeys(labels, pa.float64())
    table = pa.Table.from_pylist(rows, pa.schema(kinds.items()))
    path = folder / "per_query.parquet"
    write_whole(path, lambda file: pq.write_table(table, file))
    return path


def _text(path: Path, text: str) -> Path:
    write_whole(path, lambda file: file.write(text.encode()))
    return path


def _plain(value: Any) -> Any:
    """JSON has no numbers that are none or have no end: null."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
