"""BioTrove's metadata, of which as many photos are drawn as are wanted, and of those some to be captioned.

The draw depends on the seed and the photos' numbers alone: in whatever order and files they come, the same are drawn,
and a smaller draw is part of a larger one. The metadata are read twice, a batch at a time; memory is 9 bytes for each
photo that is drawn. (QuARI, section 4: 5M drawn, 500k captioned.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from eyespot.curate.pair_set import CAPTIONS, PICTURES, TO_CAPTION, LeftOut, PairRow, digest
from eyespot.curate.templates import Templates
from eyespot.storage.systems import relative_path
from eyespot.storage.tables import opened_parquet
from eyespot.storage.text_files import refuse
from eyespot.types import NothingFound, Progress

_pc: Any = pyarrow.compute
ID = "photo_id"
TAXONOMY = ("scientificName", "kingdom", "phylum", "class", "order", "family", "genus", "species", "common_name")
LABELS = (ID, *TAXONOMY, "photo_url")
BATCH = 1 << 16
PENDING = 1 << 20  # keys that wait to be sorted in, at least

Keys = NDArray[np.uint64]


@dataclass(frozen=True)
class Draw:
    """How many photos, how many of them somebody is to caption, and the lot."""

    count: int = 5_000_000
    captioned: int = 500_000
    seed: int = 0


@dataclass
class BioTrove:
    """Parquet files of metadata, and the folder where the photos are or will be as `PHOTO_ID.jpg`.

    The photos to caption are listed in a table of their own; the others get a sentence made of their labels.
    """

    files: Sequence[Path]
    images: Path
    out: Path
    draw: Draw = Draw()
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
        return {**asdict(self.draw), **places}

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Draw among all photos; those of parts made before are taken. Raises `NothingFound` if there is no photo."""
        waiting = [self._drawn]
        for at, file in enumerate(self.files):
            tell("files drawn from", at, len(self.files))
            for numbers in _numbers(file):
                without = np.array([int(one) for one in self.without if one.isdigit()], np.int64)
                keys = mixed(numbers[~np.isin(numbers, without)], self.draw.seed)
                waiting.append(keys)
                if sum(map(len, waiting)) >= 2 * max(len(waiting[0]), PENDING):
                    waiting = [self._lowest(waiting)]
        self._drawn = self._lowest(waiting)
        self._taken = np.zeros(len(self._drawn), bool)
        if not len(self._drawn):
            raise NothingFound(f"{self.files[0]} has no photo to draw")
        for part in done:
            for numbers in _numbers(part / PICTURES):
                at_once, _ = self._places(mixed(numbers, self.draw.seed))
                self._taken[at_once] = True

    def _lowest(self, keys: Sequence[Keys]) -> Keys:
        return np.unique(np.concatenate(keys))[: self.draw.count]

    def _places(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where keys stand, or would stand, among the drawn, and which of them are; both (n,)."""
        at = np.minimum(np.searchsorted(self._drawn, keys), len(self._drawn) - 1)
        return at, self._drawn[at] == keys

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """The photos drawn of a file, each the first time that it stands anywhere."""
        folder = relative_path(self.images, self.out / file.stem)
        with opened_parquet(file) as opened:
            names = [name for name in LABELS if name in opened.schema_arrow.names]
            templates = Templates.over(names, {}, self.draw.seed)
            for batch in _batches(file, opened, names):
                rows, places = self._take(file, batch)
                for facts, place in zip(batch.take(pa.array(rows)).to_pylist(), places.tolist(), strict=True):
                    name = f"{facts[ID]}.jpg"
                    listed = {"file_name": f"{folder}/{name}", **facts}
                    yield PairRow(PICTURES, listed)
                    if place < self.draw.captioned:
                        yield PairRow(TO_CAPTION, listed)
                    elif caption := templates.caption({"id": str(facts[ID]), **facts}):
                        yield PairRow(CAPTIONS, {"file_name": name, "caption": caption})
                    else:
                        yield LeftOut(f"photo {facts[ID]}", "has no label to make a caption of")

    def _take(self, file: Path, batch: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of a batch that are drawn and not taken yet, and their places among the drawn."""
        keys = mixed(_whole(file, batch.column(ID)), self.draw.seed)
        there = np.flatnonzero(batch.column(ID).is_valid().to_numpy(zero_copy_only=False))
        at, drawn = self._places(keys)
        fresh = drawn & ~self._taken[at]
        places, first = np.unique(at[fresh], return_index=True)
        order = np.argsort(first)
        self._taken[places] = True
        return there[fresh][first[order]], places[order]


def mixed(numbers: NDArray[np.int64], seed: int) -> Keys:
    """A key for each number, (n,): as if drawn at random, and no two numbers have the same.

    Steele, Lea and Flood's SplitMix64, whose state is the number and the seed.
    """
    start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    keys = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


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
