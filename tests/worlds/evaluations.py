"""Small evaluations whose numbers can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence

from eyespot.benchmarks import Benchmark, ByColumn, Evaluation, Printed, Task, scored
from eyespot.metrics import parse
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, Run

PAPER = "Heron, table 2"
# ranks of the one relevant image of q1 … q4: RR is 1, 1/2, 1/4, 0 and Hit@1 is 1, 0, 0, 0
GOOD = {"q1": "abcd", "q2": "bacd", "q3": "bcda", "q4": "bcd"}
POOR = {"q1": "bacd", "q2": "bcda", "q3": "bcda", "q4": "bcd"}
KINDS = {"q1": "functional", "q2": "functional", "q3": "causal", "q4": "functional"}
PRINTED = (
    Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.342),
    Printed(PAPER, "CLIP", "t2i", "RR", 0.47, percent=False),
    Printed(PAPER, "BLIP", "t2i", "Hit@1", 0.2),
)


def task(name: str = "t2i", column: str = "category", size: int | None = None) -> Task:
    """Four queries, each with the relevant image `a`; a column that breaks them down."""
    queries = {query: {"text": f"find {query}", column: kind} for query, kind in KINDS.items()}
    judged = JudgedQueries(queries, Qrels({query: {"a": 1} for query in queries}))
    return Task(name, judged, [parse("Hit@1"), parse("RR")], by=(ByColumn(column),), size=size)


def evaluation(
    orders: dict[str, str] | None = None,
    system: str = "ours",
    printed: Sequence[Printed] = PRINTED,
    tasks: Sequence[Task] | None = None,
    made: dict[str, object] | None = None,
) -> Evaluation:
    """A system's rankings of a benchmark that papers print numbers of."""
    run = Run.from_orders({query: list(images) for query, images in (orders or GOOD).items()})
    results = [scored(one, run) for one in (tasks if tasks is not None else [task()])]
    return Evaluation(benchmark(printed), "test", system, results, made or {"eyespot": "0"})


def benchmark(printed: Sequence[Printed] = PRINTED) -> Benchmark:
    return Benchmark("heron", "Heron", "birds", "", "CC0", "Nobody", lambda *_: [], printed=lambda: list(printed))


def timed(made: Evaluation, seconds: float) -> Evaluation:
    """The same evaluation, by a system that took so long for each query."""
    for result in made.results:
        result.run.header["seconds"] = {"search": seconds}
    return made
