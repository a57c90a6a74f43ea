"""A gallery's files: `gallery.toml`, and shards of a table of facts with one array of vectors per space.

Whatever is written gets a temporary name, is flushed to the disk and then renamed: a reader sees the old or the new,
never a half.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.files import Checksum, Damaged, map_array, whole, why
from eyespot.gallery.photos.found import reason
from eyespot.gallery.photos.sources import Root
from eyespot.kernels.codes import delete_codes
from eyespot.storage.atomic import new_file, new_folder
from eyespot.storage.toml import toml_lines
from eyespot.types import EyespotError, Space, UsageError, Vectors

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
FORMAT = 1
FETCHED = ".fetched.json"  # in a local copy of a published gallery: which content each of its files has
_FINGERPRINTS = re.compile(r"^(fingerprints) = (\[.*\])$", re.MULTILINE)


class DamagedHeader(EyespotError):
    """`gallery.toml` cannot be read; all it says stands elsewhere too."""


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
    """`gallery.toml`; `UsageError` if there is none, `EyespotError` if it is damaged or a newer eyespot wrote it."""
    try:
        found = tomllib.loads((gallery / "gallery.toml").read_text(encoding="utf-8"))
        if _typed(found, "format", int) > FORMAT:
            raise EyespotError(
                f"{gallery} has format {found['format']}, this eyespot reads up to {FORMAT}; upgrade eyespot"
            )
        return _header(found)
    except FileNotFoundError:
        raise UsageError(
            f"there is no gallery at {gallery}; make one with: eyespot index PHOTOS -g {gallery}"
        ) from None
    except NotADirectoryError:
        raise UsageError(f"{gallery} is a file and no gallery; name a folder with -g") from None
    except OSError as error:
        raise EyespotError(
            f"{gallery / 'gallery.toml'} cannot be read ({reason(error)}); give yourself the right to read the gallery"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedHeader(
            f"{gallery / 'gallery.toml'} is damaged ({why(error)}); run eyespot index to write it again"
        ) from error


def _header(found: Mapping[str, Any]) -> Header:
    return Header(
        roots={
            _typed(root, "number", int): Root(_typed(root, "path", str), _typed(root, "kind", str))
            for root in found.get("roots", [])
        },
        spaces={_typed(space, "stem", str): _space(space) for space in found.get("spaces", [])},
        default=_typed({"default": "", **found}, "default", str),
        rows=_typed({"rows": 0, **found}, "rows", int),
    )


def _space(found: Mapping[str, Any]) -> Space:
    texts = {name: _typed(found, name, str) for name in ("encoder", "revision", "weights", "preprocessing")}
    return Space(**texts, dim=_typed(found, "dim", int))


def _typed(found: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = found[name]
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}")
    return value


def read_or_rebuild_header(gallery: Path) -> Header:
    """The header for whoever writes: a new one where there is none, one rebuilt from the shards if it is damaged."""
    try:
        return read_header(gallery)
    except UsageError:
        return Header()
    except DamagedHeader:
        notes = [note for shard in shard_paths(gallery) for note in sound_notes(shard)]
        return Header(spaces={stem_of(note.space): note.space for note in notes})


def write_header(gallery: Path, header: Header) -> None:
    """Put `gallery.toml` in place of the old one."""
    lines = [f"format = {FORMAT}", f"rows = {header.rows}", f"default = {json.dumps(header.default)}"]
    for number, root in sorted(header.roots.items()):
        lines += ["", "[[roots]]", f"number = {number}", *toml_lines(root._asdict())]
    for stem, space in header.spaces.items():
        lines += ["", "[[spaces]]", *toml_lines({"stem": stem, **asdict(space)})]
    with new_file(gallery / "gallery.toml") as file:
        file.write(("\n".join(lines) + "\n").encode())


@contextmanager
def new_shard(gallery: Path, number: int) -> Iterator[Path]:
    """A folder that becomes shard `number` when the block ends well, in place of what a killed run left there."""
    with new_folder(shard_path(gallery, number)) as building:
        yield building


def clear_shard(gallery: Path, number: int) -> None:
    """Remove what a killed run left of a shard that turns out to hold nothing."""
    final = shard_path(gallery, number)
    for leftover in (final.with_name(f".{final.name}.part"), final):
        shutil.rmtree(leftover, ignore_errors=True)


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

    with new_file(shard / "items.parquet") as file:
        pq.write_table(table, file, row_group_size=2048, write_page_checksum=True)


def read_items(shard: Path, columns: list[str] | None = None) -> pa.Table:
    """The facts of a shard, or some columns of them."""
    import pyarrow.parquet as pq

    with whole(shard / "items.parquet", lambda: way_out(shard)) as place, pq.ParquetFile(place) as file:
        return file.read(columns=columns)  # read_table would load pandas where it is installed


def read_rows(shard: Path, rows: Sequence[int]) -> pa.Table:
    """The facts of some rows of a shard, in their order; of a large table only the parts that hold them are read."""
    import pyarrow.parquet as pq

    with whole(shard / "items.parquet", lambda: way_out(shard)) as place, pq.ParquetFile(place) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)  # (groups,)
        groups, at = np.unique(np.searchsorted(ends, rows, side="right"), return_inverse=True)
        starts = np.cumsum([0, *(sizes[group] for group in groups)])  # of each group among those that are read
        before = (ends - sizes)[groups]
        return file.read_row_groups(groups.tolist()).take(_indices(np.asarray(rows) - before[at] + starts[at]))


def _indices(rows: NDArray[np.int64]) -> pa.Array[Any]:
    """Rows for pyarrow, which would load pandas, where it is installed, to look at a plain array."""
    import pyarrow as pa

    buffer = pa.py_buffer(memoryview(np.ascontiguousarray(rows, np.int64).data))
    return pa.Int64Array.from_buffers(pa.int64(), len(rows), [None, buffer])


def count_items(shard: Path) -> int:
    """How many rows a shard has."""
    import pyarrow.parquet as pq

    with whole(shard / "items.parquet", lambda: way_out(shard)) as place:
        return int(pq.read_metadata(place).num_rows)


def way_out(shard: Path) -> str:
    """What to do about a damaged file of a shard."""
    gallery = shard.parent.parent
    if (gallery / FETCHED).is_file():
        return f"delete {shard} and search again, which fetches it anew"
    if is_imported(shard):
        return "put it back from a copy, or import the vectors into a new gallery with -g"
    return f"repair it with: eyespot index --repair -g {quote(str(gallery))}"


def is_imported(shard: Path) -> bool:
    """Whether others computed a shard's vectors, as far as a note says it."""
    return any(b'revision = "imported"' in note.read_bytes() for note in shard.glob("*.toml"))


@dataclass(frozen=True)
class SpaceNote:
    """What lies next to a shard's vectors: their space, rows that have none, and three reference fingerprints.

    `source` is the file that holds the vectors of an import in place; None: they lie here. `checksum` and `dtype` are
    those of the file that lies here; empty in notes of older galleries.
    """

    space: Space
    missing: list[int]
    fingerprints: list[list[float]]
    source: str | None = None
    checksum: str = ""
    dtype: str = ""


def write_vectors(shard: Path, vectors: Vectors, note: SpaceNote) -> None:
    """One space's vectors of a shard, (rows, dim); the note goes last, so vectors with a note are whole."""
    stem = stem_of(note.space)
    delete_codes(shard / stem)
    with new_file(shard / f"{stem}.npy") as file:
        checked = Checksum(file)
        np.save(checked, vectors, allow_pickle=False)
    write_note(shard, replace(note, checksum=str(checked), dtype=vectors.dtype.name))


def write_note(shard: Path, note: SpaceNote) -> None:
    """Say that a space's vectors are whole, here or at their source."""
    lines = toml_lines({"missing": note.missing, "fingerprints": note.fingerprints, "digest": note.space.digest})
    more = {"source": note.source, "checksum": note.checksum, "dtype": note.dtype}
    lines += toml_lines({name: value for name, value in more.items() if value})
    lines += ["", "[space]", *toml_lines(asdict(note.space))]
    with new_file(shard / f"{stem_of(note.space)}.toml") as file:
        file.write(("\n".join(lines) + "\n").encode())


def read_note(shard: Path, stem: str) -> SpaceNote | None:
    """The note of a space in a shard, or None if its vectors are not (wholly) there; `EyespotError` if damaged."""
    return _noted(shard, stem, json.loads)


def glance(shard: Path, stem: str) -> SpaceNote | None:
    """The same without its fingerprints: a gallery of millions has thousands of notes, which every search reads."""
    return _noted(shard, stem, lambda _: [])


def _noted(shard: Path, stem: str, told: Callable[[str], Any]) -> SpaceNote | None:
    place = shard / f"{stem}.toml"
    if not place.exists():
        return None
    with whole(place, lambda: way_out(shard)):
        text = place.read_text(encoding="utf-8")
        # TOML is read by Python at a millisecond for a few hundred numbers; as we write a list it is JSON too.
        lists = {line[1]: told(line[2]) for line in _FINGERPRINTS.finditer(text)}
        found = {**tomllib.loads(_FINGERPRINTS.sub("", text)), **lists}
        missing, fingerprints = _typed(found, "missing", list), _typed(found, "fingerprints", list)
        if any(type(row) is not int or row < 0 for row in missing):
            raise ValueError("missing names no rows")
        texts = [_typed({"": "", **found}, name if name in found else "", str) for name in ("checksum", "dtype")]
        return SpaceNote(_space(found["space"]), missing, fingerprints, found.get("source"), *texts)


def read_notes(shard: Path) -> list[SpaceNote]:
    """The notes of all spaces of a shard."""
    notes = [read_note(shard, file.stem) for file in sorted(shard.glob("*.toml"))]
    return [note for note in notes if note]


def sound_notes(shard: Path) -> list[SpaceNote]:
    """The same without those that are damaged."""
    notes = []
    for file in sorted(shard.glob("*.toml")):
        with suppress(Damaged):
            notes.append(read_note(shard, file.stem))
    return [note for note in notes if note]


def map_vectors(shard: Path, stem: str) -> Vectors:
    """One space's vectors, memory-mapped, (rows, dim), float32 or float16; `EyespotError` if their source is gone."""
    note = glance(shard, stem)
    if note is not None and note.source is not None:
        source_dim: int = note.space.dim
        source: Path = Path(note.source)
        rows = count_items(shard)
        source_vectors: Vectors = map_array(source)
        same = isinstance(source_vectors, np.ndarray) and source_vectors.shape == (rows, source_dim)
        if not same or source_vectors.dtype not in (np.float32, np.float16):
            raise EyespotError(
                f"{source} has changed since it was imported (now {source_vectors.dtype} of shape "
                f"{source_vectors.shape}, then "
                f"{rows} rows of {source_dim}); put the old file back or import it into a new gallery"
            )
        return source_vectors
    dim: int | None = note.space.dim if note else None
    with whole(shard / f"{stem}.npy", lambda: way_out(shard)) as place:
        vectors = np.lib.format.open_memmap(place, mode="r")
        if vectors.ndim != 2 or dim not in (None, vectors.shape[1]):
            raise ValueError(f"it holds an array of shape {vectors.shape}")
        if vectors.dtype not in (np.float32, np.float16):
            raise ValueError(f"it holds {vectors.dtype}")
        if place.stat().st_size != vectors.offset + vectors.nbytes:
            raise ValueError("it is longer than its vectors")
        return vectors


def is_half(gallery: Path, stem: str) -> bool:
    """Whether the newest vectors that a space has here, imports aside, are float16."""
    kinds = (dtype_of(shard, stem) for shard in reversed(shard_paths(gallery)))
    return next((kind for kind in kinds if kind), "") == "float16"


def dtype_of(shard: Path, stem: str) -> str:
    """The type of a space's own vectors in a shard, also where they are damaged; empty if nothing tells it."""
    kinds = []
    with suppress(EyespotError):
        kinds += [note.dtype] if (note := glance(shard, stem)) else []
    with suppress(Exception), (shard / f"{stem}.npy").open("rb") as file:  # a damaged head can raise nearly anything
        np.lib.format.read_magic(file)
        kinds.append(np.lib.format.read_array_header_1_0(file)[2].name)
    return next((kind for kind in kinds if kind in ("float32", "float16")), "")
