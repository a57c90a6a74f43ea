"""The steps of v1: `pair` finds for each picture the most similar one of its source, `confuse` writes its captions.

They are the first picture's captions with the fewest words changed: a key attribute is swapped for what is seen now.
How many words a caption differs in is measured, and which attribute was swapped is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyespot.curate._near_duplicates import Hashes, Near, picture_hashes
from eyespot.curate.recos.captioning import DECLINED, EMPTY, UNSUITABLE, CaptionWriter
from eyespot.curate.recos.drawn import generator_of
from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import subtask
from eyespot.gallery.photos.pictures import BadPicture, open_picture
from eyespot.gallery.photos.sources import read_again
from eyespot.pipelines import Added, Context, Drop, Keep, Outcome, Record, Records
from eyespot.pipelines.data_card.wording import words
from eyespot.pipelines.prompts import AnswerForm, answered
from eyespot.types import Mask

ALONE, UNCHANGED, REWRITTEN = "no similar picture", "nothing is changed", "too much is changed"
STRANGE, UNKNOWN = "no attribute of the sub-task", "caption of no original"
FIRST_LOOK, LAST_LOOK = 20, 500  # nearest pictures among which one that is no copy is looked for
NOTHING: Hashes = np.zeros(8, np.uint64)


@dataclass(frozen=True)
class Pairing:
    """When a picture is a copy rather than like another: bits of its perceptual hash, cosine (`Near`)."""

    bits: int = 8
    cosine: float = 0.97


@dataclass(frozen=True)
class Confusing:
    """Of a caption's words at most this share may change."""

    most_changed: float = 0.5
    workers: int = 4


class Swap(AnswerForm):
    """Caption `number` of the original with as few words changed as make it true of the new picture."""

    number: int
    text: str
    attribute: str


class Swaps(AnswerForm):
    """Confusing captions, or why there can be none."""

    captions: list[Swap]
    unsuitable: str


# -- pairs ------------------------------------------------------------------------------------------------------


def paired(records: Records, context: Context, sources: Sources, how: Pairing) -> Iterator[Outcome]:
    """All captions, and for each picture of v0 a record of the picture it is to be confused with."""
    by_image: dict[str, list[Record]] = {}
    for record in records:
        by_image.setdefault(record["image"], []).append(record)
        yield Keep(record)
    search = LookalikeSearch(sources, Near(how.bits, how.cosine), drawn_by_image(context))
    search.used.update(by_image)
    for captions in by_image.values():
        first = captions[0]
        made = {"id": f"pair/{first['image']}", "of": first["image"], "of_path": first["path"]}
        shown = [{"number": one["number"], "text": one["text"], "level": one.get("level")} for one in captions]
        found = search.most_similar(first)
        if found is None:
            yield Drop({**made, "subtask": first["subtask"]}, ALONE, of=first["id"])
            continue
        told = {"subtask": first["subtask"], "stand_in": first["stand_in"], "version": "v1", "originals": shown}
        yield Added({**made, **found, **told, "before": first["facts"]})


def drawn_by_image(context: Context) -> dict[str, Record]:
    return {record["image"]: record for record in context.earlier["render"]}


@dataclass
class LookalikeSearch:
    """Looks for pictures of the same source, and of a drawn one of the same sub-task, that nothing else has taken."""

    sources: Sources
    near: Near
    drawn: Mapping[str, Record]
    used: set[str] = field(default_factory=set)

    def most_similar(self, record: Record) -> Record | None:
        """The picture most like it that is no copy of it; taken from now on."""
        mask = self.free(record)
        for count in (FIRST_LOOK, LAST_LOOK):
            for row, cosine in self.sources.nearest(record, count, mask):
                found = self.told(record["source"], row)
                if cosine < self.near.cosine and not self._copies(record, found):
                    self.used.add(found["image"])
                    return {**found, "cosine": round(cosine, 6)}
        return None

    def free(self, record: Record) -> Mask:
        """The rows of its source that may be taken, (rows,)."""
        return self.of_kind(record, but=self.used)

    def of_kind(self, record: Record, but: Iterable[str]) -> Mask:
        """The rows of its source that are of its kind, (rows,), without some images."""
        rows = self.sources.rows(record["source"])
        live = self.sources.world(record["source"]).view(self.sources.named).live
        mask: Mask
        if record["source"] != DRAWN:
            mask = live.copy()
        else:
            mask = np.zeros(len(live), bool)
            mask[[rows[image] for image, one in self.drawn.items() if one["subtask"] == record["subtask"]]] = True
        mask[[rows[image] for image in but if image in rows]] = False
        return mask

    def told(self, source: str, row: int) -> dict[str, Any]:
        """A row as a record says it; the facts of a drawn one are those it was drawn by."""
        (found,) = self.sources.photos(source, [row])
        if source == DRAWN:
            drawn = self.drawn[found["image"]]
            found |= {"facts": drawn["facts"], "path": drawn["path"]}
        return found

    def _copies(self, record: Record, other: Record) -> bool:
        if record["source"] == DRAWN:  # each was drawn for itself, and boards look alike to a hash
            return False
        one, two = (hashes_of(self.sources, which) for which in (record, other))
        patterned = one.any() and two.any()  # plain pictures, and what cannot be read, are copies of nothing
        return bool(patterned and np.bitwise_count(one ^ two[0]).min() <= self.near.bits)


def hashes_of(sources: Sources, record: Record) -> Hashes:
    """The perceptual hashes of a record's picture, (8,); zeros of one that cannot be read, which nothing is like."""
    try:
        return picture_hashes(open_picture(read_again(str(sources.place(record))), 32).image)
    except (OSError, BadPicture):
        return NOTHING


# -- captions ---------------------------------------------------------------------------------------------------


def confused(record: Record, context: Context, writer: CaptionWriter, how: Confusing) -> Iterator[Outcome]:
    """A caption as it came; of a pair a record for each confusing caption."""
    if "originals" not in record:
        yield Keep(record)
        return
    found = _swaps_of(record, context, writer)
    if isinstance(found, Drop):
        yield found
        return
    originals = {one["number"]: one["text"] for one in record["originals"]}
    bare = {key: value for key, value in record.items() if key not in ("originals", "before")}
    for at, swap in enumerate(found, 1):
        made = {**bare, **_measured(swap, originals), "id": f"{record['image']}/{at}", "number": at}
        reason = _fault(made, how)
        yield Drop(made, reason, made["text"], of=record["id"]) if reason else Keep(made, of=record["id"])


def _swaps_of(record: Record, context: Context, writer: CaptionWriter) -> list[Swap] | Drop:
    """What a model, or who drew the picture, makes of the original's captions."""
    if record["source"] == DRAWN:
        # What is said of a drawn picture, said of another
        about, wording = subtask(record["subtask"]), generator_of(record["subtask"]).wording(record["facts"])
        return [
            Swap(number=one["number"], text=wording[one["level"]][one["number"] - 1], attribute=about.attributes[0])
            for one in record["originals"]
        ]
    listed = "\n".join(f"{one['number']}. {one['text']}" for one in record["originals"])
    prompt = writer.asked("confuse", record, Swaps, captions=listed, before=record["before"])
    said = answered(context, prompt, Swaps)
    if said.answer is None:
        return Drop(record, DECLINED, said.declined)
    if said.answer.unsuitable or not said.answer.captions:
        return Drop(record, UNSUITABLE, said.answer.unsuitable)
    return said.answer.captions


def _measured(swap: Swap, originals: Mapping[int, str]) -> dict[str, Any]:
    before = originals.get(swap.number, "")
    text = " ".join(swap.text.split())
    return {"text": text, "attribute": swap.attribute, "edits": changed(before, text), "original": before}


def changed(before: str, text: str) -> int:
    """How many words of a caption were put in, taken out or replaced; case and marks are no words."""
    return token_edits(words(before.casefold()), words(text.casefold()))


def _fault(made: Mapping[str, Any], how: Confusing) -> str:
    before = words(made["original"])
    if not before:
        return UNKNOWN
    if not words(made["text"]):
        return EMPTY
    if made["attribute"] not in subtask(made["subtask"]).attributes:
        return STRANGE
    if not made["edits"]:
        return UNCHANGED
    return REWRITTEN if made["edits"] > how.most_changed * max(len(before), 1) else ""


def token_edits(one: Sequence[str], other: Sequence[str]) -> int:
    """The fewest words to put in, take out or replace that make one of the other (Levenshtein, over words)."""
    row = list(range(len(other) + 1))
    for at, word in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, against in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (word != against))
    return row[-1]
