"""The papers' own tables, kept as they were printed, to stand beside what is measured."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from importlib import resources
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


def table(name: str, source: str, method: tuple[str, ...], columns: Mapping[str, Column]) -> Iterator[Printed]:
    """A table with a row for each method: what is printed, empty cells left out."""
    for row in rows(name):
        whose = " ".join(row[part] for part in method if row[part])
        for column, about in columns.items():
            if row[column]:
                yield printed(source, whose, about, float(row[column]))


def printed(source: str, method: str, about: Column, value: float, split: str | None = None) -> Printed:
    """One number; a percentage becomes a fraction."""
    fraction = value / 100 if about.percent else value
    where = (about.by, about.group, about.depth, split, about.images)
    return Printed(source, method, about.task, about.measure, fraction, about.percent, *where)
