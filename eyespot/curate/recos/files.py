"""A ReCoS set on disk, as `eyespot eval recos` reads it: two tables, and the pictures themselves.

images    image, subtask, version, path, source, stand_in, of (the picture that it is like), licence, author, url
captions  id, image, text, version, dis, rounds, attribute, edits, original (what it was made from),
          review (confirmed or mended by a person, undecided: put to one, never: put to nobody),
          unseen (true unless a person confirmed or mended it), mended (dis and rounds are not known of the new words)

`hub/images.parquet` is the table of images with the pictures inside: `datasets` finds none by a path in a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from eyespot.curate._attribution import Attribution
from eyespot.curate.recos.checking import MENDED, NEVER, is_seen
from eyespot.curate.recos.sources import Sources
from eyespot.gallery.photos.sources import read_again
from eyespot.pipelines import Record
from eyespot.runs.recos import VERSIONS
from eyespot.storage.atomic import new_folder
from eyespot.storage.files import write_whole
from eyespot.types import EyespotError

TEXT, WHOLE, SHARE, YES = "string", "int64", "float64", "bool_"  # arrow's names
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "images": dict.fromkeys(
        ("image", "subtask", "version", "path", "source", "stand_in", "of", *Attribution._fields), TEXT
    ),
    "captions": {
        **dict.fromkeys(("id", "image", "text", "version"), TEXT),
        **{"dis": SHARE, "rounds": WHOLE, "attribute": TEXT, "edits": WHOLE, "original": TEXT, "review": TEXT},
        **{"unseen": YES, "mended": YES},
    },
}


SHOWN = "hub/images.parquet"
TABLES = {"captions": {"whole": "captions.parquet"}, "images": {"whole": SHOWN}}
"""As `datasets` loads them."""
AT_ONCE = 64  # pictures in memory


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
        rights = sources.attributions(pictures.values())
        images = []
        for image, one in pictures.items():
            # The picture's file in the folder, byte for byte, so that its id stays; its path there
            place = sources.place(one)
            path = Path("images") / one["subtask"] / f"{one['image']}{place.suffix.lower()}"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            try:
                (folder / path).write_bytes(read_again(str(place)))
            except OSError as error:
                raise EyespotError(
                    f"{place} cannot be read any more ({error.strerror}); bring it back and run again"
                ) from None
            text = str(path.as_posix())
            images.append({**one, "path": text, **rights.get(image, {})})
        _write(folder / "images.parquet", images, COLUMNS["images"])
        _write_shown(folder, images)
        _write(folder / "captions.parquet", map(_caption, captions), COLUMNS["captions"])
    return _counts(pictures.values(), captions)


def _caption(record: Record) -> dict[str, Any]:
    review = record.get("review") or NEVER
    return {**record, "review": review, "unseen": not is_seen(record), "mended": review == MENDED}


def _counts(pictures: Iterable[Record], captions: Iterable[Record]) -> dict[str, dict[str, int]]:
    images, texts = ([VERSIONS.index(one["version"]) for one in several] for several in (pictures, captions))
    return {
        version: {"images": sum(one <= at for one in images), "captions": sum(one <= at for one in texts)}
        for at, version in enumerate(VERSIONS)
    }


def _write_shown(folder: Path, images: Sequence[Mapping[str, Any]]) -> None:
    """The table of images with a column `picture` that `datasets` takes for pictures; a few in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = COLUMNS["images"]
    features = {"picture": {"_type": "Image"}} | {
        name: {"_type": "Value", "dtype": kind} for name, kind in texts.items()
    }
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    told: dict[bytes | str, bytes | str] = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema([("picture", picture), *((name, pa.string()) for name in texts)], told)
    (folder / SHOWN).parent.mkdir()
    with pq.ParquetWriter(folder / SHOWN, schema) as writer:
        for at in range(0, len(images), AT_ONCE):
            rows = []
            for one in images[at : at + AT_ONCE]:
                path = folder / one["path"]
                hub_picture = {name: one.get(name) for name in COLUMNS["images"]} | {
                    "picture": {"bytes": path.read_bytes(), "path": path.name}
                }
                rows.append(hub_picture)
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _write(path: Path, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    table = pa.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows], schema)

    def put(file: IO[bytes]) -> None:
        pq.write_table(table, file, compression="zstd")

    write_whole(path, put)
