"""A benchmark's tasks and the rankings of one system to numbers: with floor, breakdowns and the bound on re-ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyespot.benchmarks._benchmark import Benchmark, Task
from eyespot.benchmarks._grouping import Group
from eyespot.metrics import Floor, Scores, aligned, evaluate, floor, labels_of
from eyespot.types import Hit, NothingFound, Run, UsageError


@dataclass(frozen=True)
class Stage:
    """One ranking of a two-stage search: the first, the re-ranked, and the best that re-ranking could do."""

    name: str
    scores: Scores


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
    stages: Sequence[Stage] = ()
    notes: Sequence[str] = ()
    pool: int | None = None  # how many images each query ranked; None: its candidates, or not known


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
        several = len(self.results) > 1
        told = [f"{result.task.name}: {note}" if several else note for result in self.results for note in result.notes]
        return list(dict.fromkeys(told))


@dataclass(frozen=True)
class Rescored:
    """A second stage: the first `depth` of every ranking in the order of these scores, the rest behind as they were."""

    scores: Run
    depth: int

    def __call__(self, run: Run) -> tuple[Run, int]:
        """The re-ranked run, and how many of the first `depth` had no score (they stay behind those that have)."""
        made, without = {}, 0
        for query, hits in run.items():
            known = dict(self.scores[query]) if query in self.scores else {}
            head, tail = hits[: self.depth], hits[self.depth :]
            without += sum(hit.image not in known for hit in head)
            scored = sorted((hit for hit in head if hit.image in known), key=lambda hit: -known[hit.image])
            unscored = [hit for hit in head if hit.image not in known]
            made[query] = _descending([Hit(h.image, known[h.image]) for h in scored], [*unscored, *tail])
        reranked = Run.from_rankings(made)
        reranked.header, reranked.facts = {**run.header, "reranked": self.depth}, run.facts
        return reranked, without


def _descending(scored: list[Hit], rest: list[Hit]) -> list[Hit]:
    """The scored with their scores (ties stay ties), the rest below them, strictly falling in the order given."""
    lowest = min((hit.score for hit in scored), default=0.0)
    return [*scored, *(Hit(hit.image, lowest - rank) for rank, hit in enumerate(rest, 1))]


def scored(task: Task, run: Run, second: Rescored | None = None, pool: int | None = None) -> Result:
    """One task's result; `pool` is how many images each query ranked, where the task does not say.

    Raises `NothingFound` if the run holds none of the task's queries.
    """
    judged = task.judged.qrels
    ours = _of_task(task, run)
    if not any(query in judged for query in ours):
        raise NothingFound(f"the run ranks none of the queries of {task.name}; check that both name queries alike")
    ranked, notes = _restricted(task, ours)
    stages: list[Stage] = []
    if second is not None:
        stages, ranked, said = _two_stages(task, ranked, second)
        notes += said
    scores = evaluate(ranked, judged, task.measures, task.rules)
    if not scores.queries:
        raise NothingFound(f"no query of {task.name} is left to score; the run and the rules leave out all")
    groups = {by.name: found for by in task.by if (found := by(ranked, task, scores))}
    notes += [*run.notes, *scores.notes, *_unasked(task)]
    size = None if task.judged.candidates is not None else pool or ranked.header.get("pool") or task.size
    return Result(task, ranked, scores, groups, _floors(task, ranked, size), stages, notes, size)


def _unasked(task: Task) -> list[str]:
    lacking = [query for query in task.judged.queries if query not in task.judged.qrels]
    whole = len(task.judged.queries)
    return [f"{len(lacking)} of {whole} queries have no judgements (such as {lacking[0]!r}) and are left out"] * bool(
        lacking
    )


def _of_task(task: Task, run: Run) -> Run:
    """The run's rankings of the task's queries; a query's own picture leaves where it is no answer."""
    inputs = {q: str(facts.get("image")) for q, facts in task.judged.queries.items()} if task.exclude_input else {}
    if not inputs and all(query in task.judged.qrels for query in run):
        return run
    kept = {q: [hit for hit in run[q] if hit.image != inputs.get(q)] for q in run if q in task.judged.qrels}
    made = Run(kept)
    made.header, made.facts, made.notes = run.header, run.facts, run.notes
    return made


def _restricted(task: Task, run: Run) -> tuple[Run, list[str]]:
    """The rankings among the candidates, where there are any: others leave, what is missing goes last as handed out."""
    candidates = task.judged.candidates
    if candidates is None:
        return run, []
    made, strange, absent = {}, 0, 0
    for query in run:
        allowed = dict.fromkeys(hit.image for hit in candidates[query]) if query in candidates else {}
        kept = [hit for hit in run[query] if hit.image in allowed]
        ranked = {hit.image for hit in kept}
        rest = [Hit(image, 0.0) for image in allowed if image not in ranked]
        strange, absent = strange + len(run[query]) - len(kept), absent + len(rest)
        made[query] = _descending(kept, rest)
    restricted = Run.from_rankings(made)
    restricted.header, restricted.facts, restricted.notes = run.header, run.facts, run.notes
    notes = [f"{strange} hits that are no candidates of their query were left out"] if strange else []
    notes += [f"{absent} candidates that the run does not rank go last, in the order handed out"] if absent else []
    return restricted, notes


def _two_stages(task: Task, run: Run, second: Rescored) -> tuple[list[Stage], Run, list[str]]:
    judged = task.judged.qrels
    best = aligned(run, judged).best_possible(second.depth)
    reranked, without = second(run)
    runs = {"first stage": run, f"best possible of the first {second.depth}": best, "re-ranked": reranked}
    stages = [
        Stage(name, evaluate(each, None if each is best else judged, task.measures, task.rules))  # type: ignore[arg-type]
        for name, each in runs.items()
    ]
    note = f"{without} of the first {second.depth} hits have no score in the second stage; they go behind the scored"
    return stages, reranked, [note] if without else []


def _floors(task: Task, run: Run, size: int | None) -> dict[str, Floor]:
    """What a random order scores: of the candidates, or of the pool where its size is known."""
    if size is None and task.judged.candidates is None:
        return {}
    rankings = aligned(run, task.judged.qrels)
    found: dict[str, Floor] = {}
    for label, measure in labels_of(list(task.measures)).items():
        try:
            found[label] = floor(measure, rankings, _sizes(rankings, size))
        except (UsageError, NotImplementedError):  # Judged@k says nothing of relevance
            continue
    return found


def _sizes(rankings: Any, size: int | None) -> Any:
    """The pool of each query; never smaller than what is relevant to it."""
    return None if size is None else np.maximum(size, rankings.relevant)
