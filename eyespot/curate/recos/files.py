"""A ReCoS set on disk, as `eyespot eval recos` reads it: two tables, and the pictures themselves.

images    image, subtask, version, path, source, stand_in, of (the picture that it resembles), licence, author, url
captions  id, image, text, version, dis, rounds, attribute, edits, original (the caption it was made from),
          review (confirmed or mended by a person, undecided: shown to a person, never: shown to nobody),
          unseen (true unless a person confirmed or mended it), mended (its dis and rounds are unknown)

`hub/images.parquet` is the table of images with the pictures inside: `datasets` does not follow a path in a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
IMAGES = ("image", "subtask", "version", "path", "source", "stand_in", "of", *Attribution._fields)
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "images": dict.fromkeys(IMAGES, TEXT),
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
    """Write the set to the folder `out`, in place of an earlier one; how many images and captions a version has.

    Raises `EyespotError` for a picture that cannot be read any more.
    """
    rows = sorted(records, key=lambda record: (VERSIONS.index(record["version"]), record["subtask"]))
    pictures: dict[str, Record] = {}
    for record in rows:
        pictures.setdefault(record["image"], record)
    captions = []
    for record in rows:
        if "text" in record:
            review = record.get("review") or NEVER
            captions.append({**record, "review": review, "unseen": not is_seen(record), "mended": review == MENDED})
    with new_folder(out) as folder:
        rights = sources.attributions(pictures.values())
        images = []
        for image, record in pictures.items():
            path = _copy_picture(record, sources.place(record), folder)
            images.append({**record, "path": path, **rights.get(image, {})})
        _write(folder / "images.parquet", images, COLUMNS["images"])
        _write_hub_images(folder, images)
        _write(folder / "captions.parquet", captions, COLUMNS["captions"])
    counts = {}
    for number, version in enumerate(VERSIONS, 1):
        held = VERSIONS[:number]  # a version contains those before it
        images_held, captions_held = ([r for r in table if r["version"] in held] for table in (images, captions))
        counts[version] = {"images": len(images_held), "captions": len(captions_held)}
    return counts


def _copy_picture(record: Record, place: Path, folder: Path) -> str:
    """Copy a picture byte for byte, so that its id stays; its path in the folder."""
    path: Path = Path("images") / record["subtask"] / f"{record['image']}{place.suffix.lower()}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    try:
        (folder / path).write_bytes(read_again(str(place)))
    except OSError as error:
        raise EyespotError(f"{place} cannot be read any more ({error.strerror}); restore it and run again") from None
    return path.as_posix()


def _write_hub_images(folder: Path, images: Sequence[Mapping[str, Any]]) -> None:
    """The table of images with a column `picture` for `datasets`; a few pictures in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    features = {"picture": {"_type": "Image"}} | {name: {"_type": "Value", "dtype": TEXT} for name in IMAGES}
    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    metadata: dict[bytes | str, bytes | str] = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema([("picture", picture), *((name, pa.string()) for name in IMAGES)], metadata)
    (folder / SHOWN).parent.mkdir()
    with pq.ParquetWriter(folder / SHOWN, schema) as writer:
        for start in range(0, len(images), AT_ONCE):
            rows = []
            for image in images[start : start + AT_ONCE]:
                path = folder / image["path"]
                rows.append({**image, "picture": {"bytes": path.read_bytes(), "path": path.name}})
            writer.write_table(pa.Table.from_pylist(rows, schema))


def _write(path: Path, rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in columns.items()])
    table = pa.Table.from_pylist(rows, schema)
    write_whole(path, lambda file: pq.write_table(table, file, compression="zstd"))
