"""What the steps of a pipeline share: the gallery of photos, the encoders, and vectors of texts kept on the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.gallery.items_table import read_items
from eyespot.gallery.view import View
from eyespot.kernels.rows import RowBlocks
from eyespot.llms.fences import filled
from eyespot.parallel import batches
from eyespot.photos.hashes import picture_hashes
from eyespot.photos.pictures import BadPicture
from eyespot.photos.places import picture_of
from eyespot.pipelines import Client, CostLimits, Declared, Recipe, RunOptions
from eyespot.pipelines.prompts import PROMPT, Models, expected, template
from eyespot.pipelines.step import digest_of_json
from eyespot.search.collection import Collection
from eyespot.storage.atomic import write_whole
from eyespot.storage.digests import DIGESTS
from eyespot.storage.systems import usable_cores
from eyespot.types import Encoder, UsageError, Vectors

AT_ONCE = 1024  # texts whose vectors are kept together: what a kill costs


@dataclass
class PhotoWorld:
    """The photos that a set is made from. `work` is where vectors of texts are kept."""

    gallery: Path
    work: Path
    _collections: dict[str | None, Collection] = field(default_factory=dict, repr=False)
    _encoders: dict[str, Encoder] = field(default_factory=dict, repr=False)

    @property
    def digest(self) -> str:
        """Changes when photos, labels or vectors of the gallery do; not when somebody searches in it."""
        files = sorted(path for path in (self.gallery / "shards").rglob("*") if path.is_file() and path.name != DIGESTS)
        states = ((path.relative_to(self.gallery).as_posix(), path.stat()) for path in files)
        return digest_of_json([[name, status.st_size, status.st_mtime_ns] for name, status in states])

    def view(self, encoder: str | None = None) -> View:
        """Rows with vectors of an encoder, of the gallery's own where none is named; `UsageError` if it has none."""
        return self.collection(encoder).view

    def rows(self, encoder: str | None) -> dict[str, int]:
        """The row of each photo in a space; two spaces of a gallery may number them differently."""
        view = self.view(encoder)
        ids = [str(id) for shard in view.shards for id in read_items(shard, ["id"])["id"].to_pylist()]
        return {id: row for row, (id, live) in enumerate(zip(ids, view.live.tolist(), strict=True)) if live}

    def vectors(self, rows: Sequence[int], encoder: str | None) -> Vectors:
        """The vectors of rows of a space, (rows, dim); zeros for row -1."""
        view = self.view(encoder)
        found: Vectors = np.zeros((len(rows), view.space.dim), np.float32)
        numbers = np.asarray(rows, np.int64)
        found[numbers >= 0] = RowBlocks(view.blocks).gather(numbers[numbers >= 0])
        return found

    def texts(self, texts: Sequence[str], encoder: str | None) -> Vectors:
        """The vectors of texts in a space of pictures, (texts, dim)."""
        return self._encoded(texts, self.collection(encoder).encoder)

    def descriptions(self, texts: Sequence[str], encoder: str) -> Vectors:
        """The vectors of texts by an encoder that need not have seen the gallery, (texts, dim)."""
        if encoder not in self._encoders:
            self._encoders[encoder] = rooms.load("encoders", encoder)
        return self._encoded(texts, self._encoders[encoder])

    def collection(self, encoder: str | None = None) -> Collection:
        """The gallery in the space of an encoder, ready to be searched."""
        if encoder not in self._collections:
            self._collections[encoder] = Collection(self.gallery, encoder)
        return self._collections[encoder]

    def hashes(self, photos: Sequence[tuple[str, str]]) -> NDArray[np.uint64]:
        """The perceptual hashes of photos by id and path, (photos, 8); distinct numbers for one that cannot be read."""
        parts = [np.zeros((0, 8), np.uint64)]
        for some in batches(photos, AT_ONCE):
            parts.append(
                self._stored(("hashes", *(id for id, _ in some)), partial(_hashes, [path for _, path in some]))
            )
        return np.concatenate(parts)

    def _encoded(self, texts: Sequence[str], encoder: Encoder) -> Vectors:
        parts = [np.zeros((0, encoder.space.dim), np.float32)]
        for some in batches(texts, AT_ONCE):
            parts.append(self._stored((encoder.space.digest, *some), partial(encoder.encode_texts, some)))
        return np.concatenate(parts)

    def _stored(self, names: Sequence[str], make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The array of these names, made if the disk does not have it."""
        name = hashlib.sha256("\x1f".join(names).encode("utf-8", "replace")).hexdigest()[:32]
        place = self.work / "vectors" / f"{name}.npy"
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, partial(np.save, arr=make(), allow_pickle=False))
        stored: NDArray[Any] = np.load(place, allow_pickle=False)
        return stored


@dataclass(frozen=True)
class SetPipeline:
    """A recipe's steps, whose work lies under `out`; `clients` answer for models that run offline."""

    recipe: Recipe
    out: Path
    clients: ClassVar[Mapping[str, Client]] = {}

    @property
    def work(self) -> Path:
        """The folder of the steps."""
        return self.out / "work"

    def running(
        self,
        limits: CostLimits | None = None,
        retry_failed: bool = False,
        note: Callable[[str], None] = lambda _: None,
        *,
        batch: bool = False,
    ) -> RunOptions:
        """How they are run: by the recipe's models, within its budget or another; `note` gets what these refuse."""
        recipe, models = self.recipe, Models(self.clients, strict=self.recipe.strict, note=note)
        return RunOptions(
            recipe.seed, limits or recipe.limits, models, retry_failed=retry_failed, strict=recipe.strict, batch=batch
        )

    def check(self, limits: CostLimits | None = None) -> None:
        """`UsageError` for a model that cannot be asked within its budget or another, before anything is done."""
        Models(self.clients).check(self.recipe.models, limits or self.recipe.limits)


@dataclass(frozen=True)
class NoSettings:
    """A step without settings."""


@dataclass(frozen=True)
class Workers:
    """How many records are asked about at once."""

    workers: int = 8


def one_model(declared: Declared, ours: str, **words: str) -> tuple[Mapping[str, Any], str, dict[str, Any]]:
    """The one model of a step, its prompt (that of the recipe, or else ours), and the fields that depend on them.

    `words` fill gaps of the prompt that are the same for all records.
    """
    if len(declared.models) != 1:
        raise UsageError(f'the step {declared.name} asks one model; write model = "NAME" of one under [models]')
    (model,) = declared.models.values()
    text = filled(template(declared, ours), {}, **words)
    # The number of requests at the same time changes no result
    settings = {key: value for key, value in declared.settings.items() if key != "workers"}
    return model, text, {"prompts": {PROMPT: text}, "settings": settings, "expects": expected(model, 1, text)}


def _hashes(paths: Sequence[str]) -> NDArray[np.uint64]:
    def hashes_of(path: str) -> NDArray[np.uint64]:
        try:
            return picture_hashes(picture_of(Path(path)))
        except (OSError, BadPicture):
            # Far from every other hash: a picture that cannot be read is not a copy of anything.
            return np.frombuffer(hashlib.sha512(path.encode("utf-8", "replace")).digest(), np.uint64)

    with ThreadPoolExecutor(usable_cores()) as pool:
        return np.stack(list(pool.map(hashes_of, paths)))
