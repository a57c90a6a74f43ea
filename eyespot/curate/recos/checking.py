"""The steps `review`, in which a person checks captions, and `complete`, which drops ambiguous captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eyespot.curate.recos.captions import CAPTIONS, REPEATED
from eyespot.curate.recos.confusing import changed
from eyespot.curate.recos.pictures import AMBIGUOUS, same_words, wordings
from eyespot.curate.recos.sources import Sources
from eyespot.pipelines import Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.pipelines.human_review import AWAITS, Case, reviewed

CONFIRMED, CHANGED, UNSEEN = "confirmed", "changed", "unseen"
"""The column `review` of a caption: a person accepted it, rewrote it, or no person decided on it."""
UNDECIDED = "undecided"  # in steps: unseen, though it was put to a person
TOO_FEW, UNREVIEWED = "its picture has too few captions", "nobody looked"


@dataclass(frozen=True)
class Reviewing:
    """The share of a version's captions that a person checks, besides all in doubt; what happens to undecided ones."""

    share: float = 1.0
    undecided: Literal["wait", "keep", "drop"] = "wait"
    version: str = "v0"


@dataclass(frozen=True)
class Completing:
    """How many captions each picture of a version needs."""

    least: int = CAPTIONS
    version: str = "v0"


def review_captions(
    records: Records, context: Context, queue: Path, sources: Sources, how: Reviewing
) -> Iterator[Outcome]:
    """Captions as a person accepts, edits or drops them."""

    def doubt(record: Record) -> Case | None:
        if not _is_caption(record, how.version):
            return None
        drawn = context.rng(record["id"]).random() < how.share
        if not record.get("doubts") and not drawn:
            return None
        why = f"{record['subtask']}: is this true, good English, and said with neither too much nor too little?"
        pictures, ids = [str(sources.place(record))], [record["image"]]
        if record["version"] == "v1":
            why = f"{record['subtask']}: is this true of the first picture, and not of the second?"
            pictures.append(str(sources.place({**record, "path": record["of_path"]})))
            ids.append(record["of"])
        doubts = "".join(f" Doubt: {text}." for text in record.get("doubts", []))
        return Case(record["id"], why + doubts, tuple(pictures), {"text": record["text"]}, tuple(ids))

    def undecided(record: Record) -> Outcome:
        if how.undecided == "wait":
            return Failed(record, AWAITS)
        if how.undecided == "drop":
            return Drop(record, UNREVIEWED)
        return Keep(record if is_seen(record) else {**record, "review": UNDECIDED})

    return reviewed(records, queue, doubt, undecided, confirm)


def is_seen(record: Record) -> bool:
    """Whether a person confirmed or wrote the words of a caption."""
    return record.get("review") in (CONFIRMED, CHANGED)


def confirm(record: Record, texts: Mapping[str, str]) -> Record:
    """A caption that a person accepted, with its new text if they edited it.

    The differences of a new text from the original are counted again, and its dis(t) is unknown.
    """
    if not texts:
        return record if is_seen(record) else {**record, "review": CONFIRMED}
    fields = {"review": CHANGED} | dict.fromkeys(set(record) & {"dis", "rounds"})
    if "original" in record:
        fields["edits"] = changed(record["original"], texts["text"])
    return {**record, **texts, **fields}


def apart(records: Records, context: Context) -> Iterator[Outcome]:
    """Captions that no other picture has, and records of other kinds."""
    shared = _shared(records, context.earlier["render"])
    for record in records:
        yield Drop(record, AMBIGUOUS, record["text"]) if record["id"] in shared else Keep(record)


def completed(records: Records, context: Context, how: Completing) -> Iterator[Outcome]:
    """Captions that no other picture has, of pictures with enough such captions."""
    faults: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()  # captions by their picture
    for record in records:
        if _is_caption(record, how.version):
            key = record["image"], same_words(record["text"])
            if key in seen:
                faults[record["id"]] = REPEATED
            seen.add(key)
    faults |= dict.fromkeys(_shared(records, context.earlier["render"]), AMBIGUOUS)
    left = Counter(r["image"] for r in records if _is_caption(r, how.version) and r["id"] not in faults)
    for record in records:
        if record["id"] in faults:
            yield Drop(record, faults[record["id"]], record["text"])
        elif _is_caption(record, how.version) and left[record["image"]] < how.least:
            yield Drop(record, TOO_FEW, f"{left[record['image']]} of {how.least}")
        else:
            yield Keep(record)


def _shared(records: Records, drawn: Records) -> set[str]:
    """Captions of any version that are true of two pictures, so that a search for either would also match the other.

    Two pictures have the same caption, or it is a wording of a drawn picture, in the set or not.
    """
    images = wordings(drawn)
    for record in records:
        if "text" in record:
            images.setdefault(same_words(record["text"]), set()).add(record["image"])
    return {record["id"] for record in records if "text" in record and len(images[same_words(record["text"])]) > 1}


def _is_caption(record: Record, version: str) -> bool:
    return "text" in record and record["version"] == version
