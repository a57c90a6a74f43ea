"""Which photos an estimate is of: the units that pass a filter, best-ranked first, each with its group.

Copies and the frames of a burst are one unit, which has the place of its best frame and the group of its first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import items_table
from eyespot.gallery.facts import misdated
from eyespot.gallery.filters import columns_of
from eyespot.gallery.groups.stored import Groups
from eyespot.ledger.judgements import query_digest
from eyespot.search.embedding import embed
from eyespot.search.parts import condition_of
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.digests import json_sha256
from eyespot.storage.locks import in_turn
from eyespot.types import Query, UsageError

if TYPE_CHECKING:
    from eyespot.settings.estimate import EstimateSettings

Ints = NDArray[np.int64]

ALL = "all"
SEASONS = ("winter", "spring", "summer", "autumn")
SMALLEST = 0.1  # degrees: a finer cell shows where somebody lives
Facts = Mapping[str, Any]


def _season(facts: Facts) -> str | None:
    """By three months each, winter from December on; south of the equator half a year later."""
    if facts["taken"] is None:
        return None
    south = 2 if (facts.get("latitude") or 0) < 0 else 0
    return SEASONS[(facts["taken"].month % 12 // 3 + south) % 4]


DATES: Mapping[str, Callable[[Facts], Any]] = {
    "month": lambda facts: facts["taken"] and facts["taken"].month,
    "season": _season,
    "year": lambda facts: facts["taken"] and facts["taken"].year,
    "week": lambda facts: facts["taken"] and facts["taken"].isocalendar().week,
}
ORDERS: Mapping[str, Sequence[Any]] = {"month": range(1, 13), "season": SEASONS}


@dataclass(frozen=True)
class Frame:
    """The units of an estimate, best-ranked first: the id of the frame to judge, the group, how many photos each has.

    `beside` has the groups of units that nobody ranked, and that shares are of as well.
    `misdated` of the photos have a date that cannot be, where the group depends on it.
    `live` is how many photos the gallery had, `at` when it was ranked, `ranked_by` by which encoder.
    """

    ids: list[str]
    groups: list[Any]
    photos: list[int]
    order: list[Any]
    live: int
    at: str
    ranked_by: str
    beside: list[Any] = field(default_factory=list)
    misdated: int = 0


def frame_of(collection: Any, query: Query, settings: EstimateSettings) -> Frame:
    """The frame as the gallery is now; `UsageError` for a column that it lacks."""
    view, columns = collection.view, list(columns_of(collection.view.tables))
    value, reads = _grouping(settings.by, columns)
    if settings.unit is not None and settings.unit not in columns:
        raise UsageError(f"no column {settings.unit!r} to count by; there are: {', '.join(columns)}")
    mask = collection.allowed(condition_of(settings, columns) if settings.filters else None)
    found = collection.index.search(embed([query], collection.encoder), int(mask.sum()), mask)
    beside = collection.allowed(settings.of) & ~mask if settings.of else ~mask & mask
    rows = np.concatenate([np.asarray(found.rows[0], np.int64), np.flatnonzero(beside)])
    facts, wrong = _facts(view.tables, [*reads, "taken", settings.unit] if settings.unit else [*reads, "taken"])
    unit = _units(
        Groups(view).numbers[rows], [facts[row].get(settings.unit) for row in rows] if settings.unit else None
    )
    _, best, of, photos = np.unique(unit, return_index=True, return_inverse=True, return_counts=True)
    taken = [facts[row]["taken"] or datetime.max for row in rows]
    earliest = np.array(sorted(range(len(rows)), key=lambda at: (of[at], taken[at], at)), np.int64)
    first = earliest[np.searchsorted(of[earliest], np.arange(len(best)))]
    order = np.argsort(best)
    groups = [value(facts[rows[at]]) for at in first[order]]
    ranked = order[best[order] < len(found.rows[0])]
    ids = [str(one["id"]) for one in view.facts(rows[best[ranked]].tolist())]
    labels, now = list(ORDERS.get(settings.by or "", ())), datetime.now(UTC).isoformat(timespec="seconds")
    by, groups, others = f"{view.space.encoder} {view.space.digest[:12]}", groups[: len(ids)], groups[len(ids) :]
    dates = sum(wrong[row] for row in found.rows[0].tolist()) if settings.by in DATES else 0
    return Frame(ids, groups, photos[ranked].tolist(), labels, int(view.live.sum()), now, by, others, dates)


def stored_frame(collection: Any, query: Query, settings: EstimateSettings, folder: Path) -> Frame:
    """The frame that an earlier run of the same question ranked, else a new one, which is stored in the folder."""
    question = {"query": query_digest(query), "space": collection.view.space.digest, **settings.frame}
    place = folder / f"{json_sha256(question)[:32]}.json"
    make_folder(folder)
    with in_turn(place):  # two people who ask the same at once look at the same photos
        if place.exists() and not settings.fresh:
            return Frame(**json.loads(place.read_text("utf-8")))
        frame = frame_of(collection, query, settings)
        write_whole(place, lambda file: file.write(json.dumps(asdict(frame)).encode()))
    return frame


def _grouping(by: str | None, columns: Sequence[str]) -> tuple[Callable[[Facts], Any], list[str]]:
    """What gives a photo's group by its facts, and which columns it reads."""
    if by is None:
        return lambda _facts: ALL, []
    if by in DATES:
        return DATES[by], ["latitude"]
    if by == "cell" or by.startswith("cell:"):
        try:
            size = float(by.partition(":")[2] or 1)
        except ValueError:
            size = 0.0
        if not SMALLEST <= size <= 90:
            raise UsageError(f"a cell is {SMALLEST} to 90 degrees wide, as in cell:0.5, not {by!r}")
        return lambda facts: _cell(facts, size), ["latitude", "longitude"]
    if by not in columns:
        raise UsageError(f"no column {by!r}; there are: {', '.join([*DATES, 'cell', *columns])}")
    return lambda facts: value if isinstance(value := facts[by], int | float | None) else str(value), [by]


def _cell(facts: Facts, size: float) -> str | None:
    """The south-west corner of a photo's cell, in degrees."""
    if facts["latitude"] is None or facts["longitude"] is None:
        return None
    south, west = (np.floor(facts[name] / size + 1e-9) * size for name in ("latitude", "longitude"))
    return f"{south:.6g},{west:.6g}"


def _facts(tables: Sequence[Path], columns: Sequence[str]) -> tuple[list[dict[str, Any]], list[bool]]:
    """These columns of each row of a gallery, None for what it lacks or a date that cannot be; and which had such."""
    rows: list[dict[str, Any]] = []
    wrong: list[bool] = []
    for table in tables:
        read = items_table.read_items(table.parent, list(dict.fromkeys(columns)))
        rows += [dict.fromkeys(columns) | row for row in read.to_pylist()]
        wrong += misdated(read["taken"])
    for at in np.flatnonzero(wrong):
        rows[at]["taken"] = None
    return rows, wrong


def _units(numbers: Ints, values: Sequence[Any] | None) -> Ints:
    """A number for each row that it shares with its unit alone, (rows,)."""
    alone = -1 - np.arange(len(numbers))
    if values is None:
        return np.where(numbers < 0, alone, numbers)
    known: dict[Any, int] = {}
    return np.array([alone[at] if one is None else known.setdefault(one, len(known)) for at, one in enumerate(values)])
