"""The first hits of a search in numbers: when, where, and under which labels they were taken."""

from __future__ import annotations

from calendar import month_name
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from eyespot.web.found.facets import Facets

LINES = 12  # of a table


class ValueCounts(NamedTuple):
    """How often each value came: those that came most, the rest together, and hits without one."""

    name: str
    counts: list[tuple[str, int]]
    others: int
    without: int


MONTHS = list(month_name)[1:]


def summary_of(items: Sequence[dict[str, Any]], facets: Facets) -> list[ValueCounts]:
    """Counts by year, by month of the year, by place and by label; what no hit has is left out."""
    taken = [str(item.get("taken") or "") for item in items]
    columns = [label.column for label in facets.labels]
    tallies = [
        _in_order("year", [one[:4] for one in taken]),
        _in_order("month", [one[5:7] for one in taken], {f"{at:02d}": name for at, name in enumerate(MONTHS, 1)}),
        _tally("place (cells of one degree)", map(_place, items)),
        *(_tally(column, ("" if (v := item.get(column)) is None else str(v) for item in items)) for column in columns),
    ]
    return [tally for tally in tallies if tally.counts]


def _in_order(name: str, values: Sequence[str], names: dict[str, str] | None = None) -> ValueCounts:
    counted = Counter(value for value in values if value)
    counts = [((names or {}).get(value, value), count) for value, count in sorted(counted.items())]
    return ValueCounts(name, counts, 0, sum(not value for value in values))


def _tally(name: str, values: Iterable[str]) -> ValueCounts:
    counted = Counter(values)
    without = counted.pop("", 0)
    common = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return ValueCounts(name, common[:LINES], sum(count for _, count in common[LINES:]), without)


def _place(item: dict[str, Any]) -> str:
    """The cell's south-west corner, as `47°N 8°E`."""
    latitude, longitude = item.get("latitude"), item.get("longitude")
    if latitude is None or longitude is None:
        return ""
    south, west = int(latitude // 1), int(longitude // 1)
    return f"{abs(south)}°{'N' if south >= 0 else 'S'} {abs(west)}°{'E' if west >= 0 else 'W'}"
