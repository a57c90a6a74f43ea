"""The first hits of a search in numbers: when, where, and under which labels they were taken."""

from __future__ import annotations

import math
import re
from calendar import month_name
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LINES = 12  # of a table


def summary_of(items: Sequence[dict[str, Any]], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Counts by year, by month of the year and by label; what no hit has is left out.

    Each has a `name`, `counts` of the values that came most, and how many hits have `others` and are `without` one.
    """
    taken = [str(item.get("taken") or "") for item in items]
    tallies = [
        _tally("year", [one[:4] for one in taken], {}),
        _tally("month", [one[5:7] for one in taken], {f"{at:02d}": month_name[at] for at in range(1, 13)}),
        *(_tally(column, ("" if (v := item.get(column)) is None else str(v) for item in items)) for column in columns),
    ]
    return [tally for tally in tallies if tally["counts"]]


def _tally(name: str, values: Iterable[str], names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The commonest values; where they have `names`, all of them in the order of the values."""
    counted = Counter(values)
    without = counted.pop("", 0)
    if names is not None:
        common, rest = [(names.get(one, one), count) for one, count in sorted(counted.items())], list[tuple[str, int]]()
    else:
        common = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
        common, rest = common[:LINES], common[LINES:]
    return {"name": name, "counts": common, "others": sum(count for _, count in rest), "without": without}


MONTHS = 72  # bars of a timeline by months; a longer time is shown by years
BARS = 120
CELLS = 24  # of the map, from left to right
UNITS = 10**7  # of a degree, in which cells are measured: about a centimetre
HIGH = 60  # units, of the highest bar
SOME = (3, 20)  # photos from which on a cell of the map has some, and many


def timeline_of(items: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The timeline of hits by months, or by years if it is long; None where fewer than two times are known.

    It has a `unit`, `bars` without gaps (name, the dates after and before that filter it, photos, height), and how
    many photos are `unknown`, without a date.
    """
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
        height = round(HIGH * counts[at] / most, 1)
        bars.append({"name": name, "after": after, "before": before, "photos": counts[at], "height": height})
    unit = "month" if step == 1 else "year" if step == 12 else f"{step // 12} years"
    return {"unit": unit, "bars": bars, "unknown": len(taken) - sum(months.values())}


def _as_month(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def places_of(items: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Where hits were taken, in square cells; None where no place is known.

    It has the `cells` that hold photos (the south-west corner, the box that filters it, its photos, its heat from 1
    for few to 3), the `step` of a cell, the edges around all of them, all in degrees, and how many are `unknown`.
    """
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
    counts = Counter((round(lat * UNITS) // side, round(lon * UNITS) // side) for lat, lon in places)
    cells: list[dict[str, Any]] = []
    for (row, column), count in sorted(counts.items()):
        low, left = row * side, column * side
        # A box holds its edges, so it ends one unit before the next cell begins
        high, right = min(low + side - 1, 90 * UNITS), min(left + side - 1, 180 * UNITS)
        edges = max(low, -90 * UNITS), max(left, -180 * UNITS), high, right
        box = ",".join(f"{one / UNITS:.7f}".rstrip("0").rstrip(".") for one in edges)
        heat = 1 + sum(count >= some for some in SOME)
        cells.append({"south": low / UNITS, "west": left / UNITS, "box": box, "photos": count, "heat": heat})
    souths, wests = ([cell[side] for cell in cells] for side in ("south", "west"))
    around = {"south": min(souths), "west": min(wests), "north": max(souths) + step, "east": max(wests) + step}
    return {"cells": cells, "step": step, **around, "unknown": len(items) - len(places)}
