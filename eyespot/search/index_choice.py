"""Approximate indexes kept beside a gallery's vectors: GALLERY/indexes/SPACE/NAME/, there whole or not at all.

settings.json says what the index is, how it is used, which share of the nearest it found when it was measured, and of
which shards it was built; beside it lie the index's own files, whose sizes it names. A gallery that grew since is
searched in both: rows of new shards exactly, the others through the index.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from eyespot import rooms
from eyespot.gallery.files import refuse_damaged, whole
from eyespot.gallery.segments import members_of
from eyespot.gallery.view import View
from eyespot.kernels.codes import evenly
from eyespot.storage.atomic import new_file, put_folder
from eyespot.storage.digests import GONE, add_digests, damaged_at_a_glance, sound_digests
from eyespot.storage.locks import locked
from eyespot.storage.text_files import json_of
from eyespot.types import EyespotError, Index, UsageError

if TYPE_CHECKING:
    from eyespot.search.adapted import SearchBackend

EXACT = "exact"
SETTINGS = "settings.json"
FORMAT = 1
FAISS = "faiss"  # the index of several kinds
_COMPARED = 64  # rows of a shard; all of them would have to be read from the disk


@dataclass(frozen=True)
class Measured:
    """What was found of the `k` nearest: the mean share over so many queries, and where these came from.

    `shares`: that of each source, of which `recall` is the least. `exact`: the share of queries that were answered
    exactly, because their own estimate was too low.
    """

    recall: float
    k: int
    queries: int
    source: str
    shares: Mapping[str, float] = field(default_factory=dict)
    exact: float = 0.0


@dataclass(frozen=True)
class Covered:
    """A shard that an index was built of; `digest` names its vectors, and the rows that had none."""

    shard: str
    rows: int
    digest: str

    @classmethod
    def of(cls, view: View, at: int) -> list[Covered]:
        """A shard of a gallery as it is now; of a segment the shards that it was made of."""
        shard, block, missing = view.shards[at], view.blocks[at], np.asarray(view.missing[at], np.int64)
        members = [(one.name, one.rows) for one in members_of(shard)] or [(shard.name, len(block))]
        found, start = [], 0
        for name, rows in members:
            vectors, lacking = block[start : start + rows], missing[(missing >= start) & (missing < start + rows)]
            # By their shape, type, some rows, and those without a vector: they get theirs in place
            hasher = hashlib.blake2b(f"{vectors.shape} {vectors.dtype.str}".encode(), digest_size=16)
            hasher.update(np.ascontiguousarray(vectors[evenly(len(vectors), _COMPARED)]).tobytes())
            hasher.update((lacking - start).tobytes())
            found.append(cls(name, rows, hasher.hexdigest()))
            start += rows
        return found


@dataclass(frozen=True)
class StoredIndex:
    """What settings.json says: a member of `indexes/`, the settings it is used with, and of what it was built."""

    index: str
    settings: Mapping[str, Any]
    measured: Measured
    space: str
    shards: tuple[Covered, ...]
    files: Mapping[str, int] = field(default_factory=dict)  # bytes of each file beside settings.json

    def as_json(self) -> dict[str, Any]:
        """As it is written."""
        return {"format": FORMAT, **asdict(self), "rows": sum(shard.rows for shard in self.shards)}


def folder_of(view: View, name: str) -> Path:
    """Where an index of this space lies, or would; `UsageError` for what is not a name.

    The index of faiss also goes by its kind: `rabitq` is `faiss` where that has codes of RaBitQ.
    """
    if not name or name != Path(name).name or name.startswith("."):
        raise UsageError(f"{name!r} is not a name of an index; take letters and digits")
    beside = view.gallery.path / "indexes" / view.stem
    if not (beside / name).is_dir():
        # What cannot be read is said when the index is opened
        with suppress(EyespotError, OSError, ValueError, KeyError, TypeError):
            if name == json_of(beside / FAISS / SETTINGS)["settings"]["kind"]:
                return beside / FAISS
    return beside / name


def names_in(view: View) -> list[str]:
    """The indexes this space has, in alphabetical order."""
    found = (view.gallery.path / "indexes" / view.stem).glob(f"*/{SETTINGS}")
    return sorted(place.parent.name for place in found if not place.parent.name.startswith("."))


def open_index(view: View, name: str = EXACT, backend: SearchBackend | None = None) -> Index:
    """An index over the view's rows: the exact one, or one that is kept under this name; by `backend`, if given.

    `UsageError` if there is none or the space was made again since, `EyespotError` if its files are damaged.
    """
    if name == EXACT:
        if backend is not None:
            return backend.index(view.blocks, view.codes)
        index: Index = rooms.load("indexes", EXACT, view.blocks, codes=view.codes)
        return index
    if backend is not None:
        raise UsageError(f"the index {name} is searched by one process; leave out --ray, or --index {name}")
    record, folder = read_stored(view, name), folder_of(view, name)
    # `EyespotError` if a file is gone or cut: an index that does not find its own would be built anew by a search
    damaged = {part: GONE for part in record.files if not (folder / part).is_file()}
    damaged |= damaged_at_a_glance(folder, sound_digests(folder))
    sizes = {part: (folder / part).stat().st_size for part in record.files if damaged.get(part) != GONE}
    damaged |= {part: "it is not whole" for part, size in sizes.items() if size not in (0, record.files[part])}
    refuse_damaged(folder, damaged, lambda _: _repair_line(view))
    use: dict[str, Any] = {"recall": record.measured.recall, "covered": _places(view, record, name), "live": view.live}
    use["exact"] = partial(open_index, view)  # only when it is needed: it maps every file of codes
    index = rooms.load("indexes", record.index, view.blocks, folder=folder, **record.settings, **use)
    return index


def _repair_line(view: View) -> str:
    return f"make it again with: eyespot tune -g {quote(str(view.gallery.path))} -e {view.space.encoder}"


def read_stored(view: View, name: str) -> StoredIndex:
    """What is known of an index; `UsageError` if there is none of this name."""
    place = folder_of(view, name) / SETTINGS
    if not place.is_file():
        have = ", ".join([EXACT, *names_in(view)])
        raise UsageError(f"this gallery has no index {name!r} (it has: {have}); make one with: eyespot tune")
    with whole(place, _repair_line(view)):
        found = json.loads(place.read_text(encoding="utf-8"))
        if found["format"] > FORMAT:
            raise EyespotError(f"{place} was written by a newer eyespot; upgrade eyespot, or run eyespot tune again")
        shards = tuple(Covered(**shard) for shard in found["shards"])
        measured = Measured(**found["measured"] | {"recall": float(found["measured"]["recall"])})
        files = {str(name): int(size) for name, size in found.get("files", {}).items()}
        return StoredIndex(found["index"], found["settings"], measured, found["space"], shards, files)


def _places(view: View, record: StoredIndex, name: str) -> tuple[int, ...]:
    """Where the shards of an index stand among those of the gallery; `UsageError` if one is not what it was."""
    at = {member.name: place for place, shard in enumerate(view.shards) for member in members_of(shard)}
    at |= {shard.name: place for place, shard in enumerate(view.shards)}
    places = tuple(dict.fromkeys(at.get(shard.shard, -1) for shard in record.shards))
    now = [covered for place in places for covered in (Covered.of(view, place) if place >= 0 else [None])]
    if record.space != view.space.digest or list(record.shards) != now:
        encoder = view.space.encoder
        raise UsageError(
            f"the index {name!r} is of other vectors than this gallery now has of {encoder}; build it again with: "
            f"eyespot tune -g {view.gallery.path} -e {encoder}"
        )
    return places


# -- keeping ------------------------------------------------------------------------------------------------


@contextmanager
def building(view: View) -> Iterator[Path]:
    """A folder for the files of indexes of this space, gone when the block ends; one eyespot builds at a time.

    What a killed run left is cleared first. `EyespotError` if another one is building.
    """
    place = view.gallery.path / "indexes" / view.stem
    with locked(view.gallery.path / "indexes"):
        folder = place / ".building"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def store_index(view: View, name: str, record: StoredIndex, built: Path) -> Path:
    """Put an index that was built in a folder of `building` in place of the old one; where it lies now."""
    files = {str(part.relative_to(built)): part.stat().st_size for part in sorted(built.rglob("*")) if part.is_file()}
    with new_file(built / SETTINGS) as file:
        file.write((json.dumps(replace(record, files=files).as_json(), indent=2) + "\n").encode())
    places = [place for place in built.rglob("*") if place.is_file()]
    add_digests(built, [place.relative_to(built).as_posix() for place in places])
    final = folder_of(view, name)
    put_folder(built, final)
    return final


def stored_of(view: View, index: str, settings: Mapping[str, Any], measured: Measured) -> StoredIndex:
    """What is to be kept of an index that was built of all rows the gallery has now."""
    shards = tuple(covered for at in range(len(view.shards)) for covered in Covered.of(view, at))
    return StoredIndex(index, settings, measured, view.space.digest, shards)
