"""The sources of pictures: galleries of photos, and one of drawn pictures that grows while the steps run.

Each gallery is a source. Confusing pictures and additional pictures come from the same source as the original. All
sources are searched in the same space of vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eyespot import rooms
from eyespot.curate._world import PhotoWorld
from eyespot.curate.set_folder import attributions
from eyespot.formats.exporting import names_owner
from eyespot.gallery.texts import BOXES, READ_BY
from eyespot.gallery.texts import COLUMNS as TEXT_COLUMNS
from eyespot.photos.labels import MEASURED
from eyespot.photos.provenance import COLUMNS as SOURCES
from eyespot.pipelines import Record
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.types import Encoder, EyespotError, Mask, UsageError, Vectors

SURE = 0.9  # the confidence from which a line counts
LETTERS = 3  # and digits, at least, of a line that a caption can quote


def writing_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a picture's record: its legible lines, and what read them; "" where nothing is or was read."""
    try:
        lines = [(str(text), float(confidence)) for text, confidence, *_ in json.loads(row.get(BOXES) or "[]")]
    except (TypeError, ValueError):  # a label of the same name that is no such list
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
    _lock: Lock = field(default_factory=Lock, repr=False)
    _worlds: dict[str, PhotoWorld] = field(default_factory=dict, repr=False)
    _rows: dict[str, dict[str, int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if DRAWN in self.galleries:
            raise UsageError(f"a gallery cannot be called {DRAWN!r}, which drawn pictures are; name it otherwise")

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

    def texts(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of captions, (texts, dim)."""
        encoder = self.encoder
        with self._lock:  # encoders are called from one thread at a time
            return encoder.encode_texts(list(texts))

    def vectors(self, records: Iterable[Record]) -> Vectors:
        """Unit vectors of the pictures of records, (records, dim)."""
        vectors = []
        for record in records:
            name, image = record["source"], record["image"]
            rows, world = self.rows(name), self.world(name)
            if image not in rows:
                raise EyespotError(
                    f"the picture {image} is no longer in {name}; run `eyespot index` on it, or start in a new folder"
                )
            vectors.append(world.vectors([rows[image]], self.named)[0])
        return np.array(vectors, np.float32).reshape(len(vectors), self.encoder.space.dim)

    def nearest(self, record: Record, count: int, mask: Mask) -> list[tuple[int, float]]:
        """The rows of its source that look most like a record's picture, with their cosines, best first."""
        count = min(count, int(mask.sum()))
        if not count:
            return []
        nearest = self.world(record["source"]).index(self.named).search(self.vectors([record]), count, mask)
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
