"""Stages of a search in a benchmark: which tasks they can rank, and the run of another system in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from eyespot.benchmarks._asking import task_queries
from eyespot.benchmarks._benchmark import Task
from eyespot.search.rescored import Rescored
from eyespot.settings.search import RankingSettings
from eyespot.types import NothingFound, RankedImage, Run, UsageError


class HitSearcher(Protocol):
    """What `reranked` needs of a searcher: its stages, and the gallery's ids and order of some hits."""

    @property
    def stages(self) -> RankingSettings: ...

    def ids_of(self, task: Task, names: Sequence[str]) -> Mapping[str, str]: ...

    def ranked(self, task: Task, run: Run, depth: int) -> Run: ...


def unfit(task: Task, stages: RankingSettings) -> str:
    """Why the stages cannot rank a task, in one sentence with the way out; empty where they can."""
    if stages.neighbours is None and stages.local is None and stages.way == "look":
        return ""
    option = "--by" if stages.way != "look" else "--neighbours" if stages.local is None else "--rerank-local"
    if task.way == "i2t":
        return f"{task.name} ranks captions, and {option} needs pictures of the gallery; leave it out"
    if task.judged.candidates is not None:
        return f"each query of {task.name} ranks its own candidates, which {option} does not reach; leave it out"
    if stages.local and not all(image for _, image in task_queries(task).values()):
        return (
            f"the queries of {task.name} are words, and local descriptors compare pictures; choose a benchmark whose "
            "queries have pictures, or leave out --rerank-local"
        )
    return ""


def reranked(searcher: HitSearcher, task: Task, run: Run, depth: int) -> Run:
    """The first `depth` hits of another system's run in the order of the searcher's stages, the rest as they were.

    Hits that the gallery lacks go behind those that it has, and a note counts them.
    """
    if task.way == "i2t":
        raise UsageError(f"{task.name} ranks captions, and re-ranking needs pictures; name the file of another task")
    if why := unfit(task, searcher.stages):
        raise UsageError(why)
    ids = searcher.ids_of(task, [hit.image for query in run for hit in run[query][:depth]])
    if not ids:
        raise NothingFound(
            f"the gallery has none of the first {depth} hits of {task.name}; choose the gallery of the run with -g, or "
            "the column that holds its names with --match"
        )
    heads: dict[str, list[RankedImage]] = {}  # under the gallery's ids, each picture once
    for query in (query for query in run if query in task.judged.queries):
        best: dict[str, float] = {}
        for hit in run[query][:depth]:
            if hit.image in ids:
                best.setdefault(ids[hit.image], hit.score)
        heads[query] = [RankedImage(id, score) for id, score in best.items()]
    ranked = searcher.ranked(task, Run(heads), depth)
    scores = {query: {hit.image: hit.score for hit in ranked[query]} for query in ranked}
    named = {
        query: [RankedImage(hit.image, scores[query][ids[hit.image]]) for hit in run[query][:depth] if hit.image in ids]
        for query in ranked
    }
    made, without = Rescored(Run(named), depth)(run.only(set(named)))
    made.header |= {name: value for name, value in ranked.header.items() if name != "depth"}
    made.notes = [*run.notes, *ranked.notes]
    if without:
        made.notes.append(f"{without} of the first {depth} hits are not in the gallery; they go behind those that are")
    return made
