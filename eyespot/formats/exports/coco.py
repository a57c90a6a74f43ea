"""COCO JSON: `annotations.json` with images, licences, categories and boxes, and the pictures in `images/`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportRows

ABOUT = "Write COCO JSON with the pictures; categories come from a column, and boxes from the column `boxes`."
OPTIONS = ("category",)
_HELD = ("id", "width", "height", "licence", "author", "taken", "boxes")  # which COCO has names of its own for


def write(rows: ExportRows, folder: Path) -> int:
    """`images/` and `annotations.json`; an image's number is its place, and its id in the gallery is `eyespot_id`."""
    from eyespot.formats.exporting import boxes_of, known_facts
    from eyespot.formats.exports._names import FileNames

    column = rows.column(rows.options.category) if rows.options.category else None
    names, images = FileNames(), list[dict[str, Any]]()
    pairs: list[tuple[int, int, list[float] | None]] = []
    categories, licences = _Numbers(), _Numbers()
    (folder / "images").mkdir()
    for row, picture in rows.pictures():
        name = f"images/{names.take(picture.name, picture.suffix)}"
        (folder / name).write_bytes(picture.data)
        facts, number = known_facts(row.facts), len(images) + 1
        images.append(_image(number, name, picture.size, facts, licences))
        if column and facts.get(column) is not None:
            pairs.append((number, categories.of(str(facts[column])), None))
        for kind, _, shares in boxes_of(facts.get("boxes")):
            box = [round(share * side, 1) for share, side in zip(shares, picture.size * 2, strict=True)]
            pairs.append((number, categories.of(kind), box))
    with (folder / "annotations.json").open("wb") as file:
        write_coco(
            file,
            {"description": "written by eyespot export coco"},
            {
                "licenses": ({"id": at, "name": name, "url": _address(name)} for name, at in licences.items()),
                "categories": ({"id": at, "name": name, "supercategory": ""} for name, at in categories.items()),
                "images": images,
                "annotations": (_annotation(at, *pair) for at, pair in enumerate(pairs, 1)),
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


def _image(number: int, name: str, size: tuple[int, int], facts: dict[str, Any], licences: _Numbers) -> dict[str, Any]:
    own = {"id": number, "file_name": name, "width": size[0], "height": size[1], "eyespot_id": facts["id"]}
    if "licence" in facts:
        own["license"] = licences.of(facts["licence"])
    if "author" in facts:
        own["rights_holder"] = facts["author"]
    if "taken" in facts:
        own["date_captured"] = facts["taken"]
    return own | {column: value for column, value in facts.items() if column not in (*_HELD, *own)}


def _annotation(number: int, image: int, category: int, box: list[float] | None) -> dict[str, Any]:
    pair = {"id": number, "image_id": image, "category_id": category}
    return pair if box is None else pair | {"bbox": box, "area": round(box[2] * box[3], 1), "iscrowd": 0}


def _address(licence: str) -> str:
    return licence if "://" in licence else ""
