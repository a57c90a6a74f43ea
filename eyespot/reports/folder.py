"""A report on disk: the rankings, every query's values, the summary, the tables, the figures, and the page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.benchmarks import Evaluation
from eyespot.reports.drawing import ReportFigure, figures_of
from eyespot.reports.examples import Examples
from eyespot.reports.figures import as_svg, save
from eyespot.reports.page import Pictured, page_of
from eyespot.reports.summary import FILE, summary_of
from eyespot.reports.tables import Summary, as_latex, as_markdown, tables_of
from eyespot.runs import write_run
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import EyespotError, UsageError


def write(
    evaluation: Evaluation,
    out: Path,
    beside: Sequence[Summary] = (),
    more: Callable[[], Iterable[ReportFigure]] = tuple,
    examples: Examples = Examples(),
) -> list[Path]:
    """Everything into a folder, file by file and each whole; the summary comes last.

    `beside` are the summaries of other systems, in the same tables and figures; `more` gives further figures,
    `examples` the queries to look at. Without matplotlib the rest is written and the page says what to install. Returns
    the files. Raises `UsageError` if `beside` is of another benchmark, or, when all else is written, if `more` cannot
    be drawn as it was asked for.
    """
    others = comparable(evaluation, beside)
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; name a folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / FILE).exists() and not (out / "tables.md").exists():
        raise UsageError(f"{out} holds other things; name a new folder with --out")
    make_folder(out)
    files = [*_rankings(evaluation, out), _values(evaluation, out)]
    tables = tables_of(evaluation, others)
    files += [_text(out / "tables.md", as_markdown(tables)), _text(out / "tables.tex", as_latex(tables))]
    ours = _drawn(out, lambda: figures_of(evaluation, [summary_of(evaluation), *others]))
    extra = _drawn(out, more)
    refusals = "; ".join(dict.fromkeys(str(each.refused) for each in (ours, extra) if each.refused is not None))
    why_not = f"Figures were not drawn: {refusals}" if refusals else ""
    pictured = Pictured([*ours.svgs, *extra.svgs], why_not)
    files += [*ours.files, *extra.files, _text(out / "report.html", page_of(evaluation, pictured, others, examples))]
    summary = json.dumps(_plain(summary_of(evaluation)), indent=2, ensure_ascii=False, default=str) + "\n"
    files.append(_text(out / FILE, summary))
    if isinstance(extra.refused, UsageError):
        raise UsageError(f"{extra.refused}; all else is in {out}")
    return files


def comparable(evaluation: Evaluation, beside: Sequence[Summary]) -> list[Summary]:
    """The other summaries, each system under a name of its own; `UsageError` if one is of other queries."""
    taken, found = [evaluation.system], []
    for summary in beside:
        theirs, ours = (summary["benchmark"], summary.get("split")), (evaluation.benchmark.name, evaluation.split)
        if theirs != ours:
            raise UsageError(f"a report on {' '.join(map(str, theirs))} cannot stand beside one on {' '.join(ours)}")
        turn = sum(name == summary["system"] for name in taken)
        taken.append(summary["system"])
        found.append({**summary, "system": f"{summary['system']} ({turn + 1})"} if turn else summary)
    return found


def _rankings(evaluation: Evaluation, folder: Path) -> Iterator[Path]:
    """A run for each task; what one ranking serves twice is written once."""
    several = len(evaluation.results) > 1
    written: dict[int, Path] = {}
    for result in evaluation.results:
        if id(result.run) in written:
            continue
        path = folder / (f"run-{result.task.name}.parquet" if several else "run.parquet")
        write_run(result.run, path)
        written[id(result.run)] = path
        yield path


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
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in ("task", "query", "text")}
    table = pa.table(columns | {label: pa.array([row.get(label) for row in rows], pa.float64()) for label in labels})
    path = folder / "per_query.parquet"
    write_whole(path, lambda file: pq.write_table(table, file))
    return path


class _Pictures(NamedTuple):
    """Captions with their SVG, the files, and what stood in the way."""

    svgs: list[tuple[str, str]]
    files: list[Path]
    refused: EyespotError | None = None


def _drawn(folder: Path, draw: Callable[[], Iterable[ReportFigure]]) -> _Pictures:
    """Figures on disk; without matplotlib none."""
    try:
        figures = list(draw())
        if figures:
            make_folder(folder / "figures")
        files = [path for one in figures for path in save(one.figure, folder / "figures" / one.name)]
        return _Pictures([(one.caption, as_svg(one.figure)) for one in figures], files)
    except EyespotError as error:
        return _Pictures([], [], error)


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
