"""Local features beside a gallery's vectors: for every shard a folder `local/STEM`, which is there whole or not at all.

shards/00000/local/sift-1f2e3d4c/descriptors.npy   (features, dim) uint8 or float16, memory-mapped
                                 keypoints.npy     (features, 2 to 4) float32
                                 offsets.npy       (rows + 1,) int64: row i has offsets[i] up to offsets[i + 1]
                                 note.toml         extractor, its settings, and rows without features with reasons
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.disk import way_out
from eyespot.gallery.files import refuse_damaged, whole
from eyespot.gallery.view import View
from eyespot.storage.arrays import append, begin
from eyespot.storage.atomic import new_folder
from eyespot.storage.digests import add_digests, damaged_at_a_glance, sound_digests
from eyespot.storage.text_files import toml_text
from eyespot.types import Extractor, LocalFeatures, UsageError

Settings: TypeAlias = Mapping[str, str | int | float]
GONE = ""  # the reason of a row whose picture was not there: nothing failed


@dataclass(frozen=True)
class LocalNote:
    """What was made: the extractor, its settings, how many features a picture may have, rows without and why."""

    extractor: str
    settings: Settings
    count: int
    missing: Mapping[int, str] = field(default_factory=dict)  # row → reason

    @classmethod
    def of(cls, extractor: Extractor, count: int) -> LocalNote:
        """The note of a set that is still to be made."""
        return cls(extractor.name, dict(extractor.settings), count)

    @property
    def stem(self) -> str:
        """The name of the set's folders: readable, and its own for every extractor, settings and count."""
        key = json.dumps([self.extractor, dict(self.settings), self.count], sort_keys=True)
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.extractor).strip("-")[-60:]
        return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def read_local_note(shard: Path, stem: str) -> LocalNote | None:
    """The note of a set in a shard, None if it is not there; `EyespotError` if it is damaged."""
    place = _folder(shard, stem) / "note.toml"
    if not place.exists() and place.name not in sound_digests(place.parent):
        return None
    refuse_damaged(place.parent, damaged_at_a_glance(place.parent, [place.name]), lambda _: way_out(shard))
    with whole(place, lambda: way_out(shard)):
        found = tomllib.loads(place.read_text(encoding="utf-8"))
        missing = dict(zip(found["missing"], found["reasons"], strict=True))
        return LocalNote(found["extractor"], found["settings"], found["count"], missing)


def local_sets(shards: Sequence[Path]) -> dict[str, list[LocalNote]]:
    """Every set by its stem, with the notes of the shards that have it."""
    folders = sorted(place for shard in shards for place in (shard / "local").glob("[!.]*"))
    found: dict[str, list[LocalNote]] = {}
    for folder in folders:
        if (note := read_local_note(folder.parent.parent, folder.name)) is not None:
            found.setdefault(folder.name, []).append(note)
    return found


@dataclass(frozen=True)
class DescribedShard:
    """One set of one shard, memory-mapped: row i is row i of the shard's facts."""

    shard: Path
    stem: str

    @cached_property
    def note(self) -> LocalNote | None:
        """What was made here; None if nothing was."""
        return read_local_note(self.shard, self.stem)

    def features(self, row: int) -> LocalFeatures | None:
        """What stands out in a row's picture; None if it was never described."""
        if self.note is None or row in self.note.missing:
            return None
        offsets, descriptors, keypoints = self._arrays
        part = slice(*offsets[row : row + 2].tolist())
        return LocalFeatures(descriptors[part], keypoints[part])

    def known(self, row: int) -> LocalFeatures | str:
        """The same, or why there is nothing."""
        return self.features(row) or ({} if self.note is None else self.note.missing).get(row, GONE)

    @cached_property
    def _arrays(self) -> list[NDArray[Any]]:
        folder, arrays = _folder(self.shard, self.stem), list[NDArray[Any]]()
        places = [folder / f"{name}.npy" for name in ("offsets", "descriptors", "keypoints")]
        damaged = damaged_at_a_glance(folder, [place.name for place in places])
        refuse_damaged(folder, damaged, lambda _: way_out(self.shard))
        for place in places:
            with whole(place, lambda: way_out(self.shard)):
                with place.open("rb") as file:
                    np.lib.format.read_magic(file)
                    is_empty = 0 in np.lib.format.read_array_header_1_0(file)[0]
                # No system maps nothing
                arrays.append(np.load(place, mmap_mode=None if is_empty else "r", allow_pickle=False))
        return arrays


class Described:
    """The local features of a view's pictures, by one extractor."""

    def __init__(self, view: View, stem: str) -> None:
        self.view = view
        self.shards = [DescribedShard(shard, stem) for shard in view.shards]
        self.note = next(shard.note for shard in self.shards if shard.note is not None)

    @classmethod
    def of(cls, view: View, extractor: str | None = None, settings: Settings | None = None) -> Described:
        """The set of an extractor, by its name or family (`dinov2`): the one of most shards, then of most features.

        One made with these settings comes before all others. Raises `UsageError` if there is none, or if several
        extractors made sets here and none is named.
        """
        found = {
            stem: notes
            for stem, notes in local_sets(view.shards).items()
            if extractor in (None, notes[0].extractor, notes[0].extractor.partition(":")[0])
        }
        names = {notes[0].extractor for notes in found.values()}
        if not names:
            made_by = f" of {extractor}" if extractor else ""
            way = f"eyespot describe --with {extractor or 'sift'} -g {view.gallery.path}"
            raise UsageError(f"{view.gallery.path} has no local descriptors{made_by}; make them with: {way}")
        if len(names) > 1:
            listed = ", ".join(sorted(names))
            raise UsageError(f"there are local descriptors of {listed}; choose, as in chamfer@{min(names)}")
        same = {stem: notes for stem, notes in found.items() if notes[0].settings == settings}
        return cls(view, max(same or found, key=lambda stem: (len(found[stem]), found[stem][0].count)))

    def features(self, images: Sequence[str]) -> list[LocalFeatures | None]:
        """For each image what stands out in it; None where it was not described or nothing does."""
        rows = []
        for row in self.view.rows_of(images):
            shard = int(np.searchsorted(self.view.starts, row, side="right")) - 1
            features = self.shards[shard].features(row - int(self.view.starts[shard]))
            rows.append(features if features is not None and len(features.descriptors) else None)
        return rows


# -- writing ------------------------------------------------------------------------------------------------


class FeatureWriter:
    """Features of a shard's rows on their way to the disk, row by row."""

    def __init__(self, folder: Path) -> None:
        self.descriptors = _Growing(folder / "descriptors.npy")
        self.keypoints = _Growing(folder / "keypoints.npy")
        self.ends = [0]
        self.missing: dict[int, str] = {}

    def add(self, features: LocalFeatures | str) -> None:
        """The next row: its features, or the reason why it has none."""
        if isinstance(features, str):
            self.missing[len(self.ends) - 1] = features
            self.ends.append(self.ends[-1])
        else:
            self.descriptors.add(features.descriptors)
            self.keypoints.add(features.keypoints)
            self.ends.append(self.ends[-1] + len(features.descriptors))


@contextmanager
def new_local(shard: Path, note: LocalNote) -> Iterator[FeatureWriter]:
    """A writer whose rows take the place of the shard's set when the block ends well."""
    with new_folder(_folder(shard, note.stem)) as building:
        writer = FeatureWriter(building)
        try:
            yield writer
        finally:
            writer.descriptors.close()
            writer.keypoints.close()
        np.save(building / "offsets.npy", np.array(writer.ends, np.int64), allow_pickle=False)
        missing = {"missing": list(writer.missing), "reasons": list(writer.missing.values())}
        record = {"extractor": note.extractor, "count": note.count, **missing, "settings": note.settings}
        (building / "note.toml").write_bytes(toml_text(record).encode())
        add_digests(building, [place.name for place in building.iterdir()])


class _Growing:
    """A .npy file whose rows come in parts; once their number is known, a header of the same length is put over it."""

    def __init__(self, place: Path) -> None:
        self.place, self.rows = place, 0
        self.kind, self.width = np.dtype(np.uint8), 0
        self.file: IO[bytes] | None = None

    def add(self, rows: NDArray[Any]) -> None:
        """More rows, (n, width)."""
        if self.file is None:
            self.kind, self.width, self.file = rows.dtype, rows.shape[1], self.place.open("wb")
            begin(self.file, (0, self.width), self.kind)
        if rows.dtype != self.kind or rows.shape[1:] != (self.width,):
            raise ValueError(f"rows of {rows.dtype} {rows.shape} after {self.kind} ({self.width},)")
        append(self.file, rows)
        self.rows += len(rows)

    def close(self) -> None:
        """Write the true number of rows."""
        with self.file or self.place.open("wb") as file:
            file.seek(0)  # numpy leaves room in a header for any number of rows, for this very use
            begin(file, (self.rows, self.width), self.kind)


def _folder(shard: Path, stem: str) -> Path:
    return shard / "local" / stem
