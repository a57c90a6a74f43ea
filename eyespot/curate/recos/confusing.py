"""The steps of v1, `pair` and `confuse`, and of v2, `expand` and `distinct`.

`confuse` writes a similar picture's captions: the first one's with the fewest words changed, one attribute swapped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyespot.curate.recos.captions import DECLINED, EMPTY, UNSUITABLE, CaptionWriter
from eyespot.curate.recos.pictures import DRAWN, Sources, generator_of, writing_of
from eyespot.curate.recos.subtasks import token_edits
from eyespot.gallery.groups.near_duplicates import Near, first_of_family, near_duplicates
from eyespot.llms.fences import one_line
from eyespot.photos.hashes import Hashes, picture_hashes
from eyespot.photos.pictures import BadPicture, open_picture
from eyespot.photos.places import read_again
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.pipelines.data_card.content import words
from eyespot.pipelines.prompts import AnswerForm, ask_model
from eyespot.types import Mask

ALONE, UNCHANGED, REWRITTEN = "no similar picture", "nothing is changed", "too much is changed"
STRANGE, UNKNOWN = "no attribute of the sub-task", "caption of no original"
FIRST_LOOK, LAST_LOOK = 20, 500  # nearest pictures to search for one that is not a copy
NOTHING: Hashes = np.zeros(8, np.uint64)


@dataclass(frozen=True)
class Copies(Near):
    """When a picture is a copy and not only similar: bits of its perceptual hash, cosine."""

    cosine: float = 0.97


@dataclass(frozen=True)
class Confusing:
    """At most this share of a caption's words may change."""

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


def paired(records: Records, context: Context, sources: Sources, near: Copies) -> Iterator[Outcome]:
    """All captions, and for each picture of v0 a record of the picture that it is to be confused with."""
    by_image: dict[str, list[Record]] = {}
    for record in records:
        by_image.setdefault(record["image"], []).append(record)
        yield Keep(record)
    search = LookalikeSearch(sources, near, drawn_by_image(context))
    search.used.update(by_image)
    for captions in by_image.values():
        first = captions[0]
        made = {"id": f"pair/{first['image']}", "of": first["image"], "of_path": first["path"]}
        originals = [{"number": r["number"], "text": r["text"], "level": r.get("level")} for r in captions]
        picture = search.most_similar(first)
        if picture is None:
            yield Drop({**made, "subtask": first["subtask"]}, ALONE, of=first["id"])
            continue
        fields = {"subtask": first["subtask"], "stand_in": first["stand_in"], "version": "v1", "originals": originals}
        yield Added({**made, **picture, **fields, "before": first["facts"]})


def drawn_by_image(context: Context) -> dict[str, Record]:
    """The drawn pictures by their image; of those that are alike bit for bit the last."""
    return {record["image"]: record for record in context.earlier["render"]}


@dataclass
class LookalikeSearch:
    """Looks for pictures of the same source, and of a drawn picture of the same sub-task, that are not used yet."""

    sources: Sources
    near: Near
    drawn: Mapping[str, Record]
    used: set[str] = field(default_factory=set)

    def most_similar(self, record: Record) -> Record | None:
        """The most similar picture that is not a copy of it, of a drawn one its sibling; used from now on."""
        for sibling in self.drawn.values() if record["source"] == DRAWN else ():
            if sibling.get("sibling") == record["id"].rpartition("/")[0] and sibling["image"] not in self.used:
                self.used.add(sibling["image"])
                names = ("image", "source", "path", "facts")
                return {name: sibling[name] for name in names} | writing_of({}) | {"cosine": None}
        mask = self.of_kind(record, but=self.used)
        for count in (FIRST_LOOK, LAST_LOOK):
            for row, cosine in self.sources.nearest(record, count, mask):
                picture = self.picture(record["source"], row)
                if cosine < self.near.cosine and not self._is_copy(record, picture):
                    self.used.add(picture["image"])
                    return {**picture, "cosine": round(cosine, 6)}
        return None

    def of_kind(self, record: Record, but: Iterable[str]) -> Mask:
        """The rows of its source that are of its kind, (rows,), without some images."""
        rows = self.sources.rows(record["source"])
        mask: Mask = self.sources.world(record["source"]).view(self.sources.named).live.copy()
        if record["source"] == DRAWN:
            mask[:] = False
            mask[[rows[image] for image, one in self.drawn.items() if one["subtask"] == record["subtask"]]] = True
        mask[[rows[image] for image in but if image in rows]] = False
        return mask

    def picture(self, source: str, row: int) -> dict[str, Any]:
        """The fields of a row's picture; a drawn picture has the facts it was drawn from."""
        (fields,) = self.sources.photos(source, [row])
        if source == DRAWN:
            drawn = self.drawn[fields["image"]]
            fields |= {"facts": drawn["facts"], "path": drawn["path"]}
        return fields

    def _is_copy(self, record: Record, other: Record) -> bool:
        if record["source"] == DRAWN:  # each was drawn for itself, and boards have similar hashes
            return False
        first, second = hashes_of(self.sources, record), hashes_of(self.sources, other)
        patterned = first.any() and second.any()  # plain and unreadable pictures are copies of nothing
        return bool(patterned and np.bitwise_count(first ^ second[0]).min() <= self.near.bits)


def hashes_of(sources: Sources, record: Record) -> Hashes:
    """The perceptual hashes of a record's picture, (8,); zeros if it cannot be read, which are like nothing."""
    try:
        return picture_hashes(open_picture(read_again(str(sources.place(record))), 32).image)
    except (OSError, BadPicture):
        return NOTHING


# -- captions ---------------------------------------------------------------------------------------------------


def confused(record: Record, context: Context, writer: CaptionWriter, how: Confusing) -> Iterator[Outcome]:
    """A caption as it is; for a pair a record for each confusing caption."""
    if "originals" not in record:
        yield Keep(record)
        return
    swaps, attributes = _swaps_of(record, context, writer), writer.sources.subtask(record["subtask"]).attributes
    if isinstance(swaps, Drop):
        yield swaps
        return
    originals = {original["number"]: original["text"] for original in record["originals"]}
    bare = {key: value for key, value in record.items() if key not in ("originals", "before")}
    for number, swap in enumerate(swaps, 1):
        before, text = originals.get(swap.number, ""), one_line(swap.text)
        fields = {"text": text, "attribute": swap.attribute, "edits": changed(before, text), "original": before}
        made = {**bare, **fields, "id": f"{record['image']}/{number}", "number": number}
        reason = fault_of(made, how, attributes)
        yield Drop(made, reason, made["text"], of=record["id"]) if reason else Keep(made, of=record["id"])


def _swaps_of(record: Record, context: Context, writer: CaptionWriter) -> list[Swap] | Drop:
    """Confusing captions by a model, or by the generator of a drawn picture, from the captions of the original."""
    if record["source"] == DRAWN:
        # The same wordings, of the other picture
        about = writer.sources.subtask(record["subtask"])
        wording = generator_of(record["subtask"]).wording(record["facts"])
        return [
            Swap(number=one["number"], text=wording[one["level"]][one["number"] - 1], attribute=about.attributes[0])
            for one in record["originals"]
        ]
    listed = [(original["number"], original["text"]) for original in record["originals"]]
    prompt = writer.prompt("confuse", record, Swaps, captions=listed, before=record["before"])
    reply = ask_model(context, prompt, Swaps)
    if reply.answer is None:
        return Drop(record, DECLINED, reply.declined)
    if reply.answer.unsuitable or not reply.answer.captions:
        return Drop(record, UNSUITABLE, reply.answer.unsuitable)
    return reply.answer.captions


def changed(before: str, text: str) -> int:
    """How many words of a caption were inserted, deleted or replaced; case and punctuation do not count."""
    return token_edits(words(before.casefold()), words(text.casefold()))


def fault_of(made: Mapping[str, Any], how: Confusing, attributes: Sequence[str]) -> str:
    """Why a confusing caption is dropped, whose sub-task has these attributes; "" if it is not."""
    before = words(made["original"])
    if not before:
        return UNKNOWN
    if not words(made["text"]):
        return EMPTY
    if made["attribute"] not in attributes:
        return STRANGE
    if not made["edits"]:
        return UNCHANGED
    return REWRITTEN if made["edits"] > how.most_changed * max(len(before), 1) else ""


COPY, UNREADABLE = "near-duplicate", "cannot be read"


@dataclass(frozen=True)
class Expanding:
    """How many similar pictures each picture of v1 adds; a picture that several would add comes once."""

    similar: int = 20


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


def distinct(records: Records, sources: Sources, near: Copies) -> Iterator[Outcome]:
    """All but the pictures of v2 that are copies of an earlier one; captions are never dropped here."""
    pictures: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: "text" not in record):
        pictures.setdefault(record["image"], record)
    # Drawn pictures are not copies: boards and sheets look alike and differ
    photos = [picture for picture in pictures.values() if picture["source"] != DRAWN]
    copies: dict[str, str] = {}  # the original of each, as images
    if len(photos) > 1:
        hashes = [
            [int(digits, 16) for digits in photo["hashes"]] if "hashes" in photo else hashes_of(sources, photo)
            for photo in photos
        ]
        pairs = near_duplicates(np.array(hashes, np.uint64), sources.vectors(photos), near)
        originals = [photos[row]["image"] for row in first_of_family(pairs, len(photos)).tolist()]
        copies = {photo["image"]: of for photo, of in zip(photos, originals, strict=True) if of != photo["image"]}
    for record in records:
        if "text" not in record and record["image"] in copies:
            yield Drop(record, COPY, f"of {copies[record['image']]}")
        else:
            yield Keep({key: value for key, value in record.items() if key != "hashes"})
