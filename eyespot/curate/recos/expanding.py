"""The steps of v2: `expand` adds pictures like those of v1, without captions; `distinct` removes near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eyespot.curate.recos.confusing import NOTHING, LookalikeSearch, drawn_by_image, hashes_of
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.gallery.groups.near_duplicates import Near, first_of_family, near_duplicates
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record, Records

COPY, UNREADABLE = "near-duplicate", "cannot be read"


@dataclass(frozen=True)
class Expanding:
    """How many similar pictures each picture of v1 adds; a picture that several would add comes once."""

    similar: int = 20


@dataclass(frozen=True)
class Distinct:
    """Which pictures are near-duplicates: at most `bits` of their hashes differ, and their cosine is at least this."""

    bits: int = 8
    cosine: float = 0.97


def expanded(records: Records, context: Context, sources: Sources, how: Expanding) -> Iterator[Outcome]:
    """All records, and the pictures most like each of v1 that the set does not have yet."""
    captioned: dict[str, Record] = {}
    for record in records:
        captioned.setdefault(record["image"], record)
        yield Keep(record)
    search, taken = LookalikeSearch(sources, Near(), drawn_by_image(context)), set(captioned)
    for first in captioned.values():
        mask = search.of_kind(first, but=[first["image"]])
        for row, cosine in sources.nearest(first, how.similar, mask):
            picture = search.picture(first["source"], row)
            if picture["image"] not in taken:
                taken.add(picture["image"])
                fields = {"subtask": first["subtask"], "stand_in": first["stand_in"], "version": "v2"}
                fields |= {"of": first["image"], "cosine": round(cosine, 6)}
                yield Added({"id": f"more/{picture['image']}", **picture, **fields})


def hashed(record: Record, sources: Sources) -> Outcome:
    """A picture without captions with its perceptual hashes; captions as they are."""
    if "text" in record:
        return Keep(record)
    hashes = hashes_of(sources, record)
    if hashes is NOTHING:
        return Failed(record, UNREADABLE, str(sources.place(record)))
    return Keep({**record, "hashes": [f"{hash:016x}" for hash in hashes.tolist()]})


def distinct(records: Records, sources: Sources, how: Distinct) -> Iterator[Outcome]:
    """All but the pictures of v2 that are copies of an earlier one; captions are never dropped here."""
    pictures: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: "text" not in record):
        pictures.setdefault(record["image"], record)
    copies = _copies(list(pictures.values()), sources, Near(how.bits, how.cosine))
    for record in records:
        if "text" not in record and record["image"] in copies:
            yield Drop(record, COPY, f"of {copies[record['image']]}")
        else:
            yield Keep({key: value for key, value in record.items() if key != "hashes"})


def _copies(pictures: list[Record], sources: Sources, near: Near) -> dict[str, str]:
    """The original of each copy, as images. Drawn pictures are no copies: boards and sheets look alike and differ."""
    photos = [picture for picture in pictures if picture["source"] != DRAWN]
    if len(photos) < 2:
        return {}
    hashes = [
        [int(digits, 16) for digits in photo["hashes"]] if "hashes" in photo else hashes_of(sources, photo)
        for photo in photos
    ]
    pairs = near_duplicates(np.array(hashes, np.uint64), sources.vectors(photos), near)
    originals = [photos[row] for row in first_of_family(pairs, len(photos)).tolist()]
    return {
        photo["image"]: original["image"]
        for photo, original in zip(photos, originals, strict=True)
        if original is not photo
    }
