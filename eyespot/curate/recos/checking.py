"""The steps `review`, in which a person looks, and `complete`, after which every picture has captions of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eyespot.curate.recos.captioning import CAPTIONS, REPEATED
from eyespot.curate.recos.confusing import changed
from eyespot.curate.recos.drawn import AMBIGUOUS, same_words, wordings
from eyespot.curate.recos.sources import Sources
from eyespot.pipelines import Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.pipelines.human_review import AWAITS, Case, reviewed

CONFIRMED, MENDED, UNDECIDED, NEVER = "confirmed", "mended", "undecided", "never"
"""What a caption's field `review` says: a person accepted it, wrote it anew, has not decided, was not asked."""
TOO_FEW, NOT_LOOKED_AT = "its picture has too few captions", "nobody looked"


@dataclass(frozen=True)
class Reviewing:
    """Which share of a version's captions a person looks at, those in doubt always; what becomes of undecided ones."""

    share: float = 1.0
    undecided: Literal["wait", "keep", "drop"] = "wait"
    version: str = "v0"


@dataclass(frozen=True)
class Completing:
    """How many captions each picture of a version needs."""

    least: int = CAPTIONS
    version: str = "v0"


def looked_at(records: Records, context: Context, queue: Path, told: tuple[Sources, Reviewing]) -> Iterator[Outcome]:
    """Captions as a person accepts, mends or drops them."""
    sources, how = told

    def doubt(record: Record) -> Case | None:
        if not _is_caption(record, how.version):
            return None
        drawn = context.chance(record["id"]).random() < how.share
        if record.get("doubts") or drawn:
            why = f"{record['subtask']}: is this true, good English, and said with neither too much nor too little?"
            pictures, ids = [str(sources.place(record))], [record["image"]]
            if record["version"] == "v1":
                why = f"{record['subtask']}: is this true of the first picture, and not of the second?"
                pictures.append(str(sources.place({**record, "path": record["of_path"]})))
                ids.append(record["of"])
            doubts = "".join(f" Doubt: {one}." for one in record.get("doubts", []))
            return Case(record["id"], why + doubts, tuple(pictures), {"text": record["text"]}, tuple(ids))
        return None

    def undecided(record: Record) -> Outcome:
        if how.undecided == "wait":
            return Failed(record, AWAITS)
        if how.undecided == "drop":
            return Drop(record, NOT_LOOKED_AT)
        return Keep(record if is_seen(record) else {**record, "review": UNDECIDED})

    return reviewed(records, queue, doubt, undecided, confirm)


def is_seen(record: Record) -> bool:
    """Whether a person confirmed or wrote the words of a caption."""
    return record.get("review") in (CONFIRMED, MENDED)


def confirm(record: Record, texts: Mapping[str, str]) -> Record:
    """A caption that a person accepted, in other words if they mended it.

    How other words differ from the original is counted anew, and no dis(t) is known of them.
    """
    if not texts:
        return record if is_seen(record) else {**record, "review": CONFIRMED}
    told = {"mended": True, "review": MENDED} | dict.fromkeys(set(record) & {"dis", "rounds"})
    if "original" in record:
        told |= {"edits": changed(record["original"], texts["text"])}
    return {**record, **texts, **told}


def apart(records: Records, context: Context) -> Iterator[Outcome]:
    """Captions that no other picture has, and records of other kinds."""
    shared = _shared(records, context.earlier["render"])
    for record in records:
        yield Drop(record, AMBIGUOUS, record["text"]) if record["id"] in shared else Keep(record)


def completed(records: Records, context: Context, how: Completing) -> Iterator[Outcome]:
    """Captions that no other picture has, of pictures that have enough of them."""
    # Captions that their own picture has already
    seen: set[tuple[str, str]] = set()
    found = {}
    for record in records:
        if _is_caption(record, how.version):
            key = record["image"], same_words(record["text"])
            if key in seen:
                found[record["id"]] = REPEATED
            seen.add(key)
    faults = found | dict.fromkeys(_shared(records, context.earlier["render"]), AMBIGUOUS)
    left = Counter(r["image"] for r in records if _is_caption(r, how.version) and r["id"] not in faults)
    for record in records:
        if record["id"] in faults:
            yield Drop(record, faults[record["id"]], record["text"])
        elif _is_caption(record, how.version) and left[record["image"]] < how.least:
            yield Drop(record, TOO_FEW, f"{left[record['image']]} of {how.least}")
        else:
            yield Keep(record)


def _shared(records: Records, drawn: Records) -> set[str]:
    """Captions of any version that are true of two pictures: whichever is searched for, the other one answers too.

    Two have the same caption, or one of the drawn pictures, in the set or not, has it among its wordings.
    """
    images = wordings(drawn)
    for record in records:
        if "text" in record:
            images.setdefault(same_words(record["text"]), set()).add(record["image"])
    return {record["id"] for record in records if "text" in record and len(images[same_words(record["text"])]) > 1}


def _is_caption(record: Record, version: str) -> bool:
    return "text" in record and record["version"] == version
