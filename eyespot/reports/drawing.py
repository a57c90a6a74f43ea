"""Which figures a report has: those of the papers that the benchmark's data and breakdowns allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eyespot.benchmarks import Around, Evaluation, Result
from eyespot.reports.figures import (
    Bar,
    Point,
    View,
    category_distribution,
    embedding_map,
    grouped_bars,
    kind_bars,
    matches_distribution,
    time_accuracy,
    two_way_bars,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Summary = Mapping[str, Any]
KINDS_MEAN = "mean over queries"


class Drawn(NamedTuple):
    """A figure, the name of its files, and a sentence on what it shows."""

    name: str
    caption: str
    figure: Figure


def figures_of(evaluation: Evaluation, summaries: Sequence[Summary]) -> Iterator[Drawn]:
    """The figures of an evaluation; `summaries` are its own and those of other systems to draw beside it."""
    for at, result in enumerate(evaluation.results):
        if at == 0:  # tasks of one benchmark mostly share their queries
            yield from _distributions(result)
        yield from _breakdowns(evaluation, result, summaries)
    yield from _both_ways(evaluation, summaries)
    yield from _times(evaluation, summaries)


def map_of(query: str, around: Around, after: Around | None = None) -> Drawn:
    """A map of the vectors around a query; `after` the same images in an adapted space, beside it."""
    heading = query if after is None else "as encoded"
    before = View(around.vectors, around.query, heading)
    adapted = None if after is None else View(after.vectors, after.query, "adapted to the query")
    stem = "".join(char if char.isalnum() else "-" for char in query)[:60]
    figure = embedding_map(around.relevant, before, adapted)
    return Drawn(
        f"map-{stem}", f"The images around the query {query!r}: near in the map is alike to the encoder.", figure
    )


# -- what is asked ----------------------------------------------------------------------------------------------


def _distributions(result: Result) -> Iterator[Drawn]:
    queries, qrels = result.task.judged.queries, result.task.judged.qrels
    above, below = ("supercategory", "category")
    if all(any(facts.get(column) for facts in queries.values()) for column in (above, below)):
        counts: dict[str, dict[str, int]] = {}
        for facts in queries.values():
            inner = counts.setdefault(_named(facts.get(above)), {})
            inner[_named(facts.get(below))] = inner.get(_named(facts.get(below)), 0) + 1
        yield Drawn("queries", "How many queries each category has.", category_distribution(counts))
    numbers: dict[str, list[int]] = {}
    for query, facts in queries.items():
        group = _named(facts.get(above)) if any(f.get(above) for f in queries.values()) else "all queries"
        numbers.setdefault(group, []).append(len(qrels.relevant(query)) if query in qrels else 0)
    if len({count for counts_ in numbers.values() for count in counts_}) > 1:
        yield Drawn("matches", "How many images are relevant to a query.", matches_distribution(numbers))


def _named(value: object) -> str:
    return str(value) if value not in (None, "") else "(none)"


# -- how well ---------------------------------------------------------------------------------------------------


def _breakdowns(evaluation: Evaluation, result: Result, summaries: Sequence[Summary]) -> Iterator[Drawn]:
    task, several = result.task.name, len(evaluation.results) > 1
    for column, groups in result.groups.items():
        if column == "subtask" or not any(group.queries for group in groups):
            continue  # sub-tasks are drawn both ways in one figure
        name = f"{task}-{column}" if several else column
        caption = f"{evaluation.benchmark.title}{f' {task}' if several else ''} by {column}, the hardest first."
        if column == "kind":
            yield Drawn(name, f"{evaluation.benchmark.title} by {column}.", _kinds(result, summaries))
            continue
        label = next(iter(result.scores.values))
        methods, published = _methods(summaries, task, column, label)
        yield Drawn(name, caption, grouped_bars(methods, _spelled(result, label), "", published))


def _kinds(result: Result, summaries: Sequence[Summary]) -> Figure:
    cutoffs: dict[str, dict[str, list[Bar]]] = {}
    published: list[str] = []
    for label in result.scores.values:
        methods, published = _methods(summaries, result.task.name, "kind", label)
        cutoffs[label] = {
            method: [*bars, *_mean_of(summaries, result, method, label)] for method, bars in methods.items()
        }
    return kind_bars(cutoffs, "recall", "", published)


def _mean_of(summaries: Sequence[Summary], result: Result, method: str, label: str) -> list[Bar]:
    """The mean over queries: measured, or as printed."""
    for summary in summaries:
        for task in _tasks(summary, result.task.name):
            if summary["system"] == method and label in task["measures"]:
                found = task["measures"][label]
                low, high = found["interval"]
                return [Bar(KINDS_MEAN, found["mean"], _number(low), _number(high), task["queries"])]
    wanted = (one for task in _tasks(summaries[0], result.task.name) for one in task["published"])
    return [Bar(KINDS_MEAN, one["value"]) for one in wanted if _is(one, method, label) and "column" not in one]


def _is(one: Mapping[str, Any], method: str, label: str) -> bool:
    return bool(one["method"] == method and one["measure"] == label)


def _both_ways(evaluation: Evaluation, summaries: Sequence[Summary]) -> Iterator[Drawn]:
    ways = {result.task.name: result for result in evaluation.results if "subtask" in result.groups}
    for label in next(iter(ways.values())).scores.values if ways else ():
        sides = {way: _methods(summaries, way, "subtask", label)[0] for way in ("i2t", "t2i")}
        caption = f"{label} of every sub-task, the hardest first."
        figure = two_way_bars(sides["i2t"], sides["t2i"], label) if all(sides.values()) else None
        if figure is None:
            figure = grouped_bars(next(methods for methods in sides.values() if methods), label)
        yield Drawn(f"subtasks-{label.replace('@', '-')}", caption, figure)


def _methods(
    summaries: Sequence[Summary], task: str, column: str, label: str
) -> tuple[dict[str, list[Bar]], list[str]]:
    """{method: bars} of the measured systems, then of what papers print; and the names of the latter."""
    found: dict[str, list[Bar]] = {}
    for summary in summaries:
        for one in _tasks(summary, task):
            groups = one["groups"].get(column, ())
            if bars := [_bar(group, label) for group in groups if label in group["means"]]:
                found[summary["system"]] = bars
    spelled = {bar.name.casefold(): bar.name for bars in found.values() for bar in bars}
    published: dict[str, list[Bar]] = {}
    for one in (each for each_task in _tasks(summaries[0], task) for each in each_task["published"]):
        if one.get("column") == column and one["measure"] == label and str(one["group"]).casefold() in spelled:
            bars = published.setdefault(one["method"], [])
            bars.append(Bar(spelled[str(one["group"]).casefold()], one["value"]))
    printed = {method: bars for method, bars in published.items() if method not in found}
    return {**found, **printed}, list(printed)


def _tasks(summary: Summary, name: str) -> Iterator[Mapping[str, Any]]:
    return (task for task in summary["tasks"] if task["task"] == name)


def _bar(group: Mapping[str, Any], label: str) -> Bar:
    low, high = group["intervals"].get(label, (math.nan, math.nan))
    return Bar(group["value"], _number(group["means"][label]), _number(low), _number(high), group["queries"])


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _spelled(result: Result, label: str) -> str:
    definition = result.scores.measures[label].definition
    told = [f"{name} {definition[name]}" for name in ("norm", "ties") if definition.get(name)]
    return f"{label} ({', '.join(told)})" if told else label


# -- how fast ---------------------------------------------------------------------------------------------------


def _times(evaluation: Evaluation, summaries: Sequence[Summary]) -> Iterator[Drawn]:
    result = evaluation.results[0]
    label = next(iter(result.scores.values))
    points = [
        Point(summary["system"], sum(task["seconds"].values()), task["measures"][label]["mean"], *_ends(task, label))
        for summary in summaries
        for task in _tasks(summary, result.task.name)
        if task.get("seconds") and label in task["measures"] and np.isfinite(_number(task["measures"][label]["mean"]))
    ]
    if len(points) > 1:
        caption = "Time for each query against what is reached; the line joins what no other system beats."
        yield Drawn("time", caption, time_accuracy(points, _spelled(result, label)))


def _ends(task: Mapping[str, Any], label: str) -> tuple[float, float]:
    low, high = task["measures"][label]["interval"]
    return _number(low), _number(high)
