"""Results as tables: measured, by chance, beside other systems and papers, and broken down; text, Markdown, LaTeX."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from eyespot.benchmarks import Evaluation
from eyespot.html import tidy
from eyespot.reports.summary import Summary, summary_beside, summary_of

TaskSummary: TypeAlias = Mapping[str, Any]  # one of its `tasks`
Systems: TypeAlias = Sequence[tuple[str, TaskSummary]]  # in one task, by name
MEASURED = "measured"
MISSING = "–"
TINY = 5e-5  # of a measure, below which nothing is printed
_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "{": r"\{", "}": r"\}", "|": r"\textbar{}"}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
_LATEX |= {"<": r"\textless{}", ">": r"\textgreater{}", "→": r"$\to$", "−": "$-$", "±": r"$\pm$", "–": "--"}


class ReportTable(NamedTuple):
    """A title, the names of the columns, rows of text, and what to know before reading it."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def tables_of(evaluation: Evaluation, beside: Sequence[Summary] = ()) -> list[ReportTable]:
    """All tables of an evaluation, the main one first; `beside` are the summaries of other systems."""
    return [results_of(evaluation), *comparisons_of(evaluation, beside), *breakdowns_of(evaluation)]


def comparisons_of(evaluation: Evaluation, beside: Sequence[Summary] = ()) -> list[ReportTable]:
    """Of each task the stages of a search, the systems side by side, and measured beside printed."""
    summary = summary_of(evaluation)
    others = [summary_beside(summary, one) for one in beside]
    return [table for task in summary["tasks"] for table in _compared(summary, task, others)]


def breakdowns_of(evaluation: Evaluation) -> list[ReportTable]:
    """Of each task a table for each breakdown."""
    summary, report_tables = summary_of(evaluation), []
    for task in summary["tasks"]:
        for name, groups in task["groups"].items():
            rows = []
            for group in groups:
                ends = group["intervals"]
                means = [bracketed(label, group["means"].get(label), ends.get(label)) for label in task["measures"]]
                rows.append([group["value"], f"{group['queries']:,}", *means])
            columns = (name, "queries", *task["measures"])
            report_tables.append(tidy_table(_titled(summary, task, f"by {name}"), columns, rows))
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
    summary = summary_of(evaluation)
    rows = [row for task in summary["tasks"] for row in _main_rows(task)]
    columns = ("task", "measure", "mean", "95% interval", "by chance", "queries", "definition")
    note = "Percent; RR as a fraction. Interval: bootstrap over queries (2,000 samples). By chance: a random order."
    without = (not_beside([(summary["system"], task)]) for task in summary["tasks"])
    notes = " ".join([note, *dict.fromkeys(chain.from_iterable(without))])
    return tidy_table(f"{summary['title']}, {summary['split']}: {summary['system']}", columns, rows, notes)


def tidy_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]], note: str = "") -> ReportTable:
    """A table whose texts are one line each, without what would act on a terminal."""
    return ReportTable(tidy(title), [*map(tidy, columns)], [[*map(tidy, row)] for row in rows], tidy(note))


def _main_rows(task: TaskSummary) -> Iterator[list[str]]:
    scored = f"{task['queries']:,}" + (f" of {task['asked']:,}" if task["queries"] < task["asked"] else "")
    for label, found in task["measures"].items():
        floor, chance = found["by_chance"], MISSING
        if floor is not None:
            scale, digits = (1, 3) if is_fraction(label) else (100, 2)
            # may be far below the digits printed
            numbers = [floor["mean"] * scale, *([] if floor["exact"] else [floor["error"] * scale])]
            chance = " ± ".join(f"{n:.{digits}f}" if n >= 10**-digits or n == 0 else f"{n:.1g}" for n in numbers)
        parts = ((name, value) for name, value in found["definition"].items() if name not in ("measure", "cutoff"))
        definition = ", ".join(f"{name} {value}" for name, value in parts if value is not None)
        if (most := found.get("at_most")) is not None and most < 1 - TINY:  # more is relevant than the cutoff lets in
            definition += f", at most {format_mean(label, most)}"
        low, high = map(number, found["interval"])
        interval = MISSING if math.isnan(low) else f"{format_mean(label, low)} to {format_mean(label, high)}"
        yield [task["task"], label, format_mean(label, number(found["mean"])), interval, chance, scored, definition]


def bracketed(label: str, mean: float | None, ends: Sequence[float | None] | None) -> str:
    """A mean, with its 95% interval in brackets where there is one: one query has none."""
    text, (low, high) = format_mean(label, number(mean)), map(number, ends or (None, None))
    return text if math.isnan(low) else f"{text} [{format_mean(label, low)}, {format_mean(label, high)}]"


def with_interval(task: TaskSummary, label: str) -> str:
    """A measure of a task with its 95% interval in brackets."""
    found = task["measures"].get(label)
    return MISSING if found is None else bracketed(label, found["mean"], found["interval"])


def _titled(summary: Summary, task: TaskSummary, what: str) -> str:
    name = f" {task['task']}" if len(summary["tasks"]) > 1 else ""
    return f"{summary['title']}{name}, {what}"


# -- beside others ----------------------------------------------------------------------------------------------


def not_beside(systems: Systems) -> Iterator[str]:
    """A sentence for each set of reasons that keep a paper's table away from some systems."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for name, task in systems:
        for source, notes in task["not_beside"].items():
            reasons.setdefault("; ".join(note["text"] for note in notes), {}).setdefault(source, []).append(name)
    for why, sources in reasons.items():
        names = list(dict.fromkeys(name for several in sources.values() for name in several))
        whose = "" if len(names) == len(systems) else f" ({', '.join(names)})"
        yield f"Not beside {'; '.join(sources)}{whose}: {why}."


def ranking_the_same(systems: Systems, source: str) -> Systems:
    """Those whose numbers may stand beside this table of a paper: they ranked what it ranks."""
    return [(name, task) for name, task in systems if any(one["source"] == source for one in task["published"])]


def _compared(summary: Summary, task: TaskSummary, beside: Sequence[Summary]) -> Iterator[ReportTable]:
    others = [(one["system"], scored) for one in beside for scored in one["tasks"] if scored["task"] == task["task"]]
    ours, labels = (summary["system"], task), list(task["measures"])
    if task["stages"]:
        means = ((stage["stage"], stage["means"]) for stage in task["stages"])
        rows = [[name, *(format_mean(label, number(of.get(label))) for label in labels)] for name, of in means]
        yield tidy_table(_titled(summary, task, "two stages"), ("stage", *labels), rows)
    left_out = [f"{sentence}." for one in beside for sentence in one["left_out"]]
    if others or left_out:
        rows = []
        for name, scored in [ours, *others]:
            rows.append([name, f"{scored['queries']:,}", *(with_interval(scored, label) for label in labels)])
        note = "In brackets: the 95% interval. Whether a difference is more than chance says eyespot compare."
        notes = " ".join([note, *left_out])
        yield tidy_table(_titled(summary, task, "side by side"), ("system", "queries", *labels), rows, notes)
    whole = [one for one in task["published"] if "column" not in one]
    for source in dict.fromkeys(one["source"] for one in whole):
        printed = [one for one in whole if one["source"] == source]
        headings: dict[str, _Place] = {
            label: (label, None, None) for label in labels if any(one["measure"] == label for one in printed)
        }
        same = [ours, *ranking_the_same(others, source)]
        yield _beside(_titled(summary, task, f"beside {source}"), headings, same, printed)
    parts = [one for one in task["published"] if "column" in one]
    for source, label in dict.fromkeys((one["source"], one["measure"]) for one in parts):
        printed = [one for one in parts if (one["source"], one["measure"]) == (source, label)]
        if any(one["column"] in task["groups"] for one in printed):
            columns = dict.fromkeys(str(one["column"]) for one in printed)
            title = _titled(summary, task, f"{label} by {' and '.join(columns)}, beside {source}")
            # A column for each group; those of a second breakdown say which
            first, places = printed[0]["column"], dict.fromkeys(map(_place, printed))
            headings = {str(group) if by == first else f"{by}: {group}": (m, by, group) for m, by, group in places}
            yield _beside(title, headings, [ours, *ranking_the_same(others, source)], printed)


_Place: TypeAlias = tuple[str, str | None, str | None]  # measure, breakdown, group


def _place(one: Mapping[str, Any]) -> _Place:
    return one["measure"], one.get("column"), one.get("group")


def _beside(
    title: str, headings: Mapping[str, _Place], systems: Systems, printed: Sequence[Mapping[str, Any]]
) -> ReportTable:
    """The measured systems, ours first, then the paper's rows, with ours minus published where that may be compared."""
    digits = {label: printed_digits(label, printed) for label in {one["measure"] for one in printed}}
    rows = []
    for system, scored in systems:
        means = [printed_mean(place[0], _mean(scored, place), digits[place[0]]) for place in headings.values()]
        rows.append([f"{system} ({MEASURED})", *means])
    at = {(one["method"], _place(one)): one for one in printed}
    for method in dict.fromkeys(one["method"] for one in printed):
        texts = []
        for place in headings.values():
            one, label = at.get((method, place)), place[0]
            text = MISSING if one is None else printed_mean(label, one["value"], digits[label])
            if one is not None and one["difference"] is not None and not math.isnan(one["difference"]):
                difference = f"{one['difference'] * (1 if is_fraction(label) else 100):+.{digits[label]}f}"
                text += f" ({difference.replace('-', '−') if float(difference) else difference[1:]})"
            odd = one is not None and any(reason["code"] == "cell" for reason in one["reasons"])
            texts.append(f"{text} (impossible)" if odd else text)
        rows.append([method, *texts])
    unknown = [heading for heading, place in headings.items() if math.isnan(_mean(systems[0][1], place))]
    notes = [*_compared_notes(systems[0], printed)]
    notes += [f"Not available in the data given: {', '.join(unknown)}."] if unknown else []
    return tidy_table(title, ("method", *headings), rows, " ".join(notes))


def _compared_notes(ours: tuple[str, TaskSummary], printed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What to say under rows of a paper: whether they may be compared, and why some may not."""
    name, task = ours
    if any(one["comparable"] for one in printed):
        grounds = ", ".join(note["text"] for note in task["comparable"].get(printed[0]["source"], ()))
        yield f"In brackets: {name} minus published. Comparable: {grounds}."
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for one in printed:
        for reason in one["reasons"]:
            cells.setdefault(reason["text"], []).append(one)
    yield from (f"Not compared{_which(few, printed)}: {why}." for why, few in cells.items())


def _which(few: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> str:
    """Which of the rows of a table, in brackets; a method alone where it is all of its cells."""
    if len(few) == len(rows):
        return ""
    cells: dict[str, list[str]] = {}
    for one in few:
        cells.setdefault(one["method"], []).append(one.get("group") or one["measure"])
    every = Counter(one["method"] for one in rows)
    parts = (name if len(several) == every[name] else f"{name} {', '.join(several)}" for name, several in cells.items())
    return f" ({'; '.join(parts)})"


def _mean(task: TaskSummary, place: _Place) -> float:
    label, column, group = place
    if column is None:
        return number(task["measures"].get(label, {}).get("mean"))
    groups = {found["value"].casefold(): found["means"] for found in task["groups"].get(column, ())}
    return number(groups.get(str(group).casefold(), {}).get(label))


def printed_digits(label: str, printed: Iterable[Mapping[str, Any]]) -> int:
    """As many digits as a paper prints of a measure: percentages mostly have one, fractions two."""
    scale, usual = (1, 2) if is_fraction(label) else (100, 1)
    values = [one["value"] * scale for one in printed if one["measure"] == label]
    digits = (usual, usual + 1)
    return next((n for n in digits if all(abs(value - round(value, n)) < 1e-9 for value in values)), usual + 2)


def printed_mean(label: str, value: float, digits: int) -> str:
    """With as many digits as the paper."""
    return MISSING if math.isnan(value) else f"{value * (1 if is_fraction(label) else 100):.{digits}f}"


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
    """What Markdown would take for its own is marked as text; an underscore inside a word is not a mark."""
    return re.sub(r"([\\`*|<])", r"\\\1", text)


def as_latex(tables: Iterable[ReportTable]) -> str:
    """A `table` environment for each, with booktabs rules; the file is to be \\input."""
    texts = []
    for table in tables:
        kinds = "".join("r" if right else "l" for right in numeric(table))
        caption = _escaped(f"{table.title}. {table.note}".rstrip(". ") + ".")
        head, *rows = (" & ".join(map(_escaped, row)) + r" \\" for row in (table.columns, *table.rows))
        # After a line's end a bracket or a star would be read as its argument
        begun = ("{}" + row if row[:1] in ("[", "*") else row for row in rows)
        body = "\n".join([r"\toprule", head, r"\midrule", *begun, r"\bottomrule"])
        tabular = f"\\begin{{tabular}}{{{kinds}}}\n{body}\n\\end{{tabular}}"
        texts.append(f"\\begin{{table}}\n\\centering\n\\caption{{{caption}}}\n{tabular}\n\\end{{table}}\n")
    return "% needs \\usepackage{booktabs}\n" + "\n".join(texts)


def _escaped(text: str) -> str:
    return re.sub(r"[&%#_$~^\\{}|<>→−±–]", lambda found: _LATEX[found[0]], text)


# -- systems as rows, each with interval and time, and beside them what papers print of the same set ----------------


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
