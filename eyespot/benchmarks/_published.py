"""The papers' own tables, kept as they were printed, to stand beside what is measured."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from eyespot.benchmarks._benchmark import Printed


class Column(NamedTuple):
    """Which task and measure a column of a printed table is about."""

    task: str
    measure: str
    by: str | None = None
    group: str | None = None
    depth: int | None = None
    percent: bool = True
    images: int | None = None


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a printed table, as text."""
    with resources.files("eyespot.benchmarks").joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(
    name: str, source: str, method: tuple[str, ...], columns: Mapping[str, Column], first_stage: str | None = None
) -> Iterator[Printed]:
    """A table with a row for each method: what is printed, empty cells left out.

    `first_stage` is the method whose ranking the others re-rank.
    """
    for row in rows(name):
        whose = " ".join(row[part] for part in method if row[part])
        for column, about in columns.items():
            if row[column]:
                value = printed(source, whose, about, float(row[column]))
                yield value._replace(first_stage=None if whose == first_stage else first_stage)


def printed(source: str, method: str, about: Column, value: float, split: str | None = None) -> Printed:
    """One number; a percentage becomes a fraction."""
    fraction = value / 100 if about.percent else value
    where = (about.by, about.group, about.depth, split, about.images)
    return Printed(source, method, about.task, about.measure, fraction, about.percent, *where)


def prompted(rows: Iterable[Printed], models: Collection[str]) -> Iterator[Printed]:
    """The numbers with those of `models` marked: they answer the prompts that INQUIRE released."""
    return (row._replace(wording="inquire") if row.method in models else row for row in rows)


# -- cells that cannot be as printed ------------------------------------------------------------------------------

REPEATED = {("ReCoS, table 2 (Flickr30K)", "ALBEF"): "five of its six figures are those of MSCOCO"}  # by reading
GROWING = re.compile(r"(Hit|R)@(\d+)")  # measures that cannot fall with the cut


def impossible(every: Sequence[Printed]) -> dict[Printed, str]:
    """Cells that contradict others of their table, with the reason; which of two is wrong is not known."""
    found = {row: REPEATED[row.source, row.method] for row in every if (row.source, row.method) in REPEATED}
    curves: dict[tuple[object, ...], dict[int, Printed]] = defaultdict(dict)
    for row in every:
        if cut := GROWING.fullmatch(row.measure):
            whose = (row.source, row.method, row.task, row.column, row.group, row.depth, row.split, cut[1])
            curves[whose][int(cut[2])] = row
    for (*_, name), curve in curves.items():
        for (k, less), (deeper, more) in pairwise(sorted(curve.items())):
            if less.value > more.value:
                found |= dict.fromkeys((less, more), f"{name}@{deeper} cannot be below {name}@{k}")
    return found
