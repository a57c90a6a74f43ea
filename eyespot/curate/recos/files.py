"""A ReCoS set on disk, as `eyespot eval recos` reads it: two tables, and the pictures themselves.

images    image, subtask, version, path, source, stand_in, of (the picture that it resembles), licence, author, url
captions  id, image, text, version, dis, rounds, attribute, edits, original (the caption it was made from),
          review (confirmed: a person accepted it; changed: a person rewrote it, so that its dis and rounds are
          unknown; unseen: no person decided on it)

`hub/images.parquet` is the table of images with the pictures inside: `datasets` does not follow a path in a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eyespot.curate._attribution import Attribution
from eyespot.curate.recos.checking import UNSEEN, is_seen
from eyespot.curate.recos.sources import Sources
from eyespot.formats.positions import PictureBytes, without_position
from eyespot.photos.pictures import BadPicture, id_of
from eyespot.photos.sources import read_again
from eyespot.pipelines import Record
from eyespot.runs.recos import VERSIONS
from eyespot.storage.atomic import new_folder, write_whole
from eyespot.types import EyespotError

TEXT, WHOLE, SHARE = "string", "int64", "float64"  # arrow's names
IMAGES = ("image", "subtask", "version", "path", "source", "stand_in", "of", *Attribution._fields)
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "images": dict.fromkeys(IMAGES, TEXT),
    "captions": {
        **dict.fromkeys(("id", "image", "text", "version"), TEXT),
        **{"dis": SHARE, "rounds": WHOLE, "attribute": TEXT, "edits": WHOLE, "original": TEXT, "review": TEXT},
    },
}
SHOWN = "hub/images.parquet"
TABLES = {"captions": {"whole": "captions.parquet"}, "images": {"whole": SHOWN}}
"""As `datasets` loads them."""
AT_ONCE = 64  # pictures in memory


Share = Callable[[bytes, str], PictureBytes]
"""What becomes of a picture's bytes: `without_position`, or `as_it_is`."""


def write_set(
    records: Iterable[Record], sources: Sources, out: Path, share: Share = without_position
) -> dict[str, dict[str, int]]:
    """Write the set to the folder `out`, in place of an earlier one; how many images and captions a version has.

    A picture whose bytes change has another id in the set; pictures that differed in their metadata only become one.
    Raises `EyespotError` for one that cannot be read any more.
    """
    rows = sorted(records, key=lambda record: (VERSIONS.index(record["version"]), record["subtask"]))
    pictures: dict[str, Record] = {}
    for record in rows:
        pictures.setdefault(record["image"], record)
    captions = []
    for record in rows:
        if "text" in record:
            captions.append({**record, "review": record["review"] if is_seen(record) else UNSEEN})
    with new_folder(out) as folder:
        rights = sources.attributions(pictures.values())
        ids: dict[str, str] = {}
        by_id: dict[str, dict[str, Any]] = {}
        for image, record in pictures.items():
            ids[image], path = _copy_picture(record, sources.place(record), folder, share)
            by_id.setdefault(ids[image], {**record, "path": path, **rights.get(image, {})})
        images = list(by_id.values())
        for row in (*images, *captions):
            row.update({name: ids.get(row[name], row[name]) for name in ("image", "of") if row.get(name)})
        _write(folder / "images.parquet", images, COLUMNS["images"])
        _write_hub_images(folder, images)
        _write(folder / "captions.parquet", captions, COLUMNS["captions"])
    counts = {}
    for number, version in enumerate(VERSIONS, 1):
        held = VERSIONS[:number]  # a version contains those before it
        images_held, captions_held = ([r for r in table if r["version"] in held] for table in (images, captions))
        counts[version] = {"images": len(images_held), "captions": len(captions_held)}
    return counts


def _copy_picture(record: Record, place: Path, folder: Path, share: Share) -> tuple[str, str]:
    """Copy a picture; its id, which is that of its bytes, and its path in the folder."""
    try:
        data = read_again(str(place))
        shared = share(data, place.suffix.lower())
    except (OSError, BadPicture) as error:
        why = error.reason if isinstance(error, BadPicture) else error.strerror
        raise EyespotError(f"{place} cannot be read any more ({why}); restore it and run again") from None
    image = record["image"] if shared.data == data else id_of(shared.data)
    path: Path = Path("images") / record["subtask"] / f"{image}{shared.suffix}"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(shared.data)
    return image, path.as_posix()


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
