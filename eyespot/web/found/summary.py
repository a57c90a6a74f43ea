"""The first hits of a search in numbers: when, where, and under which labels they were taken."""

from __future__ import annotations

import math
import re
from calendar import month_name
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

LINES = 12  # of a table


class ValueCounts(NamedTuple):
    """How often each value came: those that came most, the rest together, and hits without one."""

    name: str
    counts: list[tuple[str, int]]
    others: int
    without: int


def summary_of(items: Sequence[dict[str, Any]], columns: Iterable[str]) -> list[ValueCounts]:
    """Counts by year, by month of the year, by place and by label; what no hit has is left out."""
    taken = [str(item.get("taken") or "") for item in items]
    places = []  # the south-west corners of cells, as `47°N 8°E`
    for item in items:
        latitude, longitude = item.get("latitude"), item.get("longitude")
        if latitude is None or longitude is None:
            places.append("")
            continue
        south, west = int(latitude // 1), int(longitude // 1)
        places.append(f"{abs(south)}°{'N' if south >= 0 else 'S'} {abs(west)}°{'E' if west >= 0 else 'W'}")
    tallies = [
        _tally("year", [one[:4] for one in taken], {}),
        _tally("month", [one[5:7] for one in taken], {f"{at:02d}": month_name[at] for at in range(1, 13)}),
        _tally("place (cells of one degree)", places),
        *(_tally(column, ("" if (v := item.get(column)) is None else str(v) for item in items)) for column in columns),
    ]
    return [tally for tally in tallies if tally.counts]


def _tally(name: str, values: Iterable[str], names: Mapping[str, str] | None = None) -> ValueCounts:
    """The commonest values; where they have `names`, all of them in the order of the values."""
    counted = Counter(values)
    without = counted.pop("", 0)
    if names is not None:
        return ValueCounts(name, [(names.get(one, one), count) for one, count in sorted(counted.items())], 0, without)
    common = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return ValueCounts(name, common[:LINES], sum(count for _, count in common[LINES:]), without)


MONTHS = 72  # bars of a timeline by months; a longer time is shown by years
BARS = 120
CELLS = 24  # of the map, from left to right
UNITS = 10**7  # of a degree, in which cells are measured: about a centimetre
HIGH = 60  # units, of the highest bar
SOME = (3, 20)  # photos from which on a cell of the map has some, and many


class TimeBar(NamedTuple):
    """A part of the timeline: what it is called, the dates that filter it, its photos, and its height."""

    name: str
    after: str
    before: str
    photos: int
    height: float


class Timeline(NamedTuple):
    """Bars without gaps from the first photo to the last, and how many photos have no date."""

    unit: str  # month, year, or "10 years"
    bars: list[TimeBar]
    unknown: int


class MapCell(NamedTuple):
    """A square of the map in degrees: its south-west corner, the box that filters it, its photos, few to many (1-3)."""

    south: float
    west: float
    box: str
    photos: int
    heat: int


class PlaceMap(NamedTuple):
    """The cells that hold photos, the side of a cell, and the box around all of them, in degrees."""

    cells: list[MapCell]
    step: float
    south: float
    west: float
    north: float
    east: float
    unknown: int


def timeline_of(items: Sequence[dict[str, Any]]) -> Timeline | None:
    """The timeline of hits by months, or by years if it is long; None where fewer than two times are known."""
    taken = [str(item.get("taken") or "") for item in items]
    dates = [one for one in taken if re.fullmatch("[0-9]{4}.(0[1-9]|1[0-2]).*", one, re.DOTALL)]
    months = Counter(int(one[:4]) * 12 + int(one[5:7]) - 1 for one in dates)
    if len(months) < 2:
        return None
    first, last = min(months), max(months)
    step = 1 if last - first < MONTHS else 12 * max(1, math.ceil((last // 12 - first // 12 + 1) / BARS))
    counts: Counter[int] = Counter()
    for month, count in months.items():
        counts[month // step] += count
    most = max(counts.values())
    bars = []
    for at in range(first // step, last // step + 1):
        month, following = at * step, (at + 1) * step
        if step == 1:
            name, after, before = _as_month(month), _as_month(month), _as_month(following)
        else:
            after, before = f"{month // 12:04d}", f"{following // 12:04d}"
            name = after if step == 12 else f"{after} to {following // 12 - 1:04d}"
        bars.append(TimeBar(name, after, before, counts[at], round(HIGH * counts[at] / most, 1)))
    unit = "month" if step == 1 else "year" if step == 12 else f"{step // 12} years"
    return Timeline(unit, bars, len(taken) - sum(months.values()))


def _as_month(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def places_of(items: Sequence[dict[str, Any]]) -> PlaceMap | None:
    """Where hits were taken, in square cells; None where no place is known."""
    places = [
        (float(item["latitude"]), float(item["longitude"]))
        for item in items
        if item.get("latitude") is not None and item.get("longitude") is not None
    ]
    if not places:
        return None
    south, west = (min(one[at] for one in places) for at in (0, 1))
    north, east = (max(one[at] for one in places) for at in (0, 1))
    side = math.ceil(max(east - west, 2 * (north - south), 0.02) / CELLS * UNITS)
    step = side / UNITS
    counts = Counter(
        (round(latitude * UNITS) // side, round(longitude * UNITS) // side) for latitude, longitude in places
    )
    cells = []
    for (row, column), count in sorted(counts.items()):
        low, left = row * side, column * side
        # A box holds its edges, so it ends one unit before the next cell begins
        high, right = min(low + side - 1, 90 * UNITS), min(left + side - 1, 180 * UNITS)
        edges = max(low, -90 * UNITS), max(left, -180 * UNITS), high, right
        box = ",".join(f"{one / UNITS:.7f}".rstrip("0").rstrip(".") for one in edges)
        cells.append(MapCell(low / UNITS, left / UNITS, box, count, 1 + sum(count >= some for some in SOME)))
    souths, wests = [cell.south for cell in cells], [cell.west for cell in cells]
    north, east = max(souths) + step, max(wests) + step
    return PlaceMap(cells, step, min(souths), min(wests), north, east, len(items) - len(places))
