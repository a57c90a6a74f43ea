"""A gallery's files: `gallery.toml`, and shards of a table of facts with one array of vectors per space.

Whatever is written gets a temporary name, is flushed to the disk and then renamed: a reader sees the old or the new,
never a half.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from eyespot.gallery.sources import Root
from eyespot.types import EyespotError, Space, UsageError, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1


@dataclass
class Header:
    """What `gallery.toml` says: format, roots, spaces by file stem, and the space that search takes unasked."""

    roots: dict[int, Root] = field(default_factory=dict)
    spaces: dict[str, Space] = field(default_factory=dict)
    default: str = ""
    rows: int = 0


def stem_of(space: Space) -> str:
    """The file name of a space's vectors: readable, and its own for every digest."""
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', space.encoder).strip('-')[:60]}-{space.digest[:8]}"


def read_header(gallery: Path) -> Header:
    """`gallery.toml`; `UsageError` if there is none, `EyespotError` if a newer eyespot wrote it."""
    try:
        text = (gallery / "gallery.toml").read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except FileNotFoundError:
        raise UsageError(
            f"there is no gallery at {gallery}; make one with: eyespot index PHOTOS -g {gallery}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EyespotError(
            f"{gallery / 'gallery.toml'} is damaged ({error}); run eyespot index to write it again"
        ) from error
    if found.get("format", 0) > FORMAT:
        raise EyespotError(
            f"{gallery} has format {found['format']}, this eyespot reads up to {FORMAT}; upgrade eyespot"
        )
    return Header(
        roots={r["number"]: Root(r["path"], r["kind"]) for r in found.get("roots", [])},
        spaces={s.pop("stem"): Space(**s) for s in found.get("spaces", [])},
        default=found.get("default", ""),
        rows=found.get("rows", 0),
    )


def write_header(gallery: Path, header: Header) -> None:
    """Put `gallery.toml` in place of the old one."""
    lines = [f"format = {FORMAT}", f"rows = {header.rows}", f"default = {json.dumps(header.default)}"]
    for number, root in sorted(header.roots.items()):
        lines += ["", "[[roots]]", f"number = {number}", *_toml(root._asdict())]
    for stem, space in header.spaces.items():
        lines += ["", "[[spaces]]", *_toml({"stem": stem, **asdict(space)})]
    with replacing(gallery / "gallery.toml") as file:
        file.write(("\n".join(lines) + "\n").encode())


def _toml(values: Mapping[str, Any]) -> list[str]:
    # A JSON string of ASCII is a TOML string, and JSON numbers and flat lists of numbers are TOML's too.
    return [f"{name} = {json.dumps(value)}" for name, value in values.items()]


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` once it is whole and on the disk."""
    temporary = path.with_name(f".{path.name}.part")
    with temporary.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make renames inside the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def new_shard(gallery: Path, number: int) -> Iterator[Path]:
    """A folder that becomes shard `number` when the block ends well; what a killed run left there is cleared first."""
    final = shard_path(gallery, number)
    building = final.with_name(f".{final.name}.part")
    for leftover in (building, final):
        shutil.rmtree(leftover, ignore_errors=True)
    building.mkdir(parents=True)
    yield building
    sync_folder(building)
    building.rename(final)
    sync_folder(final.parent)


def shard_path(gallery: Path, number: int) -> Path:
    """Where a shard lies."""
    return gallery / "shards" / f"{number:05d}"


def shard_paths(gallery: Path) -> list[Path]:
    """Every finished shard, in order."""
    folder = gallery / "shards"
    return (
        sorted((p for p in folder.glob("[0-9]*") if p.name.isdigit()), key=lambda p: int(p.name))
        if folder.is_dir()
        else []
    )


def write_items(shard: Path, table: pa.Table) -> None:
    """The facts of a shard's rows, `items.parquet`."""
    import pyarrow.parquet as pq

    with replacing(shard / "items.parquet") as file:
        pq.write_table(table, file, row_group_size=2048)


def read_items(shard: Path, columns: list[str] | None = None) -> pa.Table:
    """The facts of a shard, or some columns of them."""
    import pyarrow.parquet as pq

    return pq.read_table(shard / "items.parquet", columns=columns, partitioning=None)


def count_items(shard: Path) -> int:
    """How many rows a shard has."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(shard / "items.parquet").num_rows)


@dataclass(frozen=True)
class SpaceNote:
    """What lies beside a shard's vectors: their space, rows that have none, and three reference fingerprints."""

    space: Space
    missing: list[int]
    fingerprints: list[list[float]]


def write_vectors(shard: Path, vectors: Vectors, note: SpaceNote) -> None:
    """One space's vectors of a shard, (rows, dim); the note goes last, so vectors with a note are whole."""
    stem = stem_of(note.space)
    with replacing(shard / f"{stem}.npy") as file:
        np.save(file, vectors, allow_pickle=False)
    lines = _toml({"missing": note.missing, "fingerprints": note.fingerprints, "digest": note.space.digest})
    lines += ["", "[space]", *_toml(asdict(note.space))]
    with replacing(shard / f"{stem}.toml") as file:
        file.write(("\n".join(lines) + "\n").encode())


def read_note(shard: Path, stem: str) -> SpaceNote | None:
    """The note of a space in a shard, or None if its vectors are not (wholly) there."""
    try:
        found = tomllib.loads((shard / f"{stem}.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return SpaceNote(Space(**found["space"]), found["missing"], found["fingerprints"])


def map_vectors(shard: Path, stem: str) -> Vectors:
    """One space's vectors, memory-mapped, (rows, dim)."""
    vectors: Vectors = np.load(shard / f"{stem}.npy", mmap_mode="r", allow_pickle=False)
    return vectors


@contextmanager
def locked(gallery: Path) -> Iterator[None]:
    """One writer at a time; `EyespotError` if another eyespot is writing here."""
    import fcntl

    gallery.mkdir(parents=True, exist_ok=True)
    with (gallery / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EyespotError(f"another eyespot is writing to {gallery}; wait for it to end and run again") from None
        yield
