"""COCO JSON: `annotations.json` with images, licences, categories and boxes, and the pictures in `images/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from eyespot.formats.folders import FileNames

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write COCO JSON with the pictures; categories come from a column, and boxes from the column `boxes`."
OPTIONS = ("category",)
_RENAMED = {"author": "rights_holder", "taken": "date_captured"}
_HELD = ("id", "width", "height", "licence", "boxes", *_RENAMED)  # which COCO has names of its own for


def write(rows: ExportRows, folder: Path) -> int:
    """`images/` and `annotations.json`; an image's number is its place, and its id in the gallery is `eyespot_id`."""
    from eyespot.formats.exporting import boxes_of, known_facts

    column = rows.column(rows.options.category) if rows.options.category else None
    names, images = FileNames(), list[dict[str, Any]]()
    annotations: list[dict[str, Any]] = []
    categories, licences = _Numbers(), _Numbers()
    (folder / "images").mkdir()
    for row, picture in rows.pictures():
        name = f"images/{names.take(picture.name, picture.suffix)}"
        (folder / name).write_bytes(picture.data)
        facts, number = known_facts(row.facts), len(images) + 1
        image = {"id": number, "file_name": name, "width": picture.size[0], "height": picture.size[1]}
        image |= {"eyespot_id": facts["id"]}
        if "licence" in facts:
            image["license"] = licences.of(facts["licence"])
        image |= {other: facts[one] for one, other in _RENAMED.items() if one in facts}
        images.append(image | {one: value for one, value in facts.items() if one not in (*_HELD, *image)})
        if column and facts.get(column) is not None:
            annotations.append({"image_id": number, "category_id": categories.of(str(facts[column]))})
        for kind, _, shares in boxes_of(facts.get("boxes")):
            box = [round(share * side, 1) for share, side in zip(shares, picture.size * 2, strict=True)]
            pair = {"image_id": number, "category_id": categories.of(kind)}
            annotations.append({**pair, "bbox": box, "area": round(box[2] * box[3], 1), "iscrowd": 0})
    with (folder / "annotations.json").open("wb") as file:
        write_coco(
            file,
            {"description": "written by eyespot export coco"},
            {
                "licenses": (
                    {"id": at, "name": name, "url": name if "://" in name else ""} for name, at in licences.items()
                ),
                "categories": ({"id": at, "name": name, "supercategory": ""} for name, at in categories.items()),
                "images": images,
                "annotations": ({"id": at, **annotation} for at, annotation in enumerate(annotations, 1)),
            },
        )
    return len(images)


def write_coco(file: IO[bytes], info: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
    """A COCO JSON file, an element a line: the lists are read once and never held."""
    file.write(b'{"info": ' + _json(info))
    for name, values in lists.items():
        file.write(b',\n"' + name.encode() + b'": [')
        for at, value in enumerate(values):
            file.write((b",\n" if at else b"\n") + _json(value))
        file.write(b"]")
    file.write(b"}\n")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


class _Numbers(dict[str, int]):
    """Numbers from 1 for texts, in the order in which they come."""

    def of(self, text: str) -> int:
        return self.setdefault(text, len(self) + 1)
