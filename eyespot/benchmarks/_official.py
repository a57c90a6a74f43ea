"""Which numbers of papers may stand beside measured ones: those of the same queries, split and images.

The one rule for all benchmarks. A benchmark says what its papers measured (`Benchmark.official`, and of single rows
`Printed.split` and `Printed.images`); whatever is known to differ keeps a row away, with the reasons. Of the rows that
stand beside, those with a reason of their own (`_comparing`) are printed without a difference.

The codes of reasons: `set`, `split`, `queries`, `judgements` and `images` keep a row away; `cell`, `wording`,
`first-stage`, `ties` and `cut` take the difference from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eyespot.benchmarks._benchmark import Printed
from eyespot.benchmarks._comparing import grounds_of, reasons_of
from eyespot.benchmarks._evaluating import Evaluation, Result
from eyespot.types import Note

CLOSE = 0.02  # of the images: some cannot be fetched any more, or are one file under several names


class Beside(NamedTuple):
    """The rows that stand beside a result, and why the others do not, by their source.

    `reasons` are those of rows that are not compared, `grounds` what is known to agree, by source.
    """

    rows: list[Printed]
    without: dict[str, list[Note]]
    reasons: dict[Printed, list[Note]]
    grounds: dict[str, list[Note]]

    @property
    def sentences(self) -> list[str]:
        """A line for each set of reasons that keep rows away."""
        sources: dict[str, list[str]] = {}
        for source, notes in self.without.items():
            sources.setdefault("; ".join(notes), []).append(source)
        return [f"Not beside {'; '.join(names)}: {why}." for why, names in sources.items()]

    def below(self, rows: list[Printed]) -> list[str]:
        """What to say under a table of these rows: whether they may be compared, and why some may not."""
        grounds = self.grounds.get(rows[0].source, [])
        lines = [f"Comparable: {', '.join(grounds)}."] if any(row not in self.reasons for row in rows) else []
        cells: dict[str, list[Printed]] = {}
        for row in rows:
            for reason in self.reasons.get(row, ()):
                cells.setdefault(str(reason), []).append(row)
        return lines + [f"Not compared{_which(few, rows)}: {why}." for why, few in cells.items()]


def beside(evaluation: Evaluation, result: Result) -> Beside:
    """What papers print of this task and these measures; two-stage numbers at the depth that was measured."""
    about = [
        one
        for one in evaluation.benchmark.printed()
        if one.task == result.task.name
        and one.measure in result.scores.values
        and one.depth in (None, evaluation.depth)
    ]
    whys = [list(_differences(evaluation, result, one, about)) for one in about]
    rows = [one for one, why in zip(about, whys, strict=True) if not why]
    sources = dict.fromkeys(one.source for one in rows)  # in their order: the same bytes each time
    without = {one.source: why for one, why in zip(about, whys, strict=True) if one.source not in sources}
    reasons = reasons_of(evaluation, result, rows)
    official = bool(evaluation.benchmark.official)
    grounds = {}
    for source in sources:
        if compared := [row for row in rows if row.source == source and row not in reasons]:
            grounds[source] = grounds_of(result, compared, official)
    return Beside(rows, without, reasons, grounds)


def _differences(evaluation: Evaluation, result: Result, row: Printed, about: list[Printed]) -> Iterator[Note]:
    """What is known to differ between a result and what a row was measured on."""
    split = row.split or evaluation.benchmark.splits[0]
    yield from result.task.unofficial
    if any(why.code == "set" for why in result.task.unofficial):
        return
    if evaluation.split != split:
        text = f"the paper's numbers are of {split}, these of {evaluation.split}; evaluate those with --split {split}"
        yield Note("split", text)
        return
    if lacking := len(result.scores.missing):
        yield Note("queries", f"{lacking:,} of {len(result.task.judged.qrels):,} queries without a ranking")
    official = evaluation.benchmark.official.get((split, result.task.name))
    if official is None:
        return
    queries = len(result.scores.queries)
    if queries != official.queries:
        yield Note("queries", f"{_part(queries, official.queries)} queries")
    if missing := result.run.header.get("missing"):
        yield Note("images", f"{missing:,} images of the benchmark are missing")
        return
    if unlisted := result.run.header.get("unlisted"):
        yield Note("images", f"{unlisted:,} ranked images are not in the list of the benchmark")
        return
    several = len({one.images for one in about}) > 1
    yield from _other_images(result, row.images or official.images, several)


def _other_images(result: Result, wanted: int | None, several: bool) -> Iterator[Note]:
    """`several`: there are rows of more than one collection, so that a run that does not say which fits none."""
    ranked: int | None
    # How many images each query ranked at least; None where nobody says
    candidates = result.task.judged.candidates
    if candidates is not None:
        ranked = int(np.diff(candidates.only(set(result.scores.queries)).offsets).min())
    else:
        ranked = result.ranked or len(result.task.pool) or None
    if wanted is None:
        return
    if ranked is not None and abs(ranked - wanted) > CLOSE * wanted:
        yield Note("images", f"{_part(ranked, wanted)} images were ranked")
    elif ranked is None and several:
        yield Note("images", "how many images were ranked is not known; say so with --pool")


def _which(few: list[Printed], rows: list[Printed]) -> str:
    """Which of the rows of a table, in brackets; a method alone where it is all of its cells."""
    if len(few) == len(rows):
        return ""
    cells: dict[str, list[str]] = {}
    for row in few:
        cells.setdefault(row.method, []).append(row.group or row.measure)
    every = Counter(row.method for row in rows)
    parts = (name if len(own) == every[name] else f"{name} {', '.join(own)}" for name, own in cells.items())
    return f" ({'; '.join(parts)})"


def _part(here: int, there: int) -> str:
    return f"{here:,} of the paper's {there:,}" if here < there else f"{here:,} and not the paper's {there:,}"
