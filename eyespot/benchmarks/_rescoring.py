"""Two stages: the first hits of a ranking in the order of other scores, beside the best order there is of them."""

from __future__ import annotations

from dataclasses import dataclass

from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._fitting import below
from eyespot.metrics import Scores, evaluate
from eyespot.types import Hit, NothingFound, Run


@dataclass(frozen=True)
class Stage:
    """One ranking of a two-stage search: the first, the re-ranked, and the best that re-ranking could do."""

    name: str
    scores: Scores


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
            scored = sorted((hit for hit in head if hit.image in known), key=lambda hit: -known[hit.image])
            unscored = [hit for hit in head if hit.image not in known]
            without += len(unscored)
            made[query] = _descending([Hit(h.image, known[h.image]) for h in scored], [*unscored, *tail])
        reranked = Run(made)
        reranked.header, reranked.facts = {**run.header, "reranked": self.depth}, run.facts
        return reranked, without


def two_stages(task: Task, run: Run, second: Rescored) -> tuple[list[Stage], Run, list[str]]:
    """The steps with their numbers, the re-ranked run, and what is to be said of it.

    Raises `NothingFound` if the second stage has a score for none of what it should re-rank.
    """
    heads = [min(len(hits), second.depth) for hits in run.values()]
    reranked, without = second(run)
    if without == sum(heads):
        raise NothingFound(
            f"the second stage scores none of the first {second.depth} hits of {task.name}; check that both files name "
            "queries and images alike"
        )
    # Who knows the grades re-ranks best; what lies deeper stays behind, as it does for every other second stage.
    best, _ = Rescored(_grades(task, run), second.depth)(run)
    runs = {"first stage": run, f"best possible of the first {second.depth}": best, "re-ranked": reranked}
    stages = [Stage(name, evaluate(each, task.judged.qrels, task.measures, task.rules)) for name, each in runs.items()]
    short = sum(head < second.depth for head in heads)
    notes = [f"{without} of the first {second.depth} hits have no score in the second stage; they go behind the scored"]
    fewer = f"{short} queries rank fewer than {second.depth} images; of those all are re-ranked"
    return stages, reranked, [*notes * bool(without), *[fewer] * bool(short)]


def _grades(task: Task, run: Run) -> Run:
    judged = task.judged.qrels
    return Run({query: [Hit(image, float(grade)) for image, grade in judged[query].items()] for query in run})


def _descending(scored: list[Hit], rest: list[Hit]) -> list[Hit]:
    """The scored with their scores (ties stay ties), the rest below them, strictly falling in the order given."""
    lowest = min((hit.score for hit in scored), default=0.0)
    step = lowest - below(scored)
    return [*scored, *(Hit(hit.image, lowest - step * rank) for rank, hit in enumerate(rest, 1))]
