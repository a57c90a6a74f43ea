"""Pairs of a text's and an image's vector, and the batches they are trained in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari.card import PairedTest
from eyespot.adapters.quari.mining import SemiPositives, distinct
from eyespot.types import NothingFound, UsageError, Vectors

if TYPE_CHECKING:
    import torch

    from eyespot.adapters.quari.training.loss import Targets

Ids = NDArray[np.int64]
SAMPLED = 64  # rows that stand for all in a fingerprint
AT_ONCE = 1 << 16  # rows looked over at once


@dataclass(frozen=True, eq=False)
class Pairs:
    """Texts (n, E), images (m, E), and the row of each text's image (n,); vectors of any length but 0.

    Without `of` text and image of a row belong together. `ids` (m,) name the images; rows of one id are one image.
    Without ids the same vector is the same image.
    """

    texts: Vectors
    images: Vectors
    of: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    ids: Sequence[str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        shapes = self.texts.shape, self.images.shape
        if not len(self.of) and shapes[0][:1] == shapes[1][:1]:
            object.__setattr__(self, "of", np.arange(len(self.texts)))
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
            raise UsageError(f"texts and images must be rows of one length, not {shapes[0]} and {shapes[1]}")
        if self.of.shape != shapes[0][:1]:
            raise UsageError(f"{shapes[0][0]} texts need as many rows of images, not {self.of.shape[0]}")
        if len(self.of) and not 0 <= int(self.of.min()) <= int(self.of.max()) < len(self.images):
            strange = int(self.of.min()) if int(self.of.min()) < 0 else int(self.of.max())
            raise UsageError(
                f"a text is of row {strange} of the images; their rows run from 0 to {len(self.images) - 1}"
            )
        if self.ids is not None and len(self.ids) != len(self.images):
            raise UsageError(f"{len(self.images)} images need as many ids, not {len(self.ids)}")

    def __len__(self) -> int:
        return len(self.of)

    @property
    def dim(self) -> int:
        """E, the length of the vectors."""
        return int(self.images.shape[1])

    @cached_property
    def image(self) -> Ids:
        """Which distinct image each row of images is, by its first row, (m,)."""
        return distinct(self.images, self.ids)

    @cached_property
    def subject(self) -> Ids:
        """For each text the first image of those that it is joined to by an image or by the same words, (n,)."""
        words, image = distinct(self.texts), self.image[self.of]
        subject = image
        while True:
            by_words = np.full(len(words), len(self.images))
            np.minimum.at(by_words, words, subject)
            by_image = np.full(len(self.images), len(self.images))
            np.minimum.at(by_image, image, by_words[words])
            if np.array_equal(by_image[image], subject):
                return subject
            subject = by_image[image]

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that tell these pairs from others."""
        hasher = hashlib.sha256(repr((self.texts.shape, self.images.shape)).encode())
        for array in (self.texts, self.images, self.of):
            rows = np.unique(np.linspace(0, max(0, len(array) - 1), min(SAMPLED, len(array))).astype(np.int64))
            hasher.update(np.ascontiguousarray(array[rows]).tobytes())
        return hasher.hexdigest()[:16]

    def with_direction(self) -> Pairs:
        """Without the pairs of which a vector is 0 or not finite; `NothingFound` if none is left."""
        keep = _has_direction(self.texts) & _has_direction(self.images)[self.of]
        if not keep.any():
            raise NothingFound("no pair has two vectors with a direction; embed the texts and images again")
        return self if keep.all() else self.only(np.flatnonzero(keep))

    @property
    def captioned_images(self) -> int:
        """How many distinct images have a text."""
        return len(np.unique(self.image[self.of]))

    def without(self, held_out: Pairs) -> Pairs:
        """Without the pairs whose image or whose words are held out; `UsageError` if none is left."""
        images = np.isin(self.image[self.of], self.image[self.rows_held(held_out)])
        rest = np.flatnonzero(~(images | _also_in(self.texts, held_out.texts)))
        if not len(rest):
            raise UsageError("every pair has an image or a text that is held out; hold out fewer pairs, or others")
        return self.only(rest)

    def rows_held(self, held_out: Pairs) -> Ids:
        """The rows of images that are an image of these held-out pairs: by the row, or by the id or the vector."""
        if held_out.images is self.images:
            return np.flatnonzero(np.isin(self.image, self.image[held_out.of]))
        shown = np.unique(held_out.of)
        same = _also_in(self.images, held_out.images[shown])
        if self.ids is not None and held_out.ids is not None:
            ids = {held_out.ids[row] for row in shown.tolist()}
            same |= np.fromiter((id in ids for id in self.ids), bool, len(self.ids))
        return np.flatnonzero(np.isin(self.image, self.image[same]))

    def only(self, rows: Ids) -> Pairs:
        """Some of the texts; all images stay, so that rows keep their meaning."""
        return Pairs(self.texts[rows], self.images, self.of[rows], self.ids)

    def split(self, share: float, most: int, seed: int) -> tuple[Pairs, Pairs]:
        """Training and held-out pairs that share neither an image nor a text.

        So many of the distinct images are held out, at most `most`: fewer where images with the same words, which stay
        together, are more than that.
        """
        images, first = np.unique(self.image[self.of], return_index=True)
        count = min(most, round(share * len(images)))
        subjects, sizes = np.unique(self.subject[first], return_counts=True)
        held: list[int] = []
        free = count if count < len(images) else 0
        for at in np.random.default_rng(seed).permutation(len(subjects)).tolist():
            if not free:
                break
            if sizes[at] <= free:
                free -= int(sizes[at])
                held.append(at)
        if not held:
            smallest, way_out = int(sizes.min()), "held-out pairs with --held-out"
            if len(images) == 1:
                raise UsageError(f"one image cannot be trained on and held out; give more pairs, or {way_out}")
            if smallest == len(images):
                together = f"all {smallest} images share words or a query, so none can be held out"
                raise UsageError(f"{together}; give pairs of other queries too, or {way_out}")
            apart = f"{count} of {len(images)} images are to be held out, and those that share words stay together"
            raise UsageError(f"{apart}, {smallest} or more; give a greater --held-out-share, or {way_out}")
        out = np.isin(self.subject, subjects[held])
        return self.only(np.flatnonzero(~out)), self.only(np.flatnonzero(out))


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a training is made of; `held_out` validates it, `semi` has a row for every image of the pairs.

    `test` is the paired test (`eyespot.search.paired_gain`) that a model has to pass against the frozen space. `crops`
    are vectors of altered copies of held-out images, as texts of the same images as `pairs`; None makes them by noise.
    """

    pairs: Pairs
    held_out: Pairs | None = None
    semi: SemiPositives | None = None
    test: PairedTest | None = None
    crops: Pairs | None = None

    def with_semi_positives(self, semi: SemiPositives) -> TrainingData:
        """With those mined over all images of the pairs, less the images that are held out."""
        held: Any = [] if self.held_out is None else self.pairs.rows_held(self.held_out)
        return replace(self, semi=semi.without(np.asarray(held, np.int64)))


def unit(rows: Any) -> Vectors:
    """Rows at unit length, float32; one of zeros stays."""
    wide = np.asarray(rows, np.float32)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=-1, keepdims=True), 1e-12))


def _also_in(rows: Vectors, others: Vectors) -> NDArray[np.bool_]:
    """Which of these rows are among the others, byte for byte in the narrower of the two types, (n,)."""
    narrow = min(rows.dtype, others.dtype, key=lambda kind: kind.itemsize)
    known = {_digest(row, narrow) for row in others}
    return np.fromiter((_digest(row, narrow) in known for row in rows), bool, len(rows))


def _digest(row: Vectors, kind: np.dtype[Any]) -> bytes:
    return hashlib.blake2b(row.astype(kind).tobytes(), digest_size=16).digest()


def _has_direction(rows: Any) -> NDArray[np.bool_]:
    good = np.zeros(len(rows), bool)
    for at in range(0, len(rows), AT_ONCE):
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(np.asarray(rows[at : at + AT_ONCE], np.float32), axis=1)
        good[at : at + AT_ONCE] = np.isfinite(lengths) & (lengths > 0)
    return good


# -- batches ------------------------------------------------------------------------------------------------


@dataclass
class TrainingBatches:
    """The batches of a training in their order, each by its number: epochs are shuffled by the seed and never mixed.

    The last pairs of an epoch that fill no batch wait for the next one, in another order.
    """

    material: TrainingData
    size: int
    semi_positives: int
    seed: int
    _drawn: tuple[int, Ids] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if len(self.material.pairs) < self.size:
            raise UsageError(f"{len(self.material.pairs)} pairs fill no batch of {self.size}; give a smaller --batch")
        semi, images = self.material.semi, len(self.material.pairs.images)
        if semi is not None and (len(semi.rows) != images or int(semi.rows.max(initial=-1)) >= images):
            raise UsageError(f"the semi-positives are of {len(semi.rows)} images, these are {images}; mine them again")

    @property
    def per_epoch(self) -> int:
        """Whole batches in an epoch."""
        return len(self.material.pairs) // self.size

    def rows(self, number: int) -> Ids:
        """Which pairs are in a batch, (size,)."""
        epoch, at = divmod(number, self.per_epoch)
        # One epoch's order at a time: at millions of pairs it is drawn once and not for every batch.
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, np.random.default_rng([self.seed, epoch]).permutation(len(self.material.pairs))
        return self._drawn[1][at * self.size : (at + 1) * self.size]

    def batch(self, number: int) -> tuple[torch.Tensor, Targets]:
        """The texts (size, E) and what they are to find."""
        rows = self.rows(number)
        import torch

        from eyespot.adapters.quari.training.loss import Targets

        pairs = self.material.pairs
        images = pairs.of[rows]
        if self.material.semi is None or not self.semi_positives:
            semi, weights = np.zeros((len(images), 0), np.int64), np.zeros((len(images), 0), np.float32)
        else:
            semi_rows = self.material.semi.rows[images, : self.semi_positives]
            weights = self.material.semi.weights[images, : self.semi_positives]
            semi = np.where(semi_rows < 0, images[:, None], semi_rows)
        image = pairs.image
        hidden = image[images][:, None] == image[images]  # (size, size)
        for column, weight in zip(image[semi].T, weights.T, strict=True):
            hidden |= (column[:, None] == image[images]) & (weight[:, None] > 0)
        np.fill_diagonal(hidden, False)
        vectors = unit(pairs.images[images]), unit(pairs.images[semi]), weights, hidden
        return torch.from_numpy(unit(pairs.texts[rows])), Targets(*(torch.from_numpy(one) for one in vectors))
