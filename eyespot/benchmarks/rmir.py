"""RMIR: a picture and a question, answered by other pictures, by functional, temporal or causal reasoning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from eyespot.benchmarks._benchmark import Benchmark, Group, Needed, Official, Printed, Task, note_of_set
from eyespot.benchmarks._evaluating import NONE, ByColumn
from eyespot.benchmarks._papers import column, table
from eyespot.metrics import Scores, preset
from eyespot.runs import rmir
from eyespot.types import Run

KINDS = ("functional", "temporal", "causal")
MEAN_OF_KINDS = "mean over kinds"
TABLE = {
    **{f"{kind}_r{k}": column("it2i", f"R@{k}", "kind", kind) for kind in KINDS for k in (20, 50)},
    **{f"average_r{k}": column("it2i", f"R@{k}") for k in (20, 50)},
}
LAYOUT = "eyespot's layout, or the released one with a mapping.json (docs/research/runs.md)"


@dataclass(frozen=True)
class ByKind:
    """By kind of reasoning, and the mean in which each kind counts the same (the paper's average is over queries)."""

    name: str = "kind"

    def __call__(self, run: Run, task: Task, scores: Scores) -> list[Group]:
        """The kinds in the paper's order, then their mean."""
        groups = {group.value: group for group in ByColumn("kind")(run, task, scores)}
        ordered = [groups.pop(kind) for kind in KINDS if kind in groups] + list(groups.values())
        kinds = [group for group in ordered if group.value != NONE]
        if not kinds:
            return []
        means = {label: fmean(group.means[label] for group in kinds) for label in kinds[0].means}
        return [*ordered, Group(MEAN_OF_KINDS, sum(group.queries for group in kinds), means, {})]


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """One task; without a column `split` the set is taken whole."""
    judged = rmir.read(data)
    if any(facts.get("split") for facts in judged.queries.values()):
        judged = judged.among("split", split)
    task = Task.of("it2i", judged, preset("rmir"), by=(ByKind(),), pool=judged.images, size=len(judged.images))
    home_made = (note_of_set(data, "the set was built here"),) if rmir.is_home_made(data) else ()
    return [replace(task, composed=True, exclude_input=True, exclude_unknown=True, unofficial=home_made)]


def printed() -> list[Printed]:
    """RMIR's table 2."""
    return list(table("rmir", "RMIR, table 2", ("method",), TABLE))


def load() -> Benchmark:
    """The benchmark."""
    return Benchmark(
        "rmir",
        "RMIR",
        "pictures with questions whose answers are other pictures, found only by reasoning over both",
        "",
        "that of the pictures' sources (Visual Genome, Open Images)",
        "RMIR: reasoning-intensive multimodal image retrieval",
        tasks,
        tuple(
            Needed(f"{name}.parquet|{name}.jsonl|{name}.jsonl.gz|{name}.tsv|{name}.csv|mapping.json", what, LAYOUT)
            for name, what in (
                ("queries", "pictures and questions"),
                ("qrels", "the relevant pictures"),
                ("pool", "the pictures to rank"),
            )
        ),
        ("test", "train"),
        printed,
        {("test", "it2i"): Official(1634, 35_803)},
    )
