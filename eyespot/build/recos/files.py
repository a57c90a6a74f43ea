"""A ReCoS set on disk, as `eyespot eval recos` reads it: two tables, and the pictures themselves.

images    image, subtask, version, path, source, stand_in, of (the picture that it is like)
captions  id, image, text, version, dis, rounds, attribute, edits, original (what it was made from), unseen,
          mended (dis and rounds are not known of the new words)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from eyespot.build._steps import Record
from eyespot.build.recos.sources import Sources
from eyespot.gallery.photos.sources import read_again
from eyespot.runs.files import write_whole
from eyespot.runs.recos import VERSIONS
from eyespot.storage.atomic import new_folder
from eyespot.types import EyespotError

TEXT, WHOLE, SHARE, YES = "string", "int64", "float64", "bool_"  # arrow's names
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "images": dict.fromkeys(("image", "subtask", "version", "path", "source", "stand_in", "of"), TEXT),
    "captions": {
        **dict.fromkeys(("id", "image", "text", "version"), TEXT),
        **{"dis": SHARE, "rounds": WHOLE, "attribute": TEXT, "edits": WHOLE, "original": TEXT, "unseen": YES},
        "mended": YES,
    },
}


TABLES = {name: {"whole": f"{name}.parquet"} for name in ("captions", "images")}
"""As `datasets` loads them."""


def write_set(records: Iterable[Record], sources: Sources, out: Path) -> dict[str, dict[str, int]]:
    """Lay the set out in the folder `out`, in place of an earlier one; how many images and captions a version has.

    Raises `EyespotError` for a picture that cannot be read any more.
    """
    kept = sorted(records, key=lambda record: (VERSIONS.index(record["version"]), record["subtask"]))
    pictures: dict[str, Record] = {}
    for record in kept:
        pictures.setdefault(record["image"], record)
    captions = [record for record in kept if "text" in record]
    with new_folder(out) as folder:
        places = {image: _copied(record, sources, folder) for image, record in pictures.items()}
        _write(folder / "images.parquet", (_image(one, places) for one in pictures.values()), COLUMNS["images"])
        _write(folder / "captions.parquet", map(_caption, captions), COLUMNS["captions"])
    return _counts(pictures.values(), captions)


def _copied(record: Record, sources: Sources, folder: Path) -> str:
    """The picture's file in the folder, byte for byte, so that its id stays; its path there."""
    place = sources.place(record)
    path = Path("images") / record["subtask"] / f"{record['image']}{place.suffix.lower()}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    try:
        (folder / path).write_bytes(read_again(str(place)))
    except OSError as error:
        raise EyespotError(f"{place} cannot be read any more ({error.strerror}); bring it back and run again") from None
    return str(path.as_posix())


def _image(record: Record, places: Mapping[str, str]) -> dict[str, Any]:
    return {**record, "path": places[record["image"]]}


def _caption(record: Record) -> dict[str, Any]:
    return {**record, **{name: bool(record.get(name)) for name in ("unseen", "mended")}}


def _counts(pictures: Iterable[Record], captions: Iterable[Record]) -> dict[str, dict[str, int]]:
    images, texts = ([VERSIONS.index(one["version"]) for one in several] for several in (pictures, captions))
    return {
        version: {"images": sum(one <= at for one in images), "captions": sum(one <= at for one in texts)}
        for at, version in enumerate(VERSIONS)
    }


def _write(path: Path, rows: Iterator[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    table = pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)

    def put(file: IO[bytes]) -> None:
        pq.write_table(table, file, compression="zstd")

    write_whole(path, put)
