"""Which figures a report has: those of the papers that the benchmark's data and breakdowns allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from eyespot.benchmarks import Evaluation, Result
from eyespot.reports.figures.bars import MEANS, Bar, grouped_bars, kind_bars, two_way_bars
from eyespot.reports.figures.histograms import category_distribution, matches_distribution
from eyespot.reports.figures.time_accuracy import MethodPoint, time_accuracy
from eyespot.reports.summary import Summary, summary_beside
from eyespot.reports.tables import is_fraction, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERIES_MEAN, KINDS_MEAN = MEANS
TOGETHER = 6  # methods that one panel holds
FEWEST = 2  # of what papers print, however many systems are measured


@dataclass(frozen=True)
class ReportFigure:
    """A figure, the name of its files, and a sentence on what it shows."""

    name: str
    caption: str
    figure: Figure


def figures_of(evaluation: Evaluation, summaries: Sequence[Summary]) -> Iterator[ReportFigure]:
    """The figures of an evaluation; `summaries` are its own and those of other systems to draw beside it.

    First how well, then what was asked.
    """
    summaries = [summaries[0], *(summary_beside(summaries[0], other) for other in summaries[1:])]
    ways = {result.task.name: result for result in evaluation.results if "subtask" in result.groups}
    for label in next(iter(ways.values())).scores.values if ways else ():
        sides = {way: _methods(summaries, way, "subtask", label).bars for way in ways}
        caption = f"{label} of every sub-task, the hardest first. Lines: 95% intervals."
        name = f"subtasks-{_stem(label)}"
        measure = _percent(label)
        if {"i2t", "t2i"} <= set(sides):
            subtasks = two_way_bars(sides["i2t"], sides["t2i"], measure)
        else:
            subtasks = grouped_bars(next(iter(sides.values())), measure)
        yield ReportFigure(name, caption, subtasks)
    for result in evaluation.results:
        yield from _breakdowns(evaluation, result, summaries)
    yield from _times(evaluation, summaries)
    yield from _distributions(evaluation.results[0])  # tasks of one benchmark mostly share their queries


def _stem(name: str) -> str:
    """What of a name may stand in that of a file."""
    return "".join(char if char.isalnum() else "-" for char in name)[:60]


# -- what is asked ----------------------------------------------------------------------------------------------


def _distributions(result: Result) -> Iterator[ReportFigure]:
    queries, qrels = result.task.judged.queries, result.task.judged.qrels
    above, below = ("supercategory", "category")
    if all(any(facts.get(column) for facts in queries.values()) for column in (above, below)):
        counts: dict[str, dict[str, int]] = {}
        for facts in queries.values():
            inner = counts.setdefault(_label_of(facts.get(above)), {})
            inner[_label_of(facts.get(below))] = inner.get(_label_of(facts.get(below)), 0) + 1
        yield ReportFigure("queries", "How many queries each category has.", category_distribution(counts))
    if queries and all(facts.get("subtask") for facts in queries.values()):
        of_image = {str(facts.get("image") or query): str(facts["subtask"]) for query, facts in queries.items()}
        caption = f"How many of the {len(of_image):,} pictures with captions each sub-task has."
        figure = category_distribution({"sub-tasks": Counter(of_image.values())}, "pictures")
        yield ReportFigure("subtasks", caption, figure)
    numbers: dict[str, list[int]] = {}
    for query, facts in queries.items():
        group = _label_of(facts.get(above)) if any(f.get(above) for f in queries.values()) else "all queries"
        numbers.setdefault(group, []).append(len(qrels.relevant(query)) if query in qrels else 0)
    if len({count for counts_ in numbers.values() for count in counts_}) > 1:
        yield ReportFigure("matches", "How many images are relevant to a query.", matches_distribution(numbers))


def _label_of(value: object) -> str:
    return str(value) if value not in (None, "") else "(none)"


# -- how well ---------------------------------------------------------------------------------------------------


def _breakdowns(evaluation: Evaluation, result: Result, summaries: Sequence[Summary]) -> Iterator[ReportFigure]:
    task, several = result.task.name, len(evaluation.results) > 1
    for column, groups in result.groups.items():
        if column == "subtask" or not any(group.queries for group in groups):
            continue  # sub-tasks are drawn both ways in one figure
        name = _stem(f"{task}-by-{column}" if several else f"by-{column}")
        title = f"{evaluation.benchmark.title}{f' {task}' if several else ''} by {column}"
        if column == "kind":
            yield _by_kind(result, summaries, name, title)
            continue
        label = next(iter(result.scores.values))
        methods = _methods(summaries, task, column, label)
        ordered = any(by.name == column and getattr(by, "ordered", False) for by in result.task.by)
        caption = f"{title}{'' if ordered else ', the hardest first'}. Lines: 95% intervals.{methods.note}"
        axis = column if ordered else ""
        figure = grouped_bars(methods.bars, _spelled(result, label), "", methods.published, axis)
        yield ReportFigure(name, caption, figure)


def _by_kind(result: Result, summaries: Sequence[Summary], name: str, title: str) -> ReportFigure:
    """The bars of kinds, behind them those of their two means."""
    labels = list(result.scores.values)
    first = _methods(summaries, result.task.name, "kind", labels[0])
    cutoffs = {}
    for label in labels:
        methods = _methods(summaries, result.task.name, "kind", label, first.published)
        bars = {m: [*kinds, *_mean_of(summaries, result, m, label)] for m, kinds in methods.bars.items()}
        for method in methods.published:  # the mean of printed kinds is taken here
            bars[method].append(Bar(KINDS_MEAN, fmean(bar.value for bar in methods.bars[method])))
        cutoffs[label] = bars
    figure = kind_bars(cutoffs, "recall, percent", "", first.published)
    return ReportFigure(name, f"{title}. Lines: 95% intervals.{first.note}", figure)


def _mean_of(summaries: Sequence[Summary], result: Result, method: str, label: str) -> list[Bar]:
    """The mean over queries: measured, or as printed."""
    for summary in summaries:
        for task in _tasks(summary, result.task.name):
            if summary["system"] == method and label in task["measures"]:
                found = task["measures"][label]
                return [_bar(QUERIES_MEAN, label, found["mean"], found["interval"], task["queries"])]
    wanted = (one for task in _tasks(summaries[0], result.task.name) for one in _comparable(task))
    printed = [one for one in wanted if (_name(one, summaries), one["measure"]) == (method, label)]
    return [Bar(QUERIES_MEAN, one["value"] * _scale(label)) for one in printed if "column" not in one]


# -- methods and their bars -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Methods:
    """{method: bars}, measured ones first; which of them are `published`; and what to say of those left out."""

    bars: dict[str, list[Bar]]
    published: list[str]
    note: str


def _methods(
    summaries: Sequence[Summary], task: str, column: str, label: str, only: Sequence[str] | None = None
) -> Methods:
    """Measured systems and the best of what papers print (or `only` those): more than six are hard to compare."""
    found: dict[str, list[Bar]] = {}
    for summary in summaries:
        for one in _tasks(summary, task):
            bars = []
            for group in (g for g in one["groups"].get(column, ()) if g["queries"] and label in g["means"]):
                ends = group["intervals"].get(label, (None, None))
                bars.append(_bar(group["value"], label, group["means"][label], ends, group["queries"]))
            if bars:
                found[summary["system"]] = bars
    spelled = {bar.name.casefold(): bar.name for bars in found.values() for bar in bars}
    printed: dict[str, list[Bar]] = {}
    for one in (each for each_task in _tasks(summaries[0], task) for each in _comparable(each_task)):
        group = spelled.get(str(one.get("group")).casefold())
        if one.get("column") == column and one["measure"] == label and group is not None:
            printed.setdefault(_name(one, summaries), []).append(Bar(group, one["value"] * _scale(label)))
    room = max(FEWEST, TOGETHER - len(found))
    best = sorted(printed, key=lambda method: -fmean(bar.value for bar in printed[method]))[:room]
    chosen = [method for method in printed if method in (best if only is None else only)]
    few = f" Of {len(printed)} published methods the best {len(chosen)} are drawn."
    drawn = {**found, **{method: printed[method] for method in chosen}}
    return Methods(drawn, chosen, few if len(chosen) < len(printed) else "")


def _comparable(task: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What papers print, as far as it may be compared."""
    return (one for one in task["published"] if one["comparable"])


def _name(one: Mapping[str, Any], summaries: Sequence[Summary]) -> str:
    """A printed method by its name; apart from a measured system that is called the same."""
    same = any(summary["system"] == one["method"] for summary in summaries)
    return f"{one['method']}, {one['source']}" if same else str(one["method"])


def _tasks(summary: Summary, name: str) -> Iterator[Mapping[str, Any]]:
    return (task for task in summary["tasks"] if task["task"] == name)


def _bar(name: str, label: str, mean: float | None, ends: Sequence[float | None], count: int) -> Bar:
    low, high = (number(end) * _scale(label) for end in ends)
    return Bar(name, number(mean) * _scale(label), low, high, count)


def _scale(label: str) -> int:
    return 1 if is_fraction(label) else 100


def _percent(label: str) -> str:
    return label if is_fraction(label) else f"{label}, percent"


def _spelled(result: Result, label: str) -> str:
    definition = result.scores.measures[label].definition
    details = [f"{name} {definition[name]}" for name in ("norm", "ties") if definition.get(name)]
    return f"{_percent(label)} ({', '.join(details)})" if details else _percent(label)


# -- how fast ---------------------------------------------------------------------------------------------------


def _times(evaluation: Evaluation, summaries: Sequence[Summary]) -> Iterator[ReportFigure]:
    result = evaluation.results[0]
    label = next(iter(result.scores.values))
    timed = [(s["system"], task) for s in summaries for task in _tasks(s, result.task.name) if task.get("seconds")]
    points = []
    for system, task in timed:
        if score := task["measures"].get(label):
            bar = _bar(system, label, score["mean"], score["interval"], task["queries"])
            points.append(MethodPoint(system, sum(task["seconds"].values()), bar.value, bar.low, bar.high))
    if sum(point.drawable for point in points) > 1:
        caption = "Time for each query against what is reached; the line joins what no other system beats."
        yield ReportFigure("time", caption, time_accuracy(points, _spelled(result, label)))
