"""The steps of v2: `expand` adds pictures like those of v1, without captions; `distinct` takes near-duplicates out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyespot.curate._near_duplicates import Near, first_of_family, near_duplicates
from eyespot.curate.recos.confusing import NOTHING, LookalikeSearch, drawn_by_image, hashes_of
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record, Records

COPY, UNREADABLE = "near-duplicate", "cannot be read"


@dataclass(frozen=True)
class Expanding:
    """How many similar pictures each picture of v1 brings along; those that several bring come once."""

    similar: int = 20


@dataclass(frozen=True)
class Distinct:
    """Which pictures are near-duplicates, and how many are looked at at once."""

    bits: int = 8
    cosine: float = 0.97


def expanded(records: Records, context: Context, sources: Sources, how: Expanding) -> Iterator[Outcome]:
    """All that came, and the pictures most like each of v1 that the set does not hold yet."""
    captioned: dict[str, Record] = {}
    for record in records:
        captioned.setdefault(record["image"], record)
        yield Keep(record)
    search, taken = LookalikeSearch(sources, Near(), drawn_by_image(context)), set(captioned)
    for first in captioned.values():
        for row, cosine in sources.nearest(first, how.similar, search.of_kind(first, but=[first["image"]])):
            found = search.told(first["source"], row)
            if found["image"] not in taken:
                taken.add(found["image"])
                told = {"subtask": first["subtask"], "stand_in": first["stand_in"], "version": "v2"}
                told |= {"of": first["image"], "cosine": round(cosine, 6)}
                yield Added({"id": f"more/{found['image']}", **found, **told})


def hashed(record: Record, _context: Context, sources: Sources) -> Outcome:
    """A picture without captions with its perceptual hashes; captions as they came."""
    if "text" in record:
        return Keep(record)
    hashes = hashes_of(sources, record)
    if hashes is NOTHING:
        return Failed(record, UNREADABLE, str(sources.place(record)))
    return Keep({**record, "hashes": [f"{one:016x}" for one in hashes.tolist()]})


def distinct(records: Records, _context: Context, sources: Sources, how: Distinct) -> Iterator[Outcome]:
    """Without the pictures of v2 that are copies of one that came before them; captions are never dropped here."""
    pictures: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=lambda one: "text" not in one):
        pictures.setdefault(record["image"], record)
    copies = _copies(list(pictures.values()), sources, Near(how.bits, how.cosine))
    for record in records:
        if "text" not in record and record["image"] in copies:
            yield Drop(record, COPY, f"of {copies[record['image']]}")
        else:
            yield Keep({key: value for key, value in record.items() if key != "hashes"})


def _copies(pictures: list[Record], sources: Sources, near: Near) -> dict[str, str]:
    """The image that each copy is a copy of. Drawn pictures are none: boards and sheets look alike and differ."""
    photos = [one for one in pictures if one["source"] != DRAWN]
    if len(photos) < 2:
        return {}
    knowns = []
    for one in photos:
        record = one
        known = [int(one, 16) for one in record["hashes"]] if "hashes" in record else hashes_of(sources, record)
        knowns.append(known)
    hashes = np.array(knowns, np.uint64)
    first = first_of_family(near_duplicates(hashes, sources.vectors(photos), near), len(photos))
    return {
        one["image"]: photos[at]["image"]
        for one, at in zip(photos, first.tolist(), strict=True)
        if photos[at] is not one
    }
