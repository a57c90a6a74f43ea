"""COCO captions, RMIR sets and BioTrove as they are published, read into pairs to train on.

COCO: `captions_train2017.json` and its like, about five sentences a picture. The file is read twice, an element at a
time, since `images` may stand before `annotations`; captions stay in memory.

RMIR: a set's questions with their pictures, and the pictures that answer them. Of one split alone, so that what is
tested was never seen. A question with several answers gives a pair for each.

BioTrove: its metadata, of which as many photos are drawn as are wanted, and of those some to be captioned. The draw
depends on the seed and the photos' numbers alone: in whatever order and files they come, the same are drawn, and a
smaller draw is part of a larger one. The metadata are read twice, a batch at a time; memory is 9 bytes for each photo
that is drawn. (QuARI, section 4: 5M drawn, 500k captioned.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from eyespot.curate.pair_set import CAPTIONS, LEFT_OUT, PICTURES, TO_CAPTION, LeftOut, PairRow, digest
from eyespot.curate.templates import Templates
from eyespot.kernels.kmeans import GOLDEN, mixed
from eyespot.photos.json_lists import lists_of
from eyespot.runs import rmir
from eyespot.storage.tables import opened_parquet
from eyespot.storage.text_files import id_of, refuse
from eyespot.types import NothingFound, Progress, UsageError


@dataclass(frozen=True)
class Coco:
    """Files of captions, and the folder where their pictures lie. `without`: ids of images that give no pair.

    train2017 is train2014 and val2014 less 5,000 images, so it holds most of the 5,000 images of val2014 that are the
    usual test set: leave those out by their ids.
    """

    files: Sequence[Path]
    images: Path
    out: Path
    without: frozenset[str] = frozenset()

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """A list of pictures, and their captions."""
        return {PICTURES: ("file_name", "image_id"), CAPTIONS: ("file_name", "caption")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Where the pictures lie, and which are left out."""
        return {"images": str(self.images.absolute()), "without": digest(self.without)}

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Each image in its order, with its captions in theirs."""
        try:
            texts: dict[str, list[str]] = {}  # by image
            for element in _elements(file, "annotations"):
                fields = element if isinstance(element, dict) else {}
                image_id, text = id_of(fields.get("image_id")), " ".join(str(fields.get("caption") or "").split())
                if image_id and text:
                    texts.setdefault(image_id, []).append(text)
            folder = os.path.relpath(self.images, self.out / file.stem)
            for number, image in enumerate(_elements(file, "images"), 1):
                id, name = (image.get("id"), image.get("file_name")) if isinstance(image, dict) else (None, None)
                captions = texts.pop(id_of(id) or "", [])
                if not isinstance(name, str) or not name or id_of(id) is None:
                    yield LeftOut(f"image {number}", "has no id or no file_name")
                elif str(id) in self.without:
                    yield LeftOut(f"image {id}", LEFT_OUT)
                elif not captions:
                    yield LeftOut(f"image {id}", "has no caption")
                else:
                    yield PairRow(PICTURES, {"file_name": f"{folder}/{name}", "image_id": str(id)})
                    yield from (PairRow(CAPTIONS, {"file_name": name, "caption": one}) for one in captions)
        except (ValueError, OSError) as error:
            refuse(file, "", f"is not COCO JSON ({error})")
        yield from (LeftOut(f"image {id}", "is not listed among the images") for id in texts)


def _elements(file: Path, wanted: str) -> Iterator[Any]:
    for key, elements in lists_of(file):
        if key == wanted and elements is not None:
            yield from elements


@dataclass(frozen=True)
class Rmir:
    """The folder of a set, and which split of it. `without`: ids of queries that give no pair."""

    folder: Path
    split: str = "train"
    without: frozenset[str] = frozenset()

    @property
    def files(self) -> Sequence[Path]:
        """The judgements, which make the one part; `UsageError` if the folder holds no set."""
        if not rmir.is_layout(self.folder):
            raise UsageError(f"{self.folder} holds no RMIR set; name the folder with its queries, qrels and pool")
        return [rmir.place(self.folder, "qrels")]

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The picture that answers, the question, and the picture that it is asked with."""
        return {CAPTIONS: ("file_name", "caption", "asked_with")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Which set, which split, and what is left out."""
        return {"set": str(self.folder.absolute()), "split": self.split, "without": digest(self.without)}

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Queries in the order of the set, the answers of each in theirs; `UsageError` for a split it does not have."""
        judged = rmir.read(self.folder)
        splits = {str(facts.get("split")) for facts in judged.queries.values()}
        if self.split not in splits:
            raise UsageError(f"{self.folder} has no split {self.split!r}; there are: {', '.join(sorted(splits))}")
        for query, facts in judged.queries.items():
            if facts.get("split") == self.split:
                grades = judged.qrels.grades[query]
                answers = [image for image, grade in grades.items() if grade > 0]
                if query in self.without:
                    yield LeftOut(f"query {query}", LEFT_OUT)
                elif not answers:
                    yield LeftOut(f"query {query}", "has no picture that answers it")
                for pairs_image in answers if query not in self.without else ():
                    yield PairRow(
                        CAPTIONS, {"file_name": pairs_image, "caption": facts["text"], "asked_with": facts["image"]}
                    )


# -- BioTrove -------------------------------------------------------------------------------------------------------


_pc: Any = pyarrow.compute
ID = "photo_id"
TAXONOMY = ("scientificName", "kingdom", "phylum", "class", "order", "family", "genus", "species", "common_name")
LABELS = (ID, *TAXONOMY, "photo_url")
BATCH = 1 << 16
PENDING = 1 << 20  # keys that wait to be sorted in, at least

Keys = NDArray[np.uint64]


@dataclass
class BioTrove:
    """Parquet files of metadata, and the folder where the photos are or will be as `PHOTO_ID.jpg`.

    Of `count` photos that the seed draws, `captioned` are listed in a table of their own, for somebody to caption; the
    others get a sentence made of their labels.
    """

    files: Sequence[Path]
    images: Path
    out: Path
    count: int = 5_000_000
    captioned: int = 500_000
    seed: int = 0
    without: frozenset[str] = frozenset()
    _drawn: Keys = field(default_factory=lambda: np.zeros(0, np.uint64), init=False, repr=False)  # ascending
    _taken: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool), init=False, repr=False)

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Both lists of pictures have all labels."""
        listed = ("file_name", *LABELS)
        return {PICTURES: listed, TO_CAPTION: listed, CAPTIONS: ("file_name", "caption")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The draw, the files drawn from, and where the photos lie."""
        files = digest(f"{file.name} {file.stat().st_size}" for file in self.files if file.is_file())
        places = {"files": files, "images": str(self.images.absolute()), "without": digest(self.without)}
        return {"count": self.count, "captioned": self.captioned, "seed": self.seed, **places}

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Draw among all photos; those of parts made before are taken. Raises `NothingFound` if there is no photo."""
        waiting = [self._drawn]
        for at, file in enumerate(self.files):
            tell("files drawn from", at, len(self.files))
            for numbers in _numbers(file):
                without = np.array([int(one) for one in self.without if one.isdigit()], np.int64)
                keys = keys_of(numbers[~np.isin(numbers, without)], self.seed)
                waiting.append(keys)
                if sum(map(len, waiting)) >= 2 * max(len(waiting[0]), PENDING):
                    waiting = [self._lowest(waiting)]
        self._drawn = self._lowest(waiting)
        self._taken = np.zeros(len(self._drawn), bool)
        if not len(self._drawn):
            raise NothingFound(f"{self.files[0]} has no photo to draw")
        for part in done:
            for numbers in _numbers(part / PICTURES):
                at_once, _ = self._places(keys_of(numbers, self.seed))
                self._taken[at_once] = True

    def _lowest(self, keys: Sequence[Keys]) -> Keys:
        return np.unique(np.concatenate(keys))[: self.count]

    def _places(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where keys stand, or would stand, among the drawn, and which of them are; both (n,)."""
        at = np.minimum(np.searchsorted(self._drawn, keys), len(self._drawn) - 1)
        return at, self._drawn[at] == keys

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """The photos drawn of a file, each the first time that it stands anywhere."""
        folder = os.path.relpath(self.images, self.out / file.stem)
        with opened_parquet(file) as opened:
            names = [name for name in LABELS if name in opened.schema_arrow.names]
            templates = Templates.over(names, {}, seed=self.seed)
            for batch in _batches(file, opened, names):
                # The rows of a batch that are drawn and not taken yet, and their places among the drawn
                keys = keys_of(_whole(file, batch.column(ID)), self.seed)
                there = np.flatnonzero(batch.column(ID).is_valid().to_numpy(zero_copy_only=False))
                at, drawn = self._places(keys)
                fresh = drawn & ~self._taken[at]
                unique, first = np.unique(at[fresh], return_index=True)
                order = np.argsort(first)
                self._taken[unique] = True
                rows, places = there[fresh][first[order]], unique[order]
                for facts, place in zip(batch.take(pa.array(rows)).to_pylist(), places.tolist(), strict=True):
                    name = f"{facts[ID]}.jpg"
                    listed = {"file_name": f"{folder}/{name}", **facts}
                    yield PairRow(PICTURES, listed)
                    if place < self.captioned:
                        yield PairRow(TO_CAPTION, listed)
                    elif caption := templates.caption({"id": str(facts[ID]), **facts}):
                        yield PairRow(CAPTIONS, {"file_name": name, "caption": caption})
                    else:
                        yield LeftOut(f"photo {facts[ID]}", "has no label to make a caption of")


def keys_of(numbers: NDArray[np.int64], seed: int) -> Keys:
    """A key for each number, (n,): as if drawn at random, and no two numbers have the same."""
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return mixed(numbers.astype(np.uint64) * GOLDEN + start)


def _numbers(file: Path) -> Iterator[NDArray[np.int64]]:
    """The photos' numbers, a batch at a time; what has none is passed over."""
    with opened_parquet(file) as opened:
        if ID not in opened.schema_arrow.names:
            refuse(file, "", f"has no column {ID}; it has: {', '.join(opened.schema_arrow.names)}")
        yield from (_whole(file, batch.column(ID)) for batch in _batches(file, opened, [ID]))


def _batches(file: Path, opened: Any, names: Sequence[str]) -> Iterator[Any]:
    try:
        yield from opened.iter_batches(BATCH, columns=names)
    except (pa.ArrowException, OSError) as error:
        refuse(file, "", f"cannot be read to its end ({error})")


def _whole(file: Path, column: Any) -> NDArray[np.int64]:
    try:
        numbers: NDArray[np.int64] = _pc.cast(column.drop_null(), pa.int64()).to_numpy()
        return numbers
    except pa.ArrowException as error:
        refuse(file, "", f"has a {ID} that is not a whole number ({error})")
