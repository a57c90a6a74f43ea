"""A gallery's files: `gallery.toml`, and shards of a table of facts with one array of vectors per space."""

from __future__ import annotations

import json
import os
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from eyespot.gallery.files import (
    FETCHED as FETCHED,
    Damaged,
    is_imported as is_imported,
    map_array,
    way_out as way_out,
    whole,
    why,
)
from eyespot.gallery.items_table import (
    ITEMS as ITEMS,
    LARGE as LARGE,
    ROW_STORE as ROW_STORE,
    WORDS as WORDS,
    count_items,
)
from eyespot.kernels.codes import code_files, delete_codes
from eyespot.photos.found import reason
from eyespot.photos.names import stored_name
from eyespot.photos.places import Root
from eyespot.storage.digests import GONE, damaged_files, new_digested
from eyespot.storage.text_files import toml_text
from eyespot.types import EyespotError, Space, UsageError, Vectors

T = TypeVar("T")
FORMAT = 3  # 2 named what lies in a gallery by whole paths, 1 had no segments; both are read
FACTS = "facts"  # the folder of a gallery's lists of facts, and their kind of root
HEADER = "gallery.toml"
NAMES = "names.sqlite"  # of what is in the pictures, see `taxonomy`
_NAME = re.compile(r"([0-9]+)(?:-([0-9]+))?")  # of a shard, or of the first and last shard of a segment
_FINGERPRINTS = re.compile(r"^(fingerprints) = (\[.*\])$", re.MULTILINE)


class DamagedHeader(EyespotError):
    """`gallery.toml` cannot be read, or is not what was written; all it says stands elsewhere too.

    reason: in a few words, what is wrong with it.
    """

    def __init__(self, gallery: Path, reason: str) -> None:
        line = f"eyespot index -g {quote(str(gallery))}"
        super().__init__(f"{gallery / HEADER} is damaged ({reason}); write it again with: {line}")
        self.reason = reason


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
        header = _parsed(gallery, (gallery / HEADER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if shard_paths(gallery):
            raise DamagedHeader(gallery, GONE) from None
        way = f"make one with: eyespot index PHOTOS -g {gallery}"
        if gallery.is_dir() and next(gallery.iterdir(), None):
            way = f"if it holds photos: eyespot index {gallery}, in Python eyespot.index({str(gallery)!r})"
        raise UsageError(f"there is no gallery at {gallery}; {way}") from None
    except NotADirectoryError:
        raise UsageError(f"{gallery} is a file and no gallery; name a folder with -g") from None
    except OSError as error:
        raise EyespotError(
            f"{gallery / HEADER} cannot be read ({reason(error)}); give yourself the right to read the gallery"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedHeader(gallery, why(error)) from error
    if changed := damaged_files(gallery, [HEADER]).get(HEADER):
        raise DamagedHeader(gallery, changed)
    return header


def _parsed(gallery: Path, text: str) -> Header:
    table = {"default": "", "rows": 0, **tomllib.loads(text)}
    if _typed(table, "format", int) > FORMAT:
        raise EyespotError(
            f"{gallery} has format {table['format']}, this eyespot reads up to {FORMAT}; upgrade eyespot"
        )
    header = Header(default=_typed(table, "default", str), rows=_typed(table, "rows", int))
    for root in table.get("roots", []):
        named = Root(_typed(root, "path", str), _typed(root, "kind", str))
        header.roots[_typed(root, "number", int)] = root_at(gallery, named)
    for space in table.get("spaces", []):
        header.spaces[_typed(space, "stem", str)] = _space(space)
    return header


def _space(table: Mapping[str, Any]) -> Space:
    texts = {name: _typed(table, name, str) for name in ("encoder", "revision", "weights", "preprocessing")}
    return Space(**texts, dim=_typed(table, "dim", int))


def _typed(table: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = table[name]
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
        notes = [note for shard in shard_paths(gallery) for note in read_notes(shard, sound=True)]
        spaces = {stem_of(note.space): note.space for note in notes}
        return Header(spaces=spaces, default=next(iter(spaces), ""))


def growing_encoders(gallery: Path) -> list[str]:
    """The encoders of a gallery's spaces; imported ones do not grow."""
    spaces = read_or_rebuild_header(gallery).spaces.values()
    return [*dict.fromkeys(space.encoder for space in spaces if space.revision != "imported")]


def write_header(gallery: Path, header: Header) -> None:
    """Put `gallery.toml` in place of the old one."""
    roots = [
        {"number": number, **stored_root(gallery, root)._asdict()} for number, root in sorted(header.roots.items())
    ]
    spaces = [{"stem": stem, **asdict(space)} for stem, space in header.spaces.items()]
    head = {"format": FORMAT, "rows": header.rows, "default": header.default}
    with new_digested(gallery / HEADER) as file:
        file.write(toml_text({**head, "roots": roots, "spaces": spaces}).encode())


def stored_root(gallery: Path, root: Root) -> Root:
    """A root as a gallery's files name it: what lies in the gallery from there, `./uploads`, so that it may move."""
    path = _from_here(gallery, root.path)
    is_facts = root.kind == "list" and path.startswith(f"./{FACTS}/")
    return Root(path, FACTS if is_facts else root.kind)


def root_at(gallery: Path, root: Root) -> Root:
    """A root of a gallery's files where it lies now."""
    return root._replace(path=_name_of(gallery) + root.path[1:]) if root.path.startswith("./") else root


def stored_place(gallery: Path, place: str) -> str:
    """A full path as lists of facts name it."""
    return _from_here(gallery, stored_name(os.path.normpath(os.path.join(gallery.absolute(), FACTS, place))))


def _from_here(gallery: Path, stored: str) -> str:
    below = stored.removeprefix(f"{_name_of(gallery)}/")
    return stored if below == stored else f"./{below}"


def _name_of(gallery: Path) -> str:
    return stored_name(os.path.abspath(gallery))


def shard_path(gallery: Path, number: int) -> Path:
    """Where a shard lies, or the segment that begins with it."""
    place = gallery / "shards" / f"{number:05d}"
    found = () if place.is_dir() else place.parent.glob(f"{place.name}-*")
    segments = (segment for segment in found if _NAME.fullmatch(segment.name))
    return max(segments, key=lambda segment: span_of(segment)[1], default=place)


def span_of(shard: Path) -> tuple[int, int]:
    """The numbers of the first and the last shard that lie there; the same number for a plain shard."""
    first, _, last = shard.name.partition("-")
    return int(first), int(last or first)


def number_of(shard: Path) -> int:
    """The number of a shard; a segment has that of its first shard."""
    return span_of(shard)[0]


def places_of(gallery: Path, numbers: Iterable[int]) -> dict[int, Path]:
    """Where each of these shards lies by its number: a folder of its own, or the segment that it was merged into."""
    shards = shard_paths(gallery)
    firsts = [number_of(shard) for shard in shards]
    found = {}
    for number in numbers:
        at = bisect_right(firsts, number) - 1
        inside = at >= 0 and number <= span_of(shards[at])[1]
        found[number] = shards[at] if inside else shard_path(gallery, number)
    return found


def shard_paths(gallery: Path) -> list[Path]:
    """Every finished shard and segment, in order; those that were merged into a segment are no more."""
    return [place for place, is_merged in _places(gallery) if not is_merged]


def merged_paths(gallery: Path) -> list[Path]:
    """Shards whose rows are in a segment now, and which a later run removes."""
    return [place for place, is_merged in _places(gallery) if is_merged]


def last_number(gallery: Path) -> int:
    """The highest number that a shard has, also one within a segment; -1 if there is none."""
    return max((span_of(place)[1] for place, _ in _places(gallery)), default=-1)


def _places(gallery: Path) -> list[tuple[Path, bool]]:
    """Every finished folder of shards in order, and whether a wider one holds its rows too."""
    folder, names = gallery / "shards", list[str]()
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(folder)
    places = [folder / name for name in names if _NAME.fullmatch(name)]
    places.sort(key=lambda place: (number_of(place), -span_of(place)[1]))
    found, end = [], -1
    for place in places:
        found.append((place, span_of(place)[1] <= end))
        end = max(end, span_of(place)[1])
    return found


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
    with new_digested(shard / f"{stem}.npy", (f"{stem}.toml", *code_files(stem))) as file:
        delete_codes(shard / stem)
        np.save(file, vectors, allow_pickle=False)
    write_note(shard, replace(note, checksum=f"blake2b:{file.hex}", dtype=vectors.dtype.name))


def write_note(shard: Path, note: SpaceNote) -> None:
    """Say that a space's vectors are whole, here or at their source."""
    texts = {"digest": note.space.digest, "source": note.source, "checksum": note.checksum, "dtype": note.dtype}
    rest = toml_text({name: text for name, text in texts.items() if text} | {"space": asdict(note.space)})
    # Lists of numbers stand on one line each, as JSON has them: `glance` skips what it does not need, which counts in
    # a gallery of thousands of shards.
    lists = f"missing = {json.dumps(note.missing)}\nfingerprints = {json.dumps(note.fingerprints)}\n"
    with new_digested(shard / f"{stem_of(note.space)}.toml") as file:
        file.write((lists + rest).encode())


def glance(shard: Path, stem: str) -> SpaceNote | None:
    """What `read_note` gives, without fingerprints: a gallery of millions has thousands of notes to search by."""
    return read_note(shard, stem, lambda _: [])


def read_note(shard: Path, stem: str, read_list: Callable[[str], Any] = json.loads) -> SpaceNote | None:
    """The note of a space in a shard, or None if its vectors are not (wholly) there; `EyespotError` if damaged."""
    place = shard / f"{stem}.toml"
    if not place.exists():
        return None
    with whole(place, lambda: way_out(shard)):
        text = place.read_text(encoding="utf-8")
        # TOML is read by Python at a millisecond for a few hundred numbers; as we write a list it is JSON too.
        lists = {line[1]: read_list(line[2]) for line in _FINGERPRINTS.finditer(text)}
        table = {"checksum": "", "dtype": "", **tomllib.loads(_FINGERPRINTS.sub("", text)), **lists}
        missing, fingerprints = _typed(table, "missing", list), _typed(table, "fingerprints", list)
        if any(type(row) is not int or row < 0 for row in missing):
            raise ValueError("missing names no rows")
        texts = [_typed(table, name, str) for name in ("checksum", "dtype")]
        return SpaceNote(_space(table["space"]), missing, fingerprints, table.get("source"), *texts)


def read_notes(shard: Path, sound: bool = False) -> list[SpaceNote]:
    """The notes of all spaces of a shard; those that are damaged raise `Damaged`, or are left out with `sound`."""
    notes = []
    for file in sorted(shard.glob("*.toml")):
        with suppress(*[Damaged] * sound):
            notes.append(read_note(shard, file.stem))
    return [note for note in notes if note]


def map_vectors(shard: Path, stem: str) -> Vectors:
    """One space's vectors, memory-mapped, (rows, dim), float32 or float16; `EyespotError` if their source is gone."""
    note = glance(shard, stem)
    if note is not None and note.source is not None:
        wanted, found = (count_items(shard), note.space.dim), map_array(shard.parents[1] / note.source)
        if not isinstance(found, np.ndarray) or found.shape != wanted or found.dtype not in (np.float32, np.float16):
            raise EyespotError(
                f"{note.source} has changed since it was imported (now {found.dtype} of shape {found.shape}, then "
                f"{wanted[0]} rows of {wanted[1]}); put the old file back or import it into a new gallery"
            )
        return found
    dim = note.space.dim if note else None
    with whole(shard / f"{stem}.npy", lambda: way_out(shard)) as place:
        vectors = np.lib.format.open_memmap(place, mode="r")
        if vectors.ndim != 2 or dim not in (None, vectors.shape[1]):
            raise ValueError(f"it holds an array of shape {vectors.shape}")
        if vectors.dtype not in (np.float32, np.float16):
            raise ValueError(f"it holds {vectors.dtype}")
        if place.stat().st_size != vectors.offset + vectors.nbytes:
            raise ValueError("it is longer than its vectors")
        return vectors


def dtype_of(shard: Path, stem: str) -> str:
    """The type of a space's own vectors in a shard, also where they are damaged; empty if nothing tells it."""
    kinds = []
    with suppress(EyespotError):
        kinds += [note.dtype] if (note := glance(shard, stem)) else []
    with suppress(Exception), (shard / f"{stem}.npy").open("rb") as file:  # a damaged head can raise nearly anything
        np.lib.format.read_magic(file)
        kinds.append(np.lib.format.read_array_header_1_0(file)[2].name)
    return next((kind for kind in kinds if kind in ("float32", "float16")), "")
