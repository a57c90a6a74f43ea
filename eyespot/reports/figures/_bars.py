"""Bars with their intervals, and the rows they stand in."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from eyespot.types import UsageError


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its 95% interval; NaN where there is none. `count` says of how many, `parent` of which group."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    count: int = 0
    parent: str = ""

    @property
    def row(self) -> Row:
        """The row it belongs to."""
        return self.parent, self.name

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return math.isfinite(self.value)

    @property
    def bounded(self) -> bool:
        """Whether there is a value with an interval."""
        return self.known and math.isfinite(self.low) and math.isfinite(self.high)


Row: TypeAlias = tuple[str, str]  # parent and name
Methods: TypeAlias = Mapping[str, Sequence[Bar]]


def refuse_nothing(sides: Iterable[Methods], published: Collection[str]) -> None:
    """`UsageError` where there are no bars, where one stands twice, and where a published method is unknown."""
    methods = [pair for side in sides for pair in side.items()]
    if not any(bars for _, bars in methods):
        raise UsageError("there are no bars to draw; give at least one method with one value")
    for name, bars in methods:
        rows = [bar.row for bar in bars]
        if twice := [bar.name for at, bar in enumerate(bars) if bar.row in rows[:at]]:
            raise UsageError(f"{name} has the bar {twice[0]!r} twice; keep one of the two")
    known = dict(methods)
    if unknown := [name for name in published if name not in known]:
        raise UsageError(f"no {unknown[0]!r} among the methods to mark as published; there are: {', '.join(known)}")


def rows_of(sides: Iterable[Methods]) -> dict[Row, list[Bar]]:
    """Every row in order of first appearance, with its bars."""
    found: dict[Row, list[Bar]] = {}
    for bar in (bar for side in sides for bars in side.values() for bar in bars):
        found.setdefault(bar.row, []).append(bar)
    return found


def hardest_first(sides: Iterable[Methods]) -> list[Row]:
    """Rows by the mean of their values, lowest first; those without any value last."""
    found = rows_of(sides)
    values = {row: [bar.value for bar in bars if bar.known] for row, bars in found.items()}
    return sorted(values, key=lambda row: fmean(values[row]) if values[row] else math.inf)
