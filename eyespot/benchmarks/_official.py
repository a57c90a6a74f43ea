"""Which numbers of papers may stand beside measured ones: those of the same queries, split and images.

The one rule for all benchmarks. A benchmark says what its papers measured (`Benchmark.official`, and of single rows
`Printed.split` and `Printed.images`); whatever is known to differ keeps a row away, with the reason.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eyespot.benchmarks._benchmark import Printed
from eyespot.benchmarks._evaluating import Evaluation, Result

CLOSE = 0.02  # of the images: some cannot be fetched any more, or are one file under several names


class Beside(NamedTuple):
    """The rows that may stand beside a result, and why the others may not, by their source."""

    rows: list[Printed]
    without: dict[str, str]

    @property
    def sentences(self) -> list[str]:
        """A line for each reason."""
        sources: dict[str, list[str]] = {}
        for source, why in self.without.items():
            sources.setdefault(why, []).append(source)
        return [f"Not beside {'; '.join(every)}: {why}." for why, every in sources.items()]


def beside(evaluation: Evaluation, result: Result) -> Beside:
    """What papers print of this task and these measures; two-stage numbers at the depth that was measured."""
    about = [
        one
        for one in evaluation.benchmark.printed()
        if one.task == result.task.name
        and one.measure in result.scores.values
        and one.depth in (None, evaluation.depth)
    ]
    whys = [_difference(evaluation, result, one, about) for one in about]
    rows = [one for one, why in zip(about, whys, strict=True) if not why]
    shown = {one.source for one in rows}
    return Beside(rows, {one.source: why for one, why in zip(about, whys, strict=True) if one.source not in shown})


def _difference(evaluation: Evaluation, result: Result, row: Printed, about: list[Printed]) -> str:
    """What is known to differ between a result and what a row was measured on, or nothing."""
    split = row.split or evaluation.benchmark.splits[0]
    if result.task.unofficial:
        return result.task.unofficial
    if evaluation.split != split:
        return f"the paper's numbers are of {split}, these of {evaluation.split}"
    official = evaluation.benchmark.official.get((split, result.task.name))
    if official is None:
        return ""
    if (queries := len(result.scores.queries)) != official.queries:
        return f"{_part(queries, official.queries)} queries"
    if missing := result.run.header.get("missing"):
        return f"{missing:,} images of the benchmark are missing"
    several = len({one.images for one in about}) > 1
    return _other_images(result, row.images or official.images, several)


def _other_images(result: Result, wanted: int | None, several: bool) -> str:
    """`several`: there are rows of more than one collection, so that a run that does not say which fits none."""
    ranked: int | None
    # How many images each query ranked at least; None where nobody says
    candidates = result.task.judged.candidates
    if candidates is not None:
        ranked = int(np.diff(candidates.only(set(result.scores.queries)).offsets).min())
    else:
        ranked = result.ranked or len(result.task.pool) or None
    if wanted is None or (ranked is None and not several):
        return ""
    if ranked is None:
        return "how many images were ranked is not known; say so with --pool"
    return "" if abs(ranked - wanted) <= CLOSE * wanted else f"{_part(ranked, wanted)} images were ranked"


def _part(here: int, there: int) -> str:
    return f"{here:,} of the paper's {there:,}" if here < there else f"{here:,} and not the paper's {there:,}"
