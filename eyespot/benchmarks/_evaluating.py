"""A benchmark's tasks and the rankings of one system to numbers: with floor, breakdowns and the bound on re-ranking."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from eyespot.benchmarks._benchmark import Benchmark, Group, Task
from eyespot.benchmarks._fitting import fitted
from eyespot.benchmarks._rescoring import RankingStage, two_stages
from eyespot.metrics import Floor, Scores, aligned, evaluate, floor, labels_of, tie_spread
from eyespot.search.rescored import Rescored
from eyespot.types import NothingFound, Run, UsageError, prefixed


@dataclass(frozen=True)
class Result:
    """What one system scores in one task.

    `groups` by the name of the breakdown; `floors` what a random order scores, by measure; `stages` the steps of a
    two-stage search, of which `scores` is the last that was measured.
    """

    task: Task
    run: Run
    scores: Scores
    groups: Mapping[str, Sequence[Group]]
    floors: Mapping[str, Floor]
    stages: Sequence[RankingStage] = ()
    notes: Sequence[str] = ()
    pool: int | None = None  # how many images each query ranked; None: its candidates, or not known
    ranked: int | None = None  # the same as far as the run or who asks says it, and not the size of a full collection

    @cached_property
    def tie_spread(self) -> dict[str, float]:
        """How far the order of equal scores moves each mean: between their best and their worst order."""
        rankings = aligned(self.run, self.task.judged.qrels)
        return {
            label: math.fsum(tie_spread(measure, rankings).tolist()) / len(self.scores.queries)
            for label, measure in self.scores.measures.items()
            if not measure.needs_ids
        }


@dataclass(frozen=True)
class Evaluation:
    """The results of one system on one benchmark; `made` says how: arguments, versions, digests, hardware."""

    benchmark: Benchmark
    split: str
    system: str
    results: Sequence[Result]
    made: dict[str, Any] = field(default_factory=dict)
    depth: int | None = None

    @property
    def notes(self) -> list[str]:
        """What should be known before the numbers are trusted, each sentence once."""
        everywhere = set.intersection(*(set(result.notes) for result in self.results)) if self.results else set()
        sentences = [
            note if note in everywhere else prefixed(result.task.name, note)
            for result in self.results
            for note in result.notes
        ]
        return list(dict.fromkeys(sentences))


def scored(task: Task, run: Run, second: Rescored | None = None, pool: int | None = None) -> Result:
    """One task's result; `pool` is how many images each query ranked, where the task does not say.

    Raises `NothingFound` if the run holds none of the task's queries, or nothing of its pool.
    """
    ranked, notes = fitted(task, run)
    stages: list[RankingStage] = []
    if second is not None:
        stages, ranked, stage_notes = two_stages(task, ranked, second)
        notes += stage_notes
    scores = evaluate(ranked, task.judged.qrels, task.measures, task.rules)
    if not scores.queries:
        raise NothingFound(f"no query of {task.name} is left to score; the run and the rules leave out all")
    groups = {by.name: found for by in task.by if (found := by(ranked, task, scores))}
    lacking = [query for query in task.judged.queries if query not in task.judged.qrels]
    if not lacking:
        texts = []
    else:
        whole = len(task.judged.queries)
        texts = [f"{len(lacking)} of {whole} queries have no judgements (such as {lacking[0]!r}) and are left out"]
    notes += [*run.notes, *scores.notes, *texts, *_unlisted(task, ranked)]
    known = pool or ranked.header.get("pool")
    size = None if task.judged.candidates is not None else known or _full_size(task, ranked)
    return Result(task, ranked, scores, groups, _floors(task, scores, size), stages, notes, size, known)


def _unlisted(task: Task, run: Run) -> list[str]:
    """A note, and a count in the header, of images that a run ranks and the list of the task does not name."""
    if task.listed is None or "listed" in run.header:
        return []
    count = task.listed.outside(set(run.images.tolist()).difference(task.judged.images))
    run.header = {**run.header, "unlisted": count}
    note = f"{count:,} images of the rankings are not in the list of {task.listed.title}: they ranked something else"
    return [note] if count else []


def _full_size(task: Task, run: Run) -> int | None:
    """How many images a run is known to rank that does not say it itself."""
    if task.size is not None or task.listed is None or run.header.get("unlisted"):
        return task.size
    return task.listed.count + len(task.judged.images)


def _floors(task: Task, scores: Scores, size: int | None) -> dict[str, Floor]:
    """What a random order scores for the same queries: of the candidates, or of the pool where its size is known."""
    candidates = task.judged.candidates
    if size is None and candidates is None:
        return {}
    ranked = Run({query: [] for query in scores.queries}) if candidates is None else candidates
    rankings = aligned(ranked.only(set(scores.queries)), task.judged.qrels)
    found: dict[str, Floor] = {}
    for label, measure in labels_of(list(task.measures)).items():
        try:
            # The pool of each query, (q,), without the pictures that are left out, and with all that is relevant
            if size is None:
                sizes = None
            else:
                left = [len(task.excluded(query) & task.pool.keys()) for query in rankings.queries]
                sizes = np.maximum(np.subtract(size, left), rankings.relevant)
            found[label] = floor(measure, rankings, sizes)
        except (UsageError, NotImplementedError):  # Judged@k says nothing of relevance
            continue
    return found
