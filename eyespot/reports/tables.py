"""Results as tables: measured, by chance, beside what papers print, and broken down; as text, Markdown and LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from eyespot.benchmarks import Evaluation, Group, Printed, Result

MEASURED = "measured"
_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "→": r"$\to$", "−": "$-$"}


class Table(NamedTuple):
    """A title, the names of the columns, rows of text, and what to know before reading it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def tables_of(evaluation: Evaluation) -> list[Table]:
    """All tables of an evaluation, the main one first."""
    found = [_main(evaluation)]
    for result in evaluation.results:
        found += _stages(evaluation, result)
        found += _beside(evaluation, result)
        found += _breakdowns(evaluation, result)
    return found


def shown(label: str, value: float) -> str:
    """A mean as papers print it: percent, reciprocal ranks as a fraction."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if is_fraction(label) else f"{100 * value:.2f}"


def is_fraction(label: str) -> bool:
    """Whether a measure is printed as a fraction: papers print MRR so."""
    return label.startswith("RR")


# -- what the tables hold ---------------------------------------------------------------------------------------


def _main(evaluation: Evaluation) -> Table:
    rows = [row for result in evaluation.results for row in _main_rows(result)]
    columns = ("task", "measure", "mean", "95% interval", "by chance", "queries", "definition")
    note = "Percent; RR as a fraction. Interval: bootstrap over queries (2,000 samples). By chance: a random order."
    return Table(f"{evaluation.benchmark.title}, {evaluation.split}: {evaluation.system}", columns, rows, note)


def _main_rows(result: Result) -> Iterator[list[str]]:
    asked = len(result.task.judged.queries)
    scored = f"{len(result.scores.queries):,}" + (f" of {asked:,}" if len(result.scores.queries) < asked else "")
    for label, mean in result.scores.means.items():
        low, high = result.scores.interval(label)
        interval = f"{shown(label, low)} to {shown(label, high)}"
        yield [
            result.task.name,
            label,
            shown(label, mean),
            interval,
            _chance(result, label),
            scored,
            _said(result, label),
        ]


def _chance(result: Result, label: str) -> str:
    floor = result.floors.get(label)
    if floor is None:
        return "–"
    scale, digits = (1, 3) if is_fraction(label) else (100, 2)
    return _small(floor.mean * scale, digits) + ("" if floor.exact else f" ± {_small(floor.error * scale, digits)}")


def _small(value: float, digits: int) -> str:
    """A number that may be far below the digits printed."""
    return f"{value:.{digits}f}" if value >= 10**-digits or value == 0 else f"{value:.1g}"


def _said(result: Result, label: str) -> str:
    definition = result.scores.measures[label].definition
    left = {name: value for name, value in definition.items() if name not in ("measure", "cutoff")}
    return ", ".join(f"{name} {value}" for name, value in left.items() if value is not None)


def _stages(evaluation: Evaluation, result: Result) -> list[Table]:
    if not result.stages:
        return []
    labels = list(result.scores.values)
    rows = [[stage.name, *(shown(label, stage.scores.mean(label)) for label in labels)] for stage in result.stages]
    return [Table(_titled(evaluation, result, "two stages"), ("stage", *labels), rows)]


def _beside(evaluation: Evaluation, result: Result) -> list[Table]:
    """The paper's rows, each number with measured minus published behind it."""
    wanted = [one for one in printed_of(evaluation, result) if one.column is None]
    sources = dict.fromkeys(one.source for one in wanted)
    return [_source(evaluation, result, source, [one for one in wanted if one.source == source]) for source in sources]


def printed_of(evaluation: Evaluation, result: Result) -> list[Printed]:
    """What papers print of this task and these measures; two-stage numbers at the depth that was measured."""
    return [
        one
        for one in evaluation.benchmark.printed()
        if one.task == result.task.name
        and one.measure in result.scores.values
        and one.depth in (None, evaluation.depth)
    ]


def _source(evaluation: Evaluation, result: Result, source: str, printed: list[Printed]) -> Table:
    labels = [label for label in result.scores.values if any(one.measure == label for one in printed)]
    methods = dict.fromkeys(one.method for one in printed)
    at = {(one.method, one.measure): one.value for one in printed}
    means = result.scores.means
    rows = [[f"{evaluation.system} ({MEASURED})", *(shown(label, means[label]) for label in labels)]]
    rows += [
        [method, *(_against(label, at.get((method, label)), means[label]) for label in labels)] for method in methods
    ]
    note = "In brackets: measured minus published."
    return Table(_titled(evaluation, result, f"beside {source}"), ("method", *labels), rows, note)


def _against(label: str, published: float | None, measured: float) -> str:
    if published is None:
        return "–"
    scale, digits = (1, 2) if is_fraction(label) else (100, 1)
    difference = (measured - published) * scale
    return f"{published * scale:.{digits}f} ({difference:+.{digits}f})".replace("-", "−")


def _breakdowns(evaluation: Evaluation, result: Result) -> Iterator[Table]:
    for name, groups in result.groups.items():
        labels = list(result.scores.values)
        rows = [[group.value, f"{group.queries:,}", *(_interval(group, label) for label in labels)] for group in groups]
        yield Table(_titled(evaluation, result, f"by {name}"), (name, "queries", *labels), rows)
        yield from _groups_beside(evaluation, result, name, groups)


def _interval(group: Group, label: str) -> str:
    mean = shown(label, group.means.get(label, math.nan))
    if label not in group.intervals or group.queries < 2:
        return mean
    low, high = group.intervals[label]
    return f"{mean} [{shown(label, low)}, {shown(label, high)}]"


def _groups_beside(evaluation: Evaluation, result: Result, column: str, groups: Sequence[Group]) -> Iterator[Table]:
    printed = [one for one in printed_of(evaluation, result) if one.column == column]
    means = {group.value.casefold(): group.means for group in groups}
    for source, label in dict.fromkeys((one.source, one.measure) for one in printed):
        mine = [one for one in printed if (one.source, one.measure) == (source, label)]
        names = list(dict.fromkeys(str(one.group) for one in mine))
        at = {(one.method, one.group): one.value for one in mine}
        ours = [means.get(name.casefold(), {}).get(label, math.nan) for name in names]
        rows = [[f"{evaluation.system} ({MEASURED})", *(shown(label, value) for value in ours)]]
        for method in dict.fromkeys(one.method for one in mine):
            cells = zip(names, ours, strict=True)
            rows.append([method, *(_against_group(label, at.get((method, name)), value) for name, value in cells)])
        note = "In brackets: measured minus published. – : not available in the data given."
        yield Table(
            _titled(evaluation, result, f"{label} by {column}, beside {source}"), ("method", *names), rows, note
        )


def _against_group(label: str, published: float | None, measured: float) -> str:
    if published is not None and math.isnan(measured):
        return f"{published * (1 if is_fraction(label) else 100):.{2 if is_fraction(label) else 1}f}"
    return _against(label, published, measured)


def _titled(evaluation: Evaluation, result: Result, what: str) -> str:
    task = f" {result.task.name}" if len(evaluation.results) > 1 else ""
    return f"{evaluation.benchmark.title}{task}, {what}"


# -- how they look ----------------------------------------------------------------------------------------------


def as_text(table: Table) -> str:
    """For a terminal: columns side by side, numbers to the right."""
    columns = list(zip(table.columns, *table.rows, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    right = [all(_numeric(cell) for cell in column[1:]) for column in columns]
    lines = (
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in (table.columns, *table.rows)
    )
    return "\n".join([table.title, *lines, *([table.note] if table.note else [])])


def as_markdown(tables: Iterable[Table]) -> str:
    """All tables under their titles."""
    return "\n".join(map(_markdown, tables))


def _markdown(table: Table) -> str:
    rule = ["---:" if all(_numeric(cell) for cell in column) else "---" for column in zip(*table.rows, strict=True)]
    rows = (table.columns, rule or ["---"] * len(table.columns), *table.rows)
    lines = ("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows)
    note = f"\n{table.note}\n" if table.note else ""
    return f"## {table.title}\n\n" + "\n".join(lines) + f"\n{note}"


def as_latex(tables: Iterable[Table]) -> str:
    """A `table` environment for each, with booktabs rules; the file is to be \\input."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(map(_latex, tables))


def _latex(table: Table) -> str:
    right = [all(_numeric(cell) for cell in column) for column in zip(*table.rows, strict=True)]
    kinds = "".join("r" if r else "l" for r in right) or "l" * len(table.columns)
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in table.rows]
    caption = f"{table.title}. {table.note}".rstrip(". ") + "."
    head = " & ".join(map(_escaped, table.columns)) + r" \\"
    body = "\n".join([r"\toprule", head, r"\midrule", *lines, r"\bottomrule"])
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{_escaped(caption)}}}\n\\begin{{tabular}}{{{kinds}}}\n{body}\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def _escaped(text: str) -> str:
    return re.sub(r"[&%#_$~^\\{}→−]", lambda found: _LATEX[found[0]], text)


def _numeric(cell: str) -> bool:
    return bool(re.match(r"^[-−+]?[\d.,]+(e-?\d+)?\b|^–$", cell))
