"""Two stages: the first hits of a ranking in the order of other scores, beside the best order there is of them."""

from __future__ import annotations

from dataclasses import dataclass

from eyespot.benchmarks._benchmark import Task
from eyespot.metrics import Scores, evaluate
from eyespot.search.rescored import Rescored
from eyespot.types import Note, NothingFound, RankedImage, Run

UNSCORED = "unscored"  # the code of the note that counts hits without a score


@dataclass(frozen=True)
class RankingStage:
    """One ranking of a two-stage search: the first, the re-ranked, and the best that re-ranking could do."""

    name: str
    scores: Scores


def two_stages(task: Task, run: Run, second: Rescored) -> tuple[list[RankingStage], Run, list[str]]:
    """The steps with their numbers, the re-ranked run, and notes on it.

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
    judged = task.judged.qrels
    grades = Run({query: [RankedImage(image, float(grade)) for image, grade in judged[query].items()] for query in run})
    best, _ = Rescored(grades, second.depth)(run)
    runs = {"first stage": run, f"best possible of the first {second.depth}": best, "re-ranked": reranked}
    stages = [
        RankingStage(name, evaluate(each, task.judged.qrels, task.measures, task.rules)) for name, each in runs.items()
    ]
    short = sum(head < second.depth for head in heads)
    unscored = (
        f"{without} of the first {second.depth} hits have no score in the second stage; they go behind the scored"
    )
    fewer = f"{short} queries rank fewer than {second.depth} images; of those all are re-ranked"
    return stages, reranked, [*[Note(UNSCORED, unscored)] * bool(without), *[fewer] * bool(short)]
