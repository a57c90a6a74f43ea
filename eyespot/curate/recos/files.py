"""A ReCoS set on disk, as `eyespot eval recos` and `datasets` read it.

`review` of a caption: a person accepted it (confirmed) or rewrote it (changed), or nobody decided on it (unseen).

`hub/images.parquet` is the table of images with the pictures inside: `datasets` does not follow a path in a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eyespot.curate.recos.checking import UNSEEN, is_seen
from eyespot.curate.recos.pictures import Sources
from eyespot.curate.set_folder import IMAGE, RIGHTS, SHARE, TEXT, WHOLE, SharePicture, shared_picture, write_table
from eyespot.formats.pictures import without_position
from eyespot.photos.pictures import id_of
from eyespot.pipelines import Record
from eyespot.runs.recos import VERSIONS
from eyespot.storage.atomic import new_folder

IMAGES = ("image", "subtask", "version", "path", "source", "stand_in", "of", *RIGHTS)
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "images": dict.fromkeys(IMAGES, TEXT),
    "captions": {
        **dict.fromkeys(("id", "image", "text", "version"), TEXT),
        **{"dis": SHARE, "rounds": WHOLE, "attribute": TEXT, "edits": WHOLE, "original": TEXT, "review": TEXT},
    },
}
SHOWN, MAIN = "hub/images.parquet", "captions.parquet"
TABLES = {"captions": {"whole": MAIN}, "images": {"whole": SHOWN}}
AT_ONCE = 64  # pictures in memory


def write_set(
    records: Iterable[Record], sources: Sources, out: Path, share: SharePicture = without_position
) -> dict[str, dict[str, int]]:
    """Write the set to the folder `out`, in place of an earlier one; how many images and captions a version has.

    A picture whose bytes change has another id in the set; pictures that differed in their metadata only become one.
    Raises `EyespotError` for one that cannot be read any more.
    """
    rows = sorted(records, key=lambda record: (VERSIONS.index(record["version"]), record["subtask"]))
    pictures: dict[str, Record] = {}
    for record in rows:
        pictures.setdefault(record["image"], record)
    captions = [{**r, "review": r["review"] if is_seen(r) else UNSEEN} for r in rows if "text" in r]
    with new_folder(out) as folder:
        rights = sources.attributions(pictures.values())
        ids: dict[str, str] = {}
        by_id: dict[str, dict[str, Any]] = {}
        for image, record in pictures.items():
            place = sources.place(record)
            data, shared = shared_picture(place, place.suffix.lower(), share)
            ids[image] = record["image"] if shared.data == data else id_of(shared.data)
            path: Path = Path("images") / record["subtask"] / f"{ids[image]}{shared.suffix}"
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(shared.data)
            by_id.setdefault(ids[image], {**record, "path": path.as_posix(), **rights.get(image, {})})
        images = list(by_id.values())
        for row in (*images, *captions):
            row.update({name: ids.get(row[name], row[name]) for name in ("image", "of") if row.get(name)})
        write_table(folder / "images.parquet", images, COLUMNS["images"])
        (folder / SHOWN).parent.mkdir()
        pictures_inside = (
            {**row, "picture": {"bytes": (folder / row["path"]).read_bytes(), "path": Path(row["path"]).name}}
            for row in images
        )
        write_table(folder / SHOWN, pictures_inside, {"picture": IMAGE, **COLUMNS["images"]}, AT_ONCE)
        write_table(folder / MAIN, captions, COLUMNS["captions"])
    counts = {}
    for number, version in enumerate(VERSIONS, 1):
        held = VERSIONS[:number]  # a version contains those before it
        images_held, captions_held = ([r for r in table if r["version"] in held] for table in (images, captions))
        counts[version] = {"images": len(images_held), "captions": len(captions_held)}
    return counts
