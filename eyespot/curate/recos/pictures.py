"""The steps `draw`, `render` and `collect`: pictures of each sub-task, drawn, or photos by searches and labels.

Each gallery of photos is a source of pictures, and one of drawn pictures grows while the steps run. Confusing and
additional pictures come from the source of the original.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from itertools import chain, zip_longest
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eyespot import rooms
from eyespot.curate._world import PhotoWorld
from eyespot.curate.recos.subtasks import Collecting, Generator, Subtask, SubtaskPictures, subtask
from eyespot.curate.set_folder import attributions
from eyespot.formats.exporting import names_owner
from eyespot.gallery import filters
from eyespot.gallery.texts import BOXES, COLUMNS as TEXT_COLUMNS, READ_BY
from eyespot.photos.labels import MEASURED
from eyespot.photos.pictures import id_of
from eyespot.photos.provenance import COLUMNS as SOURCES
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import Encoder, EyespotError, Mask, NothingFound, UsageError, Vectors

SURE = 0.9  # the confidence from which a line counts
LETTERS = 3  # and digits, at least, of a line that a caption can quote


def writing_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a picture's record: its legible lines, and what read them; "" where nothing is or was read."""
    try:
        lines = [(str(text), float(confidence)) for text, confidence, *_ in json.loads(row.get(BOXES) or "[]")]
    except (TypeError, ValueError):  # a label of the same name with another type
        lines = []
    legible = [text for text, sure in lines if sure >= SURE and sum(map(str.isalnum, text)) >= LETTERS]
    return {"writing": "\n".join(legible), "read_by": str(row.get(READ_BY) or "")}


DRAWN = "drawn"
STARTER = "starter"
_PRIVATE = MEASURED | {"latitude", "longitude", "taken", "camera", *SOURCES}
_FILED = {"source", "url", "licence", "license", "split"}  # about the file, as owners are, not about what it shows
_NO_LABELS = _PRIVATE | _FILED | set(TEXT_COLUMNS)  # a sign that says "tower" shows no tower


@dataclass
class Sources:
    """The galleries of a recipe by their names; `work` is where drawn pictures lie."""

    work: Path
    galleries: Mapping[str, Path]
    named: str | None = None  # the encoder; None: the one that the first gallery was indexed with
    subtasks: Mapping[str, Subtask] = field(default_factory=dict)  # those of which the recipe says something
    captions: dict[str, Vectors] = field(default_factory=dict, repr=False)  # their vectors, which rounds share
    _lock: Lock = field(default_factory=Lock, repr=False)
    _worlds: dict[str, PhotoWorld] = field(default_factory=dict, repr=False)
    _rows: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if DRAWN in self.galleries:
            raise UsageError(f"a gallery cannot be called {DRAWN!r}, which drawn pictures are; name it otherwise")

    def subtask(self, name: str) -> Subtask:
        """The sub-task of this name, as the recipe has it."""
        return self.subtasks.get(name) or subtask(name)

    @property
    def digests(self) -> dict[str, str]:
        """The `inputs` of steps that read vectors."""
        digests = {name: PhotoWorld(path, self.work).digest for name, path in self.galleries.items()}
        return digests | {"space": self.encoder.space.digest}

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of every source."""
        first = next(iter(self.galleries.values()), None)
        if first is None:
            encoder: Encoder = rooms.load("encoders", self.named or STARTER)
            return encoder
        return PhotoWorld(first, self.work).collection(self.named).encoder

    def world(self, name: str) -> PhotoWorld:
        """A source, ready to be searched; the drawn one is indexed first."""
        with self._lock:
            if name not in self._worlds and name == DRAWN:
                from eyespot.gallery.indexing import Options, index

                folder = self.work / DRAWN
                make_folder(folder / "pictures")
                index(folder / "gallery", [str(folder / "pictures")], [self.encoder], Options(workers=2))
                self._worlds[name] = PhotoWorld(folder / "gallery", self.work)
            elif name not in self._worlds:
                if name not in self.galleries:
                    there = ", ".join(self.galleries) or "none"
                    raise UsageError(f"the recipe names no gallery {name!r}; it has: {there}")
                world, space = PhotoWorld(self.galleries[name], self.work), self.encoder.space
                if world.view(self.named).space.digest != space.digest:
                    raise UsageError(f"gallery {name} has no vectors of {space.encoder}; add them with: eyespot index")
                self._worlds[name] = world
            return self._worlds[name]

    def rows(self, name: str) -> dict[str, int]:
        """The row of each picture of a source by its id."""
        world = self.world(name)
        with self._lock:
            if name not in self._rows:
                self._rows[name] = world.rows(self.named)
            return self._rows[name]

    def text(self, text: str) -> Vectors:
        """The unit vector of a caption, (dim,)."""
        encoder = self.encoder
        with self._lock:  # encoders are called from one thread at a time
            if text not in self.captions:
                self.captions[text] = encoder.encode_texts([text])[0]
            return self.captions[text]

    def vectors(self, records: Iterable[Record]) -> Vectors:
        """Unit vectors of the pictures of records, (records, dim)."""
        vectors = []
        for record in records:
            name, image = record["source"], record["image"]
            rows, world = self.rows(name), self.world(name)
            if image not in rows:
                raise EyespotError(f"{name} has the picture {image} no more; index it again, or start in a new folder")
            vectors.append(world.vectors([rows[image]], self.named)[0])
        return np.array(vectors, np.float32).reshape(len(vectors), self.encoder.space.dim)

    def nearest(self, record: Record, count: int, mask: Mask) -> list[tuple[int, float]]:
        """The rows of its source that look most like a record's picture, with their cosines, best first."""
        count = min(count, int(mask.sum()))
        if not count:
            return []
        nearest = self.world(record["source"]).collection(self.named).index.search(self.vectors([record]), count, mask)
        return list(zip(nearest.rows[0].tolist(), nearest.scores[0].tolist(), strict=True))

    def photos(self, name: str, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The fields of these rows' pictures: image, source, path, facts (labels of what they show), and writing."""
        pictures = []
        for row in self.world(name).view(self.named).facts(rows):
            # What a label may say of the picture. The photographer "G-Man" is not a man in it.
            facts = {
                key: value
                for key, value in row.items()
                if value is not None and key not in _NO_LABELS and not names_owner(key)
            }
            fields = {"image": row["id"], "source": name, "path": str(row["path"]), "facts": facts}
            pictures.append(fields | writing_of(row))
        return pictures

    def attributions(self, records: Iterable[Record]) -> dict[str, dict[str, str | None]]:
        """Licence, author and url of photos by image; drawn pictures are the maker's own."""
        by_source: dict[str, list[str]] = {}
        for record in records:
            by_source.setdefault(record["source"], []).append(record["image"])
        by_source.pop(DRAWN, None)
        rights: dict[str, dict[str, str | None]] = {}
        for name, images in by_source.items():
            rights |= attributions(self.world(name), images, self.named)
        return rights

    def place(self, record: Record) -> Path:
        """The file of a record's picture."""
        return self.work / record["path"] if record["source"] == DRAWN else Path(record["path"])

    def draw(self, record: Record, data: bytes) -> str:
        """Put a drawn picture's file in place; its path, relative to the work folder."""
        path = Path(DRAWN) / "pictures" / record["subtask"] / f"{record['id']}.jpg"
        place = self.work / path
        if not place.exists() or place.read_bytes() != data:
            make_folder(place.parent)
            write_whole(place, lambda file: file.write(data))
        return str(path.as_posix())


# -- steps ----------------------------------------------------------------------------------------------------------


UNDRAWN = "cannot be drawn"
AMBIGUOUS = "caption of two pictures"
TRIES = 40  # for each picture that is wanted
QUALITY = 92


@dataclass(frozen=True)
class DrawnCounts:
    """How many pictures of a sub-task are drawn: those of v0, and those they are confused with in v1 and v2."""

    subtasks: Mapping[str, int] = field(default_factory=lambda: {"code": 150, "numerical": 150, "translation": 150})


def generator_of(name: str) -> Generator:
    """The generator of a sub-task's pictures; `UsageError` if it is a sub-task of photos."""
    generator = subtask(name).generator
    if generator is None:
        raise UsageError(f"pictures of {name} are not drawn; collect photos for it")
    return generator


def sample_facts(context: Context, how: DrawnCounts) -> Iterator[Outcome]:
    """Pictures to draw, and a sibling of each, in which one digit, constant or word is another.

    No two of a sub-task have the same answer, or a caption would be true of both.
    """
    for name, count in how.subtasks.items():
        generator, answers, found = generator_of(name), set[str](), list[Record]()
        for number in range(count * TRIES):
            rng = context.rng(name, str(number))
            facts = generator.sample(rng)
            if len(found) < count and facts["answer"] not in answers:
                answers.add(facts["answer"])
                made: Record = {"id": f"{name}-{number:05d}", "subtask": name, "facts": facts, "version": "v0"}
                found.append(made)
                yield Added(made)
        for made in found:  # the answers of all are known by now
            rng, first = context.rng("sibling", str(made["id"])), made["facts"]
            several = (generator.sibling(first, rng) for _ in range(TRIES))
            other = next((one for one in several if one and one["answer"] not in answers), None)
            if other is not None:
                answers.add(other["answer"])
                yield Added({**made, "id": f"{made['id']}-sibling", "facts": other, "sibling": made["id"]})


def rendered(record: Record, context: Context, sources: Sources) -> Outcome:
    """The record with its picture on the disk."""
    generator, facts = generator_of(record["subtask"]), record["facts"]
    try:
        picture = generator.draw(facts, context.rng(record["id"]))
    except UsageError as error:
        return Failed(record, UNDRAWN, str(error))
    jpeg = BytesIO()
    picture.save(jpeg, "JPEG", quality=QUALITY)
    path = sources.draw(record, jpeg.getvalue())
    made = {**record, "image": id_of(jpeg.getvalue()), "source": DRAWN, "path": path}
    return Keep({**made, "stand_in": subtask(record["subtask"]).stand_in})


def wordings(pictures: Iterable[Record]) -> dict[str, set[str]]:
    """The images that each wording of drawn pictures is true of, at any level of detail; keys are `same_words`."""
    images: dict[str, set[str]] = {}
    for record in pictures:
        for text in chain(*generator_of(record["subtask"]).wording(record["facts"])):
            images.setdefault(same_words(text), set()).add(record["image"])
    return images


def same_words(text: str) -> str:
    """A caption without differences that do not count: case, spaces and the mark at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!?")


POOL = "left in the pool"


def collected(records: Records, context: Context, sources: Sources, how: Collecting) -> Iterator[Outcome]:
    """Drawn pictures up to the wanted number, first those with a sibling, the rest left for v1 and v2; and photos."""
    wanted, counts = how.wanted(), how.counts()
    chosen: set[str] = set()
    most = sum(counts.values())  # hits of a query: other sub-tasks have taken some
    drawn, paired = {record["subtask"]: None for record in records}, {record.get("sibling") for record in records}
    for name in drawn:
        ids = [record["id"] for record in records if record["subtask"] == name and "sibling" not in record]
        drawn_order = context.rng(name).sample(ids, len(ids))  # a larger count takes more, and these as well
        chosen.update(sorted(drawn_order, key=lambda id: id not in paired)[: counts.get(name, 0)])
    for record in records:
        yield Keep(record) if record["id"] in chosen else Drop(record, POOL)
    candidates: dict[str, list[Record]] = {}
    for name, pictures in wanted.items():
        if name not in drawn:
            galleries = pictures.galleries or sources.galleries
            lists = [_candidates(context, sources, how.described(name), pictures, one, most=most) for one in galleries]
            candidates[name] = list(_alternating(lists))
    taken = set[str]()  # a photo serves one sub-task alone, the first that takes it
    for name, photos in candidates.items():
        fresh = [photo for photo in photos if photo["image"] not in taken][: counts[name]]
        taken.update(photo["image"] for photo in fresh)
        fields = {"subtask": name, "version": "v0", "stand_in": wanted[name].stand_in}
        yield from (Added({"id": photo["image"], **photo, **fields}) for photo in fresh)


# -- photos -----------------------------------------------------------------------------------------------------


def _candidates(
    context: Context, sources: Sources, of: Subtask, wanted: SubtaskPictures, gallery: str, *, most: int
) -> list[Record]:
    """Photos of a gallery for a sub-task: by labels or writing in random order, or by searches, best first."""
    queries = wanted.queries or of.queries
    if wanted.words:
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, wanted.words))})(?!\w)", re.IGNORECASE)
        photos = _allowed(sources, wanted, gallery)
        fits = [
            it for it in photos if pattern.search(labels_of(it)) or (of.of_writing and pattern.search(it["writing"]))
        ]
        return context.rng(gallery, *wanted.words).sample(fits, len(fits))
    if of.of_writing and not wanted.queries:
        written = [photo for photo in _allowed(sources, wanted, gallery) if photo["writing"]]
        if written:
            return context.rng(gallery, "writing").sample(written, len(written))
    if not queries:
        drawn = "name it in the step draw, or " if of.generator is not None else ""
        raise UsageError(f"nothing says which photos are for {of.name}; {drawn}give it queries or words of labels")
    lists: list[Sequence[Record]] = []
    for query in queries:
        try:
            collection = sources.world(gallery).collection(sources.named)
            hits = collection.search(query, k=most, where=wanted.where, by="look")
        except NothingFound:
            continue
        rows = sources.rows(gallery)
        lists.append(sources.photos(gallery, [rows[hit.id] for hit in hits]))
    return list(_alternating(lists))


def _allowed(sources: Sources, wanted: SubtaskPictures, gallery: str) -> list[dict[str, Any]]:
    view = sources.world(gallery).view(sources.named)
    mask = view.live
    if wanted.where is not None:
        mask = mask & filters.mask(view.tables, filters.checked(wanted.where, list(filters.columns_of(view.tables))))
    return sources.photos(gallery, np.flatnonzero(mask).tolist())


def labels_of(record: Record) -> str:
    """All labels of a picture in one text."""
    return " . ".join(str(value) for value in record["facts"].values())


def _alternating(lists: Sequence[Sequence[Record]]) -> Iterator[Record]:
    """The first of each list, the second of each, and so on; a picture once."""
    seen: set[str] = set()
    for together in zip_longest(*lists):
        for photo in together:
            if photo is not None and photo["image"] not in seen:
                seen.add(photo["image"])
                yield photo
