"""Queries of a report to look at: the best, the worst and the most uncertain, with what was found and what was missed.

The best and the worst are by the first measure of the task. The most uncertain are, of the others, those whose number
would change most if every picture without a judgement among the first ten were relevant.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from eyespot.benchmarks import Evaluation, Result
from eyespot.metrics import evaluate
from eyespot.reports.moved import Picture, RunPair, Section, linked, shown_images, shown_pictures
from eyespot.reports.tables import format_mean
from eyespot.runs.trec import trec_order
from eyespot.types import Qrels, RankedImage, Run, quantity

DEPTH = 10  # images of a strip
NEAREST = 5  # images in each of two pools
QUERIES = 3  # of each kind, for one task
SIDE = 176  # pixels of a thumbnail's longer side
MOST = 6 << 20  # bytes of all pictures of a page
KINDS = {"best": "The best", "worst": "The worst", "uncertain": "The most uncertain"}

Others = Mapping[str, Mapping[str, Run]]  # of other systems, by name, the run of each task


@dataclass(frozen=True)
class ExampleGroup:
    """Queries of one kind of one task."""

    title: str
    about: str
    sections: list[Section]


@dataclass(frozen=True)
class Examples:
    """What a report shows of single queries: the groups, their pictures, and how many pictures are not here."""

    groups: Sequence[ExampleGroup] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict)
    page: str = ""  # the address of a running page

    def content(self) -> dict[str, object]:
        """What the template of the report needs."""
        wanted = shown_images(section for group in self.groups for section in group.sections)
        _, pictures = linked(self.page, (), self.pictures)
        shown = shown_pictures({image: pictures[image] for image in wanted if image in pictures}, SIDE, MOST)
        groups = [replace(group, sections=linked(self.page, group.sections, {})[0]) for group in self.groups]
        return {"groups": groups, "looks": shown, "lacking": len(wanted) - len(shown), "wanted": len(wanted)}


def examples_of(evaluation: Evaluation, others: Others | None = None) -> list[ExampleGroup]:
    """The queries to look at of every task whose rankings are of pictures; those of `others` stand below ours."""
    pictured = [result for result in evaluation.results if result.task.way != "i2t"]
    groups = []
    for result in pictured:
        runs = {evaluation.system: result.run}
        for name, runs_of in (others or {}).items():
            runs |= {name: runs_of[result.task.name]} if result.task.name in runs_of else {}
        groups += _groups(result, runs, QUERIES if len(pictured) == 1 else 1)
        groups += _in_two_pools(result)
    return groups


def _in_two_pools(result: Result) -> list[ExampleGroup]:
    """Captions that are found in the first version of a set and fall back most in this one (ReCoS, fig. 1)."""
    versions = {image: str(facts.get("version") or "") for image, facts in result.task.pool.items()}
    first, last = min(versions.values(), default=""), max(versions.values(), default="")
    if first == last:
        return []
    small, run, qrels = {image for image in versions if versions[image] == first}, result.run, result.task.judged.qrels
    judged = [query for query in run if query in qrels]
    run = _ordered(result, run.only([query for query in judged if not small.isdisjoint(qrels.relevant(query))]))
    runs = {
        f"{first}, {len(small):,} pictures": Run({q: [hit for hit in run[q] if hit.image in small] for q in run}),
        f"{last}, {quantity(len(versions), 'picture')}": run,
    }
    places = {query: [_place(each[query], qrels.relevant(query)) for each in runs.values()] for query in run}
    fallen = sorted(places, key=lambda query: (places[query][0], -places[query][1]))
    sections = []
    for query in fallen[:QUERIES]:
        pair = RunPair(tuple(runs), tuple(each.only([query]) for each in runs.values()), qrels, depth=NEAREST)
        text = str(result.task.judged.queries.get(query, {}).get("text") or "")
        heading = text or query
        sections.append(Section(pair, query, heading, "" if heading == query else query, text))
    counts = [sum(found[at] == 1 for found in places.values()) for at in (0, 1)]
    about = (
        f"of {len(places):,} captions of {first}, {counts[0]:,} find their own picture first among the pictures of "
        f"{first}, and {counts[1]:,} among those of {last}; these fall back most"
    )
    return [ExampleGroup(f"The {NEAREST} nearest pictures in two pools", about, sections)] if sections else []


def _place(hits: Iterable[RankedImage], relevant: Container[str]) -> float:
    """The place of the first relevant hit; infinite where there is none."""
    return next((at for at, hit in enumerate(hits, 1) if hit.image in relevant), inf)


def uncertainty(result: Result) -> NDArray[np.float64]:
    """How far each query's number may move, (queries,): with all unjudged among the first ten relevant, or none."""
    label, measure = next(iter(result.scores.measures.items()))
    rel = int(measure.definition.get("rel", 1))
    run, qrels = _ordered(result, result.run), result.task.judged.qrels
    grades = {}
    starts = zip(run.queries, run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)
    first = {query: run.images[run.codes[start : min(start + DEPTH, stop)]].tolist() for query, start, stop in starts}
    for query in result.scores.queries:
        judged = qrels.get(query, {})
        grades[query] = {**judged, **{image: rel for image in first.get(query, ()) if judged.get(image, -1) < 0}}
    hopeful = evaluate(run, Qrels(grades), [measure], result.task.rules)
    (alone,) = hopeful.values.values()  # one measure has its short name, also where ours has its full one
    at = dict(zip(hopeful.queries, alone.tolist(), strict=True))
    ours = result.scores.values[label].tolist()
    pairs = zip(result.scores.queries, ours, strict=True)
    return np.array([abs(at.get(query, value) - value) for query, value in pairs])


def _groups(result: Result, runs: Mapping[str, Run], most: int) -> list[ExampleGroup]:
    """The best, the worst, and the most uncertain of the rest; a query is shown once."""
    label = next(iter(result.scores.values))
    values = result.scores.values[label]
    count = max(1, min(most, len(values) // 3))
    order = np.argsort(-values, kind="stable").tolist()
    best = order[:count]
    worst = [at for at in reversed(order) if at not in best][:count]
    rest = [at for at in order if at not in {*best, *worst}]
    widths = uncertainty(result) if rest else np.zeros(len(values))
    uncertain = [at for at in sorted(rest, key=lambda at: -widths[at]) if widths[at] > 0][:count]
    chosen = {"best": best, "worst": worst, "uncertain": uncertain}
    about = {"best": f"by {label}", "worst": f"by {label}"}
    about["uncertain"] = f"{label} moves most if what nobody judged among the first {DEPTH} counts as relevant"
    groups = []
    for kind, rows in chosen.items():
        sections = [_section(result, runs, row, widths[row] if kind == "uncertain" else 0.0) for row in rows]
        title = f"{KINDS[kind]} {'query' if len(rows) == 1 else 'queries'} of {result.task.name}"
        groups += [ExampleGroup(title, about[kind], sections)] if sections else []
    return groups


def _section(result: Result, runs: Mapping[str, Run], row: int, width: float) -> Section:
    query, (label, measure) = result.scores.queries[row], next(iter(result.scores.measures.items()))
    value, rel = float(result.scores.values[label][row]), int(measure.definition.get("rel", 1))
    qrels, ordered = result.task.judged.qrels, tuple(_ordered(result, run.only([query])) for run in runs.values())
    pair = RunPair(tuple(runs), ordered, qrels, rel, DEPTH)
    text = str(result.task.judged.queries.get(query, {}).get("text") or "")
    grades = {image: grade for image, grade in qrels.get(query, {}).items() if grade >= 0}
    best = Run({query: [RankedImage(image, float(grade)) for image, grade in grades.items()]})
    (most,) = evaluate(best, Qrels({query: grades}), [measure], result.task.rules).means.values() or (value,)
    judged = sum(hit.image in grades for hit in (ordered[0].get(query) or ())[:DEPTH])
    note = f"{label} {format_mean(label, value)}"
    note += f" of at most {format_mean(label, most)}" if most < 1 else ""
    note += f", uncertain by {format_mean(label, width)}" if width else ""
    note += f"; {len(grades):,} judged, {judged} of the first {DEPTH}"
    heading = text or query
    return Section(pair, query, heading, note if heading == query else f"{query} · {note}", text)


def _ordered(result: Result, run: Run) -> Run:
    """The run as its measures read it."""
    return trec_order(run) if result.task.rules.order == "trec" else run
