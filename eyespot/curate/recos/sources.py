"""Where pictures come from: galleries of photos, and one of drawn pictures that grows beside the steps.

Each gallery is a source; a picture is confused with, and its pool made larger by, others of its own source. All are
searched in one space of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eyespot import rooms
from eyespot.curate._attribution import attributions
from eyespot.curate._world import PhotoWorld
from eyespot.gallery.formats.exported import names_owner
from eyespot.gallery.photos.labels import MEASURED
from eyespot.pipelines import Record
from eyespot.storage.files import write_whole
from eyespot.types import Encoder, EyespotError, Mask, UsageError, Vectors

DRAWN = "drawn"
STARTER = "starter"
_PRIVATE = MEASURED | {"latitude", "longitude", "taken", "camera"}
_FILED = {"source", "url", "licence", "license", "split"}  # of the file, as owners are: nothing that can be seen


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
        """What steps that look at vectors say among their `inputs`."""
        told = {name: PhotoWorld(path, self.work).digest for name, path in self.galleries.items()}
        return told | {"space": self.encoder.space.digest}

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of every source."""
        first = next(iter(self.galleries.values()), None)
        if first is None:
            found: Encoder = rooms.load("encoders", self.named or STARTER)
            return found
        return PhotoWorld(first, self.work).collection(self.named).encoder

    def world(self, name: str) -> PhotoWorld:
        """A source, ready to be searched; the drawn one is indexed first."""
        with self._lock:
            if name not in self._worlds:
                if name == DRAWN:
                    from eyespot.gallery.indexing import Options, index

                    folder = self.work / DRAWN
                    (folder / "pictures").mkdir(parents=True, exist_ok=True)
                    index(folder / "gallery", [str(folder / "pictures")], [self.encoder], Options(workers=2))
                    drawn = PhotoWorld(folder / "gallery", self.work)
                else:
                    drawn = self._photos(name)
                self._worlds[name] = drawn
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
        found = []
        for record in records:
            name = record["source"]
            image = record["image"]
            rows, view = self.rows(name), self.world(name).view(self.named)
            if image not in rows:
                raise EyespotError(
                    f"the picture {image} is no longer in {name}; run `eyespot index` on it, or begin in a new folder"
                )
            shard = int(np.searchsorted(view.starts, rows[image], side="right")) - 1
            vector = view.blocks[shard][rows[image] - int(view.starts[shard])]
            found.append(vector)
        return np.array(found, np.float32).reshape(len(found), self.encoder.space.dim)

    def nearest(self, record: Record, count: int, mask: Mask) -> list[tuple[int, float]]:
        """Rows of its source that look most like a record's picture, with their cosines, best first."""
        count = min(count, int(mask.sum()))
        if not count:
            return []
        index = self.world(record["source"]).index(self.named)
        found = index.search(self.vectors([record]), count, mask)
        return list(zip(found.rows[0].tolist(), found.scores[0].tolist(), strict=True))

    def photos(self, name: str, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What a record says of these rows' pictures: image, source, path and facts (labels of what it shows)."""
        told = self.world(name).view(self.named).facts(rows)
        return [
            {
                "image": one["id"],
                "source": name,
                "path": str(one["path"]),
                "facts": {key: value for key, value in one.items() if value is not None and _of_the_picture(key)},
            }
            for one in told
        ]

    def attributions(self, records: Iterable[Record]) -> dict[str, dict[str, str | None]]:
        """Licence, author and url of photos by image; drawn pictures are the maker's own."""
        by_source: dict[str, list[str]] = {}
        for record in records:
            by_source.setdefault(record["source"], []).append(record["image"])
        by_source.pop(DRAWN, None)
        found = [attributions(self.world(name), images, self.named) for name, images in by_source.items()]
        return {image: its for one in found for image, its in one.items()}

    def place(self, record: Record) -> Path:
        """Where the picture of a record lies."""
        return self.work / record["path"] if record["source"] == DRAWN else Path(record["path"])

    def draw(self, record: Record, data: bytes) -> str:
        """Put a drawn picture's file in place; its path, relative to the work folder."""
        path = Path(DRAWN) / "pictures" / record["subtask"] / f"{record['id']}.jpg"
        place = self.work / path
        if not place.exists() or place.read_bytes() != data:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, lambda file: file.write(data))
        return str(path.as_posix())

    def _photos(self, name: str) -> PhotoWorld:
        if name not in self.galleries:
            raise UsageError(f"the recipe names no gallery {name!r}; it has: {', '.join(self.galleries) or 'none'}")
        world = PhotoWorld(self.galleries[name], self.work)
        if world.view(self.named).space.digest != self.encoder.space.digest:
            raise UsageError(
                f"gallery {name} has no vectors of {self.encoder.space.encoder}; add them with: eyespot index"
            )
        return world


def _of_the_picture(column: str) -> bool:
    """Whether a label may tell what is seen. "G-Man", who took it, is no man; "under its owner's terms" no place."""
    return column not in _PRIVATE | _FILED and not names_owner(column)
