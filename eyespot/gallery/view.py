"""A gallery opened for reading: its spaces, the facts of its rows, and its vectors mapped from disk."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.files import SPARE, Damaged, let_open, need_open, refuse_damaged
from eyespot.gallery.row_store import find_rows, open_rows, take_rows
from eyespot.kernels.codes import MAPPED, Codes, code_files, current_codes, has_codes
from eyespot.kernels.rows import unit_rows
from eyespot.photos.names import NamedFiles, folded
from eyespot.photos.places import Root, full_path
from eyespot.photos.videos.addresses import file_of
from eyespot.storage.digests import damaged_at_a_glance
from eyespot.types import EyespotError, Mask, Space, UsageError, Vectors

MOST_KNOWN = 100_000  # ids of rows that are at hand


def place_of(root: Root, path: str) -> str:
    """Where a row's picture lies; the address itself for an imported row that has nothing but an address."""
    return path if root.kind == "import" and "://" in path else full_path(root, path)


def place_order(place: str) -> tuple[bool, bool]:
    """What puts a file that is there before a link to it, and before one that was moved and is not forgotten yet."""
    return not os.path.exists(file_of(place)), os.path.islink(place)


class Gallery:
    """What lies in a gallery folder; opening reads `gallery.toml` and nothing else."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.header = disk.read_header(self.path)

    def __repr__(self) -> str:
        return (
            f"<gallery {self.path}: {self.header.rows:,} pictures, vectors of {', '.join(self.encoders) or 'nothing'}>"
        )

    @property
    def encoders(self) -> list[str]:
        """Names of the encoders whose vectors are here, the default first."""
        stems = sorted(self.header.spaces, key=lambda stem: stem != self.header.default)
        return list(dict.fromkeys(self.header.spaces[stem].encoder for stem in stems))

    def root(self, number: int) -> Root:
        """A root by its number; `EyespotError` if `gallery.toml` has lost it."""
        if number not in self.header.roots:
            raise EyespotError(
                f"{self.path / 'gallery.toml'} does not name root {number}; write it again with: eyespot index"
                f" -g {self.path}"
            )
        return self.header.roots[number]

    def called(self, stem: str) -> str:
        """What a space is called: by its encoder, and by its files too where another has the same encoder."""
        encoders = [space.encoder for space in self.header.spaces.values()]
        name = self.header.spaces[stem].encoder
        return name if encoders.count(name) == 1 else f"{name} ({stem})"

    def stem(self, encoder: str | None = None) -> str:
        """The space that an encoder's name means, or its own; the default for None and "auto"; else `UsageError`."""
        encoder = None if encoder == "auto" else encoder
        if encoder in self.header.spaces:
            return str(encoder)
        if encoder is None and self.header.default in self.header.spaces:
            return self.header.default
        from eyespot.models.table import full_names

        names = [] if encoder is None else [*full_names(encoder), encoder]
        # The newest space of that name is the one that can still be searched: its encoder is the one installed.
        commit = str(encoder).partition("@")[2].partition(":")[0] if names and names[0].startswith("model:") else ""
        found = [(stem, space) for name in names for stem, space in self.header.spaces.items() if space.encoder == name]
        stems = [stem for stem, space in found if space.revision.startswith(commit)]
        if stems:
            return stems[-1]
        have = ", ".join(self.encoders)
        if encoder is not None:
            tail = f"(it has: {have or 'none'}); add them with: eyespot index -e {encoder} -g {self.path}"
            raise UsageError(f"this gallery has no vectors of {encoder} {tail}")
        if not have:
            raise UsageError(f"{self.path} has no vectors yet; add some with: eyespot index PHOTOS -g {self.path}")
        header = self.path / "gallery.toml"
        raise UsageError(f"{header} does not say which space to search; choose an encoder with -e: {have}")

    def view(self, stem: str) -> View:
        """The rows that have vectors in one space."""
        shards = disk.shard_paths(self.path)
        needed, damaged_codes = [disk.ITEMS, f"{stem}.npy", f"{stem}.toml"], []
        for shard in shards:
            damaged = damaged_at_a_glance(shard, [*needed, *code_files(stem)])
            codes = [name for name in damaged if name in code_files(stem)]
            refuse_damaged(shard, {name: why for name, why in damaged.items() if name not in codes}, disk.way_out)
            damaged_codes += [shard / name for name in codes]
        notes = [(shard, disk.glance(shard, stem)) for shard in shards]
        ready = [(shard, note) for shard, note in notes if note is not None]
        pending = sum(items_table.count_items(shard) for shard, note in notes if note is None)
        missing = [note.missing for _, note in ready]
        return View(self, stem, [shard for shard, _ in ready], missing, pending, damaged_codes)


@dataclass(frozen=True)
class View:
    """One space of a gallery: row i of the vectors is row i of the facts.

    `pending` counts rows of shards that have no vectors in this space at all; `damaged_codes` are files of codes that a
    glance found damaged when the view was opened: a search without them is as exact, and slower.
    """

    gallery: Gallery
    stem: str
    shards: Sequence[Path]
    missing: Sequence[list[int]] = field(repr=False)
    pending: int = 0
    damaged_codes: Sequence[Path] = ()

    @property
    def space(self) -> Space:
        """What the vectors were made with."""
        return self.gallery.header.spaces[self.stem]

    @cached_property
    def blocks(self) -> list[Vectors]:
        """The vectors, one memory-mapped block (rows, dim) for each shard."""
        need_open(len(self.shards))
        return [disk.map_vectors(shard, self.stem) for shard in self.shards]

    @cached_property
    def codes(self) -> list[Codes | None] | None:
        """int8 codes of each block, mapped from the files next to it, None for a block without any that are up to date.

        None if no block has some, or if `unopened_codes` is not 0.
        """
        coded = self._coded
        if self.unopened_codes:
            return None
        pairs = zip(self.shards, self.blocks, strict=True)
        found = [current_codes(shard / self.stem, block) if shard in coded else None for shard, block in pairs]
        return found if any(codes is not None for codes in found) else None

    @cached_property
    def _coded(self) -> set[Path]:
        """The shards that have codes and no damage to them."""
        damaged = {file.parent for file in self.damaged_codes}
        return {shard for shard in self.shards if shard not in damaged and has_codes(shard / self.stem)}

    @cached_property
    def unopened_codes(self) -> int:
        """The files of codes, where they are more than this process may open beside its vectors; otherwise 0."""
        _ = self.blocks  # which are opened first: nothing can be searched without them
        files = MAPPED * len(self._coded)
        return 0 if let_open(files) else files

    @property
    def notes(self) -> list[str]:
        """Sentences for the user on what makes a search of this view slow, once it has been searched."""
        if "codes" not in vars(self) or not self.unopened_codes:  # a search of few rows reads no codes
            return []
        limit = math.ceil((self.unopened_codes + len(self.shards) + SPARE) / 1024) * 1024
        return [
            f"the int8 codes are {self.unopened_codes} files, more than this program may open, so the search took"
            f" longer; raise the limit with: ulimit -n {limit}"
        ]

    @cached_property
    def starts(self) -> Any:
        """The first row of each shard, and the count of all rows at the end; (shards + 1,)."""
        return np.cumsum([0, *(len(block) for block in self.blocks)])

    @cached_property
    def live(self) -> Mask:
        """True for rows whose picture is still there and has a vector; (rows,)."""
        columns = zip(self.shards, self.missing, self.blocks, strict=True)
        masks = []
        for shard, missing, block in columns:
            rows = len(block)
            live = _has_picture(shard).copy()
            if len(live) != rows or not all(0 <= row < rows for row in missing):
                raise Damaged(shard, f"it has facts of {len(live)} rows and vectors of {rows}", disk.way_out(shard))
            live[missing] = False
            masks.append(live)
        return np.asarray(np.concatenate([np.zeros(0, bool), *masks]))

    @property
    def without_vector(self) -> int:
        """How many pictures a search of this space cannot find."""
        lacking = (
            int(_has_picture(shard)[rows].sum()) for shard, rows in zip(self.shards, self.missing, strict=True) if rows
        )
        return self.pending + sum(lacking)

    @property
    def tables(self) -> list[Path]:
        """The facts' parquet files, in row order."""
        return [shard / "items.parquet" for shard in self.shards]

    def facts(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What is known of these rows, in their order; `path` is the first place where the picture lies."""
        facts: dict[int, dict[str, Any]] = {}
        shards = np.searchsorted(self.starts, rows, side="right") - 1
        for shard in sorted(set(shards.tolist())):
            inside = [int(row) for row, number in zip(rows, shards, strict=True) if number == shard]
            found = take_rows(self.shards[shard], [row - int(self.starts[shard]) for row in inside])
            for row, known in zip(inside, found, strict=True):
                numbered = zip(known.pop("roots"), known["paths"], strict=True)
                places = [place_of(self.gallery.root(number), path) for number, path in numbered]
                known.pop("live")
                places = sorted(dict.fromkeys(places), key=place_order) if len(places) > 1 else places
                facts[row] = known | {"path": places[0] if places else None, "paths": places}
        if len(self._row_of) > MOST_KNOWN:
            self._row_of.clear()
        self._row_of.update((str(known["id"]), row) for row, known in facts.items())
        return [facts[int(row)] for row in rows]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        """Rows whose facts were read last, by their ids: a search asks for the rows of its hits again and again."""
        return {}

    def newest(self, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """The `count` rows that were taken last, the newest first, those without a date last; (at most count,)."""
        dates = np.full(int(self.starts[-1]), -np.inf)  # (rows of the view,), seconds
        for start, shard in zip(self.starts.tolist(), self.shards, strict=False):
            table = items_table.read_items(shard, ["taken"])
            if "taken" in table.column_names:  # imported facts may have none
                taken: Any = table["taken"].combine_chunks()
                seconds = taken.cast("timestamp[s]").cast("int64").cast("float64")
                dates[start : start + len(taken)] = seconds.fill_null(-np.inf).to_numpy(zero_copy_only=False)
        return rows[np.argsort(-dates[rows], kind="stable")[:count]]

    def vectors(self, rows: Sequence[int] | NDArray[np.int64]) -> Vectors:
        """The vectors of these rows, (rows, dim), in float32 and of unit length."""
        if not self.blocks:
            return np.zeros((0, self.space.dim), np.float32)
        return unit_rows(self.blocks, np.asarray(rows, np.int64))

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """The rows of pictures by their ids; `UsageError` for an id that is not here."""
        at: list[int] = self.rows_by_id(ids).tolist()
        if -1 in at:
            lacking = ids[at.index(-1)]
            raise UsageError(f"the gallery has no picture {lacking!r} with vectors of {self.gallery.called(self.stem)}")
        return at

    def places(self) -> Iterator[tuple[str, int]]:
        """Every path of every picture, with its row."""
        for start, shard in zip(self.starts.tolist(), self.shards, strict=False):
            for row, known in enumerate(items_table.read_items(shard, ["roots", "paths"]).to_pylist(), start):
                for number, path in zip(known["roots"], known["paths"], strict=True):
                    yield place_of(self.gallery.root(number), path), row

    def rows_named(self, names: Sequence[str]) -> tuple[list[int], list[tuple[str, str]]]:
        """The rows of pictures by id, path or file name, and the names that a path spells otherwise, with that path.

        `UsageError` for a name of no picture, or of several.
        """
        rows, respelled = self.rows_by_id(names), list[tuple[str, str]]()
        lacking = {folded(names[at].rpartition("/")[2]) for at in np.flatnonzero(rows < 0).tolist()}
        every = self.places() if lacking else ()
        places = {place: row for place, row in every if folded(place.rpartition("/")[2]) in lacking}
        files = NamedFiles(places)
        for at in np.flatnonzero(rows < 0).tolist():
            found = files.called(os.path.abspath(names[at])) or files.called(names[at], at_end=True)
            if len({places[place] for place in found}) > 1:
                raise UsageError(f"{names[at]!r} names {len(found)} pictures, such as {found[0]}; give a path")
            rows[at] = places[found[0]] if found else -1
            respelled += [(names[at], found[0])] if found and not found[0].endswith(names[at]) else []
        if -1 in rows:
            lost, called = names[rows.tolist().index(-1)], self.gallery.called(self.stem)
            raise UsageError(
                f"the gallery has no picture {lost!r} with vectors of {called}; give an id that eyespot "
                "search --json prints, a path or the name of a file"
            )
        return rows.tolist(), respelled

    def rows_by_id(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of pictures by their ids, (ids,); -1 for an id that is not here."""
        at = np.array([self._row_of.get(id, -1) for id in ids], np.int64)
        for start, shard in zip(self.starts.tolist(), self.shards, strict=False):
            if (at >= 0).all():
                break
            found = find_rows(shard, ids)
            there = (found >= 0) & (at < 0)
            at[there] = found[there] + int(start)
        return at


def _has_picture(shard: Path) -> Mask:
    batch = open_rows(shard)
    column: Any = (
        items_table.read_items(shard, ["live"])["live"].combine_chunks() if batch is None else batch.column("live")
    )
    # The bits themselves: `cast` would load pyarrow.compute, `to_numpy` pandas where it is installed
    bits = np.unpackbits(np.frombuffer(column.buffers()[1] or b"", np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(bool)
