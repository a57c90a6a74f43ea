"""Taking in vectors that others computed: where they lie, or as a copy at unit length.

An imported part becomes one shard that the ledger knows by its source: taken in once, never scanned, never written
over. Killed at any moment and run again, an import ends in the same gallery.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.formats.imports.items import (
    MEANT,
    Hashes,
    Layout,
    Naming,
    item_hashes,
    key_hashes,
    labels_of,
    repeated,
    write_items,
)
from eyespot.formats.imports.tables import facts_in, widest
from eyespot.gallery import disk, word_table
from eyespot.gallery.files import map_array, need_open
from eyespot.gallery.integrity import add_missing_digests
from eyespot.gallery.picture_index import PictureIndex
from eyespot.photos.labels import wider
from eyespot.photos.places import Root
from eyespot.storage import arrays, sqlite
from eyespot.storage.atomic import ELSEWHERE, new_folder, trouble
from eyespot.storage.copies import INDEX
from eyespot.storage.digests import new_digested
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, Space, UsageError, no_progress, quantity


@dataclass(frozen=True)
class Part:
    """One array of vectors and the table of its rows, if there is one."""

    name: str
    vectors: Path  # absolute
    metadata: Path | None


@dataclass(frozen=True)
class ImportSource:
    """What an import takes in: parts in their order, and the folder that relative paths start from."""

    format: str
    folder: Path
    parts: list[Part]
    layout: Layout
    notes: list[str] = field(default_factory=list)
    space: Space | None = None  # where the export of a gallery says so

    def __post_init__(self) -> None:
        for place in (self.folder, *(part.vectors for part in self.parts)):
            try:
                str(place).encode()
            except UnicodeEncodeError:
                shown = os.fsencode(place).decode("utf-8", "backslashreplace")
                raise UsageError(f"the name of {shown} is not valid UTF-8; rename it and import again") from None


@dataclass
class Imported:
    """What an import did; `notes` are sentences for the user."""

    rows: int = 0
    added: int = 0
    shards: int = 0
    notes: list[str] = field(default_factory=list)


def take_in(
    gallery: Path, source: ImportSource, encoder: str, *, copy: bool = False, progress: Progress = no_progress
) -> Imported:
    """Import what is not in the gallery yet, as vectors of the encoder of that name; nothing else is changed.

    copy: the gallery gets vectors of its own at unit length, float16 where the source is, else float32. Otherwise they
    stay where they are, and must be as a search needs them; only vectors that no program can map are copied anyway.

    Raises `EyespotError` for vectors or tables that cannot be taken in (before anything of them is registered), for
    sources that changed since they were imported, and when the disk is full.
    """
    try:
        with ExitStack() as open_things:
            open_things.enter_context(locked(gallery))
            open_things.enter_context(sqlite.whole(gallery / INDEX))
            known = PictureIndex(gallery)
            open_things.callback(known.close)
            imported = _Import(gallery, known, source, encoder).run(copy, progress)
            add_missing_digests(gallery)
            imported.notes += word_table.complete_if_room(gallery, progress)
            return imported
    except (OSError, sqlite3.OperationalError) as error:
        raise EyespotError(f"cannot write to {gallery} {trouble(error, elsewhere=ELSEWHERE)}") from error


class _Import:
    """One run of `take_in`."""

    def __init__(self, gallery: Path, ledger: PictureIndex, source: ImportSource, encoder: str) -> None:
        self.gallery, self.ledger, self.source = gallery, ledger, source
        self.header = disk.read_header(gallery) if (gallery / "gallery.toml").exists() else disk.Header()
        need_open(2 * len(source.parts))  # a packed HDF5 file stays open beside its table
        self.mapped = {part: map_array(part.vectors) for part in source.parts}
        first, *others = source.parts
        dim = int(self.mapped[first].shape[1])
        for part in others:
            if self.mapped[part].shape[1] != dim:
                raise EyespotError(
                    f"{part.vectors} has vectors of {self.mapped[part].shape[1]} components and {first.vectors} of "
                    f"{dim}; import them from folders of their own"
                )
        self.space = source.space or Space(encoder, "imported", "unknown", "unknown", dim)
        if (self.space.encoder, self.space.dim) != (encoder, dim):
            said = f"{self.space.dim} numbers by {self.space.encoder}, not {dim} by {encoder}"
            raise UsageError(f"{source.folder} says its vectors are {said}; import them with -e {self.space.encoder}")
        self.stem = disk.stem_of(self.space)
        self.facts = {}
        for part in source.parts:
            rows = len(self.mapped[part])
            facts = self.facts[part] = facts_in(part.metadata, rows)
            if facts.rows != rows:
                raise EyespotError(
                    f"{part.vectors} has {rows} rows and {part.metadata} has {facts.rows}; "
                    "they must be of one run, row for row"
                )
        # Label columns of all parts; each has one kind, and the spelling and width the gallery knows it by
        kinds: dict[str, str] = {}
        for facts in self.facts.values():
            for name, kind in facts.kinds.items():
                kinds[name] = widest(kinds.get(name, ""), kind)
        labels = labels_of(kinds)
        known = {name.lower(): kind for name, kind in self.ledger.columns().items()}
        self.labels = {name: wider(kind, known.get(name.lower(), kind)) for name, kind in labels.items()}

    def run(self, copy: bool, progress: Progress) -> Imported:
        new = [part for part in self.source.parts if not self._is_in(part)]
        total = sum(len(self.mapped[part]) for part in new)
        lost = {part: self._lost(part, copy) for part in _report_rows(new, self.mapped, "checking", progress)}
        # The ledger knows a root by its path: the slash keeps the import apart from the same folder indexed for photos.
        root = self.ledger.add_root(Root(os.path.join(self.source.folder, ""), "import"))
        self._write_header()
        known: list[Hashes] = []  # of the ids of each part
        if new:
            # Ids differ within a space; in two spaces one id is one picture
            shards = self.ledger.sql.execute("SELECT shard FROM imported WHERE space = ? ORDER BY shard", (self.stem,))
            for place in dict.fromkeys(disk.places_of(self.gallery, (shard for (shard,) in shards)).values()):
                known.append(item_hashes(place))
        for part in _report_rows(new, self.mapped, "importing", progress):
            shard = self._add(part, root, lost=lost[part], copy=copy, known=known)
            known.append(item_hashes(disk.shard_path(self.gallery, shard)))
        self._write_header()
        rows = sum(len(array) for array in self.mapped.values())
        notes = self._notes(sum(map(len, lost.values())))
        if not copy and any(map(os.path.isabs, map(self._lies_at, self.source.parts))):
            notes.append(f"vectors stay in {self.source.folder}, also if the gallery moves; take them in with --copy")
        return Imported(rows, total, len(self.source.parts), notes)

    # -- what is there --------------------------------------------------------------------------------------

    def _is_in(self, part: Part) -> bool:
        found = self.ledger.sql.execute(
            "SELECT shard, rows, space FROM imported WHERE source IN (?, ?)", [self._lies_at(part), str(part.vectors)]
        ).fetchone()
        if found is None:
            return False
        shard, rows, stem = found
        if stem != self.stem:
            note = disk.read_note(disk.places_of(self.gallery, [shard])[shard], stem)
            made_with = note.space.encoder if note else "another encoder"
            raise UsageError(
                f"{part.vectors} is in {self.gallery} already, as vectors of {made_with}; "
                "import it into a new gallery with -g"
            )
        if rows != len(self.mapped[part]):
            raise EyespotError(
                f"{part.vectors} had {rows} rows when it was imported and has {len(self.mapped[part])} now; "
                "import it into a new gallery with -g"
            )
        return True

    def _lies_at(self, part: Part) -> str:
        """The path of its vectors, of those in the gallery from there: that may be moved."""
        return str(part.vectors).removeprefix(f"{os.path.abspath(self.gallery)}{os.sep}")

    # -- what is new ----------------------------------------------------------------------------------------

    def _lost(self, part: Part, copy: bool) -> list[int]:
        """Rows without a direction; `EyespotError` if the array cannot be taken in this way."""
        array = self.mapped[part]
        copied = copy or not isinstance(array, np.ndarray)
        if not copied and (array.dtype not in (np.float32, np.float16) or not array.flags.c_contiguous):
            raise EyespotError(
                f"{part.vectors} is {array.dtype} in an order or width that cannot be searched in place; "
                "import it with --copy"
            )
        found = arrays.survey(array)
        if not copied and found.odd_row is not None:
            raise EyespotError(
                f"{part.vectors} holds vectors that are not of unit length (row {found.odd_row}: "
                f"{found.odd_length:.4g}); import them normalised with --copy"
            )
        return found.missing

    def _add(self, part: Part, root: int, *, lost: list[int], copy: bool, known: Sequence[Hashes]) -> int:
        facts, array = self.facts[part], self.mapped[part]
        naming = Naming(self.source.format, part.name, self.source.layout)
        again = repeated(key_hashes(facts, naming), known)
        shard = self._unfinished()
        with new_folder(disk.shard_path(self.gallery, shard)) as folder:
            write_items(folder, facts, naming, shard=shard, root=root, labels=self.labels, again=again)
            about = disk.SpaceNote(self.space, lost, [], self._lies_at(part))
            if copy or not isinstance(array, np.ndarray):
                dtype = np.float16 if array.dtype.itemsize == 2 else np.float32
                with new_digested(folder / f"{self.stem}.npy") as file:
                    arrays.begin(file, array.shape, dtype)
                    for piece in arrays.normalised(array, dtype):
                        arrays.append(file, piece)
                about = replace(about, source=None, checksum=f"blake2b:{file.hex}", dtype=np.dtype(dtype).name)
            disk.write_note(folder, about)
        # Killed before this line, the next import writes the folder anew.
        self.ledger.sql.execute(
            "INSERT INTO imported(shard, root, rows, format, space, source) VALUES (?, ?, ?, ?, ?, ?)",
            (shard, root, len(array), self.source.format, self.stem, self._lies_at(part)),
        )
        return shard

    def _unfinished(self) -> int:
        """The number of the shard that a killed import left and the ledger does not know; else a free one."""
        known = self.ledger.known_shards()
        shards = [shard for shard in disk.shard_paths(self.gallery) if disk.number_of(shard) not in known]
        last = disk.last_number(self.gallery)
        left = len(shards) == 1 and disk.span_of(shards[0]) == (last, last) and disk.is_imported(shards[0])
        return last if left and last > max(known, default=-1) else self.ledger.free_shard()

    def _write_header(self) -> None:
        self.header.roots = self.ledger.roots()
        self.header.spaces[self.stem] = self.space
        self.header.default = self.header.default or self.stem
        self.header.rows = self.ledger.counts()[0]
        disk.write_header(self.gallery, self.header)

    def _notes(self, lost: int) -> list[str]:
        notes = list(self.source.notes)
        if lost:
            notes.append(f"never found: {quantity(lost, 'row')} without a vector (zeros, or not all finite)")
        columns = {name.lower() for name in (*self.labels, *self.source.layout.keys, *self.source.layout.paths, *MEANT)}
        names = [name for facts in self.facts.values() for name in (*facts.kinds, *facts.others)]
        left = [name for name in dict.fromkeys(names) if name and name.lower() not in columns]
        if left:
            notes.append(f"columns left out, for they hold no plain values or have a taken name: {', '.join(left)}")
        return notes


def _report_rows(parts: list[Part], mapped: dict[Part, NDArray[Any]], what: str, progress: Progress) -> Any:
    total, done = sum(len(mapped[part]) for part in parts), 0
    for part in parts:
        yield part
        done += len(mapped[part])
        progress(what, done, total)
