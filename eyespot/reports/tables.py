"""Results as tables: measured, by chance, beside other systems and papers, and broken down; text, Markdown, LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from eyespot.benchmarks import Beside, Evaluation, Printed, Result
from eyespot.benchmarks import beside as beside_papers
from eyespot.html import tidy

Summary: TypeAlias = Mapping[str, Any]  # what `summary_of` gives and a report folder keeps
MEASURED = "measured"
MISSING = "–"
_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}", "|": r"\textbar{}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "→": r"$\to$", "−": "$-$", "±": r"$\pm$", "–": "--"}


class ReportTable(NamedTuple):
    """A title, the names of the columns, rows of text, and what to know before reading it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class System:
    """What one system scores in one task: by measure, and by breakdown, group (in lower case) and measure."""

    name: str
    queries: int
    means: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    groups: Mapping[str, Mapping[str, Mapping[str, float]]]


def tables_of(evaluation: Evaluation, beside: Sequence[Summary] = ()) -> list[ReportTable]:
    """All tables of an evaluation, the main one first; `beside` are the summaries of other systems."""
    return [results_of(evaluation), *comparisons_of(evaluation, beside), *breakdowns_of(evaluation)]


def comparisons_of(evaluation: Evaluation, beside: Sequence[Summary] = ()) -> list[ReportTable]:
    """Of each task the stages of a search, the systems side by side, and measured beside printed."""
    return [table for result in evaluation.results for table in _compared(evaluation, result, beside)]


def breakdowns_of(evaluation: Evaluation) -> list[ReportTable]:
    """Of each task a table for each breakdown."""
    report_tables = []
    for result in evaluation.results:
        for name, groups in result.groups.items():
            labels = list(result.scores.values)
            rows = []
            for group in groups:
                ends = group.intervals if group.queries > 1 else {}  # one query has no interval
                means = [_bracketed(label, group.means.get(label, math.nan), ends.get(label)) for label in labels]
                rows.append([group.value, f"{group.queries:,}", *means])
            table = tidy_table(_titled(evaluation, result, f"by {name}"), (name, "queries", *labels), rows)
            report_tables.append(table)
    return report_tables


def format_mean(label: str, value: float) -> str:
    """A mean as papers print it: percent, reciprocal ranks as a fraction."""
    if math.isnan(value):
        return MISSING
    return f"{value:.3f}" if is_fraction(label) else f"{100 * value:.2f}"


def is_fraction(label: str) -> bool:
    """Whether a measure is printed as a fraction: papers print MRR so."""
    return label.startswith("RR")


def number(value: float | None) -> float:
    """A number out of a summary, whose JSON has null for what is none."""
    return math.nan if value is None else float(value)


# -- what the tables hold ---------------------------------------------------------------------------------------


def results_of(evaluation: Evaluation) -> ReportTable:
    """The main table: every task and measure with its interval, what chance gives, and the definition."""
    rows = [row for result in evaluation.results for row in _main_rows(result)]
    columns = ("task", "measure", "mean", "95% interval", "by chance", "queries", "definition")
    note = "Percent; RR as a fraction. Interval: bootstrap over queries (2,000 samples). By chance: a random order."
    without = (beside_papers(evaluation, result).sentences for result in evaluation.results)
    notes = " ".join([note, *dict.fromkeys(chain.from_iterable(without))])
    return tidy_table(f"{evaluation.benchmark.title}, {evaluation.split}: {evaluation.system}", columns, rows, notes)


def tidy_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], note: str = "") -> ReportTable:
    """A table whose texts are one line each, without what would act on a terminal."""
    return ReportTable(tidy(title), [*map(tidy, columns)], [[*map(tidy, row)] for row in rows], tidy(note))


def _main_rows(result: Result) -> Iterator[list[str]]:
    total = len(result.task.judged.queries)
    scored = f"{len(result.scores.queries):,}" + (f" of {total:,}" if len(result.scores.queries) < total else "")
    for label, mean in result.scores.means.items():
        interval = " to ".join(format_mean(label, end) for end in result.scores.interval(label))
        floor = result.floors.get(label)
        if floor is None:
            chance = MISSING
        else:
            scale, digits = (1, 3) if is_fraction(label) else (100, 2)
            chance = _small(floor.mean * scale, digits) + (
                "" if floor.exact else f" ± {_small(floor.error * scale, digits)}"
            )
        parts = result.scores.measures[label].definition.items()
        definition = [
            f"{name} {value}" for name, value in parts if name not in ("measure", "cutoff") and value is not None
        ]
        yield [result.task.name, label, format_mean(label, mean), interval, chance, scored, ", ".join(definition)]


def _small(value: float, digits: int) -> str:
    """A number that may be far below the digits printed."""
    return f"{value:.{digits}f}" if value >= 10**-digits or value == 0 else f"{value:.1g}"


def _bracketed(label: str, mean: float, ends: tuple[float, float] | None) -> str:
    text = format_mean(label, mean)
    return text if ends is None else f"{text} [{', '.join(format_mean(label, end) for end in ends)}]"


def _titled(evaluation: Evaluation, result: Result, what: str) -> str:
    task = f" {result.task.name}" if len(evaluation.results) > 1 else ""
    return f"{evaluation.benchmark.title}{task}, {what}"


# -- beside others ----------------------------------------------------------------------------------------------


def _compared(evaluation: Evaluation, result: Result, beside: Sequence[Summary]) -> Iterator[ReportTable]:
    groups = {name: {g.value.casefold(): g.means for g in found} for name, found in result.groups.items()}
    intervals = {label: result.scores.interval(label) for label in result.scores.values}
    ours = System(evaluation.system, len(result.scores.queries), result.scores.means, intervals, groups)
    systems = [ours, *_others(result, beside)]
    labels = list(result.scores.values)
    if result.stages:
        rows = [[s.name, *(format_mean(label, s.scores.mean(label)) for label in labels)] for s in result.stages]
        yield tidy_table(_titled(evaluation, result, "two stages"), ("stage", *labels), rows)
    if len(systems) > 1:
        rows = []
        for s in systems:
            means = [_bracketed(label, s.means.get(label, math.nan), s.intervals.get(label)) for label in labels]
            rows.append([s.name, f"{s.queries:,}", *means])
        note = "In brackets: the 95% interval. Whether a difference is more than chance says eyespot compare."
        yield tidy_table(_titled(evaluation, result, "side by side"), ("system", "queries", *labels), rows, note)
    papers = beside_papers(evaluation, result)
    printed = papers.rows
    for source in dict.fromkeys(one.source for one in printed if one.column is None):
        mine = [one for one in printed if one.source == source and one.column is None]
        title = _titled(evaluation, result, f"beside {source}")
        labels = [label for label in result.scores.values if any(one.measure == label for one in mine)]
        same = [ours, *_others(result, _ranking_the_same(result, beside, source))]
        yield _beside(title, {label: (label, None, None) for label in labels}, same, (mine, papers))
    for source, label in dict.fromkeys((one.source, one.measure) for one in printed if one.column is not None):
        mine = [one for one in printed if (one.source, one.measure) == (source, label) and one.column is not None]
        if any(one.column in result.groups for one in mine):
            columns = dict.fromkeys(str(one.column) for one in mine)
            title = _titled(evaluation, result, f"{label} by {' and '.join(columns)}, beside {source}")
            same = [ours, *_others(result, _ranking_the_same(result, beside, source))]
            # A column for each group; those of a second breakdown say which
            places = dict.fromkeys((one.measure, one.column, one.group) for one in mine)
            headings = {str(g) if c == mine[0].column else f"{c}: {g}": (m, c, g) for m, c, g in places}
            yield _beside(title, headings, same, (mine, papers))


def _ranking_the_same(result: Result, beside: Sequence[Summary], source: str) -> list[Summary]:
    """The reports whose numbers may stand beside this table of a paper too: they ranked what it ranks."""
    return [
        summary
        for summary in beside
        for task in summary["tasks"]
        if task["task"] == result.task.name and any(one["source"] == source for one in task["published"])
    ]


def _others(result: Result, beside: Sequence[Summary]) -> Iterator[System]:
    for summary in beside:
        for task in (one for one in summary["tasks"] if one["task"] == result.task.name):
            measures = {label: found for label, found in task["measures"].items() if label in result.scores.values}
            means = {label: number(found["mean"]) for label, found in measures.items()}
            ends = {label: found["interval"] for label, found in measures.items()}
            intervals = {label: (number(low), number(high)) for label, (low, high) in ends.items()}
            groups: dict[str, dict[str, dict[str, float]]] = {}
            for name, several in task["groups"].items():
                scores = {group["value"].casefold(): group["means"].items() for group in several}
                groups[name] = {value: {label: number(mean) for label, mean in of} for value, of in scores.items()}
            yield System(summary["system"], task["queries"], means, intervals, groups)


_Place: TypeAlias = tuple[str, str | None, str | None]  # measure, breakdown, group


def _beside(
    title: str, headings: Mapping[str, _Place], systems: Sequence[System], papers: tuple[list[Printed], Beside]
) -> ReportTable:
    """The measured systems, ours first, then the paper's rows, with ours minus published where that may be compared."""
    printed, compared = papers
    ours = [_mean(systems[0], place) for place in headings.values()]
    digits = {}
    for label in {one.measure for one in printed}:
        # As many as the paper prints: percentages mostly with one, fractions with two
        scale, usual = (1, 2) if is_fraction(label) else (100, 1)
        values = [one.value * scale for one in printed if one.measure == label]
        digits[label] = next(
            (n for n in (usual, usual + 1) if all(abs(v - round(v, n)) < 1e-9 for v in values)), usual + 2
        )
    rows = [
        [f"{one.name} ({MEASURED})", *(_printed(p[0], _mean(one, p), digits[p[0]]) for p in headings.values())]
        for one in systems
    ]
    at = {(one.method, (one.measure, one.column, one.group)): one for one in printed}
    for method in dict.fromkeys(one.method for one in printed):
        texts = []
        for place, measured in zip(headings.values(), ours, strict=True):
            one = at.get((method, place))
            reasons = compared.reasons.get(one, []) if one else []
            mark = " (impossible)" if any(reason.code == "cell" for reason in reasons) else ""
            value = math.nan if reasons else measured
            texts.append(_against(place[0], one and one.value, value, digits[place[0]]) + mark)
        rows.append([method, *texts])
    differences = f"In brackets: {systems[0].name} minus published."
    notes = [differences] * any(one not in compared.reasons for one in printed) + compared.below(printed)
    if unknown := [name for name, value in zip(headings, ours, strict=True) if math.isnan(value)]:
        notes.append(f"Not available in the data given: {', '.join(unknown)}.")
    return tidy_table(title, ("method", *headings), rows, " ".join(notes))


def _mean(system: System, place: _Place) -> float:
    label, column, group = place
    if column is None:
        return system.means.get(label, math.nan)
    return system.groups.get(column, {}).get(str(group).casefold(), {}).get(label, math.nan)


def _printed(label: str, value: float, digits: int) -> str:
    """With as many digits as the paper."""
    return MISSING if math.isnan(value) else f"{value * (1 if is_fraction(label) else 100):.{digits}f}"


def _against(label: str, published: float | None, measured: float, digits: int) -> str:
    if published is None:
        return MISSING
    text = _printed(label, published, digits)
    if math.isnan(measured):
        return text
    difference = f"{(measured - published) * (1 if is_fraction(label) else 100):+.{digits}f}"
    return f"{text} ({difference.replace('-', '−') if float(difference) else difference[1:]})"


# -- how they look ----------------------------------------------------------------------------------------------


def as_text(table: ReportTable) -> str:
    """For a terminal: columns side by side, numbers under numbers, what is in brackets after them."""
    columns = list(zip(table.columns, *table.rows, strict=True))
    laid = []
    for column, right in zip(columns, numeric(table), strict=True):
        if right:
            split = [("", ""), *map(halves, column[1:])]
            head = max(len(column[0]), *(len(first) for first, _ in split))
            tail = max(len(last) for _, last in split)
            rows = (first.rjust(head) + (f" {last:<{tail}}" if tail else "") for first, last in split[1:])
            left = [column[0].rjust(head) + " " * (tail + bool(tail)), *rows]
        else:
            width = max(map(len, column))
            left = [cell.ljust(width) for cell in column]
        laid.append(left)
    lines = ("  ".join(cells).rstrip() for cells in zip(*laid, strict=True))
    return "\n".join([table.title, *lines, *([table.note] if table.note else [])])


def numeric(table: ReportTable) -> list[bool]:
    """Of each column whether it holds numbers; the first holds names, though they may look like numbers."""
    columns = zip(*table.rows, strict=True) if table.rows else ([] for _ in table.columns)
    pattern = re.compile(r"[-−+]?[\d.,]+(e-?\d+)?( |$)|–$")
    return [number > 0 and all(map(pattern.match, column)) for number, column in enumerate(columns)]


def halves(cell: str) -> tuple[str, str]:
    """The number of a cell, and what stands behind it; a range is one number."""
    head, _, tail = cell.partition(" ")
    return (cell, "") if tail.startswith("to ") else (head, tail)


def as_markdown(tables: Iterable[ReportTable]) -> str:
    """All tables under their titles."""
    texts = []
    for table in tables:
        rule = ["---:" if right else "---" for right in numeric(table)]
        rows = (map(_marked, table.columns), rule, *(map(_marked, row) for row in table.rows))
        lines = "\n".join("| " + " | ".join(row) + " |" for row in rows)
        note = f"\n{_marked(table.note)}\n" if table.note else ""
        texts.append(f"## {_marked(table.title)}\n\n{lines}\n{note}")
    return "\n".join(texts)


def _marked(text: str) -> str:
    """What Markdown would take for its own is marked as text; an underscore inside a word is no mark."""
    return re.sub(r"([\\`*|<])", r"\\\1", text)


def as_latex(tables: Iterable[ReportTable]) -> str:
    """A `table` environment for each, with booktabs rules; the file is to be \\input."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(map(_latex, tables))


def _latex(table: ReportTable) -> str:
    kinds = "".join("r" if right else "l" for right in numeric(table))
    caption = f"{table.title}. {table.note}".rstrip(". ") + "."
    head, *rows = (" & ".join(map(_escaped, row)) + r" \\" for row in (table.columns, *table.rows))
    # After a line's end a bracket or a star would be read as its argument
    begun = ("{}" + row if row[:1] in ("[", "*") else row for row in rows)
    body = "\n".join([r"\toprule", head, r"\midrule", *begun, r"\bottomrule"])
    return (
        f"\\begin{{table}}\n\\centering\n\\caption{{{_escaped(caption)}}}\n\\begin{{tabular}}{{{kinds}}}\n{body}\n"
        "\\end{tabular}\n\\end{table}\n"
    )


def _escaped(text: str) -> str:
    return re.sub(r"[&%#_$~^\\{}|<>→−±–]", lambda found: _LATEX[found[0]], text)
