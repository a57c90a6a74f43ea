"""Labelled pictures as they are published: a folder for each class, a table, UnED's info files, a gallery.

UnED (Ypsilantis et al., ICCV 2023, "Universal Embeddings"): `info_files/DATASET/train.json`, a list of objects with
`path`, below the folder of all pictures, and `class_id`, a number that means a class of its data set alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eyespot.gallery import disk, items_table
from eyespot.gallery.groups.near_duplicates import lacks_hashes, read_hashes
from eyespot.gallery.view import Gallery
from eyespot.photos.found import Labels, Seen, Unreadable
from eyespot.photos.json_lists import elements_of
from eyespot.photos.names import stored_name
from eyespot.photos.places import full_path
from eyespot.photos.sources import root_of, scan
from eyespot.settings.build import LabelledSettings
from eyespot.storage.text_files import id_of, refuse
from eyespot.types import NothingFound, UsageError

LABEL_COLUMNS = ("label", "class_id", "class", "species", "category")
MANY = "has several labels"


@dataclass(frozen=True)
class LabelledPicture:
    """A picture, or one thing that is known of it: `label` or `there` may come apart from each other.

    `name` is its full path, or its id in a gallery; `hashes` its perceptual hashes, 64 bytes, where they are known.
    """

    name: str
    label: str | None = None
    there: bool = False
    hashes: bytes | None = None


@dataclass(frozen=True)
class Unlabelled:
    """What gives no picture with a label, and why."""

    name: str
    reason: str


def is_gallery(source: LabelledSettings) -> bool:
    """Whether it is a gallery, whose pictures are known by their ids."""
    return (source.place / "gallery.toml").is_file()


def root_folder(source: LabelledSettings) -> Path:
    """The folder that the pictures' paths begin in."""
    place = source.place
    beside = place.parent
    return source.images or (beside / "images" if _info_files(source) else beside if place.is_file() else place)


def reader(source: LabelledSettings) -> Callable[[], Iterator[LabelledPicture | Unlabelled]]:
    """The reader of its layout; `UsageError` if there is nothing."""
    if not source.place.exists():
        raise UsageError(f"there is nothing at {source.place}; name a folder, a table or a gallery")
    if is_gallery(source):
        return lambda: _of_gallery(source)
    if files := _info_files(source):
        return lambda: _of_info_files(source, files)
    return lambda: _of_files(source)


def _info_files(source: LabelledSettings) -> list[Path]:
    """UnED's files of the split, by data set; none in another layout."""
    folders = (source.place, source.place / "info_files")
    return next((found for folder in folders if (found := sorted(folder.glob(f"*/{source.split}.json")))), [])


def _of_info_files(source: LabelledSettings, files: list[Path]) -> Iterator[LabelledPicture | Unlabelled]:
    images = root_folder(source)
    for file in files:
        try:
            for number, element in enumerate(elements_of(file), 1):
                fields = element if isinstance(element, dict) else {}
                path, label = fields.get("path"), fields.get("class_id")
                classes = label if isinstance(label, list) else [label]
                if not isinstance(path, str) or not path or any(id_of(one) is None for one in classes):
                    yield Unlabelled(f"{file}: entry {number}", "has no path or no class_id")
                elif len(classes) != 1:
                    yield Unlabelled(str(images / path), MANY)
                else:
                    yield LabelledPicture(str(images / path), f"{file.parent.name}/{classes[0]}", there=True)
        except (ValueError, OSError) as error:
            refuse(file, "", f"is not a list of UnED ({error})")


def _of_files(source: LabelledSettings) -> Iterator[LabelledPicture | Unlabelled]:
    """A table, or a folder: the label is that of the column, else the name of the folder that the picture is in."""
    root = root_of(str(source.place))
    if root.kind not in ("folder", "list"):
        raise UsageError(f"{source.place} is a {root.kind}; index it, and give the gallery with --label COLUMN")
    columns = (source.label,) if source.label else LABEL_COLUMNS if root.kind == "list" else ()
    known = set[str]()
    for record in scan(root):
        if isinstance(record, Seen):
            folder, slash, _ = record.path.rpartition("/")
            label = folder if slash and not columns else None
            yield LabelledPicture(stored_name(full_path(root, record.path)), label, there=True)
        elif isinstance(record, Labels):
            known |= set(record.facts)
            if column := next((one for one in columns if one in record.facts), None):
                yield LabelledPicture(stored_name(full_path(root, record.path)), str(record.facts[column]))
        elif isinstance(record, Unreadable):
            yield Unlabelled(record.path, record.reason)
    if source.label and source.label not in known:
        raise NothingFound(f"{source.place} has no label {source.label}; it has: {', '.join(sorted(known)) or 'none'}")


def _of_gallery(source: LabelledSettings) -> Iterator[LabelledPicture | Unlabelled]:
    """The pictures that are there, with a label column of the gallery and the hashes that its index made."""
    column, known = source.label, set[str]()
    if column is None:
        raise UsageError(f"{source.place} is a gallery; say with --label which of its columns names the class")
    for shard in disk.shard_paths(Gallery(source.place).path):
        if lacks_hashes(shard) and not disk.is_imported(shard):
            line = f"eyespot index --repair -g {source.place}"
            raise UsageError(f"{source.place} has pictures without perceptual hashes, needed to know copies: {line}")
        table = items_table.read_items(shard)
        known |= set(table.column_names)
        if column in table.column_names:
            hashes, *_ = read_hashes(shard, table.num_rows)
            names = (table[name].to_pylist() for name in ("id", "live", column))
            for name, live, label, signs in zip(*names, hashes, strict=True):
                if live:
                    yield LabelledPicture(
                        str(name),
                        None if label is None else str(label),
                        there=True,
                        hashes=np.ascontiguousarray(signs, "<u8").tobytes(),
                    )
    if column not in known:
        raise NothingFound(f"{source.place} has no column {column}; it has: {', '.join(sorted(known))}")
