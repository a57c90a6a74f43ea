"""COCO JSON as a list of pictures: images with the taxonomy of their categories, as iNaturalist's data sets come.

The file is read twice, an element at a time: first for ids, categories, licences and annotations, then for its images.
In memory an id is its 64-bit hash: two ids of a list of ten million share one once in 300,000 lists.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.photos.json_lists import lists_of
from eyespot.storage.text_files import id_of

_DATES = ("date", "date_captured")
_CATEGORY_COLUMNS = {"id": "category_id", "name": "category"}  # columns of a category beside those of an image
_NO_ID = -1  # which is not a hash of a text


@dataclass
class _Sections:
    """What the first reading leaves; a category is its number among those that annotations name."""

    images: array[int] = field(default_factory=lambda: array("q"))  # (images,), hashes of ids
    annotated: array[int] = field(default_factory=lambda: array("q"))  # (annotations,), hashes of the ids of images
    category: array[int] = field(default_factory=lambda: array("i"))  # (annotations,); -1: none
    numbers: dict[str, int] = field(default_factory=dict)
    categories: dict[str, dict[str, Any]] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, place: Path) -> _Sections:
        """Those of a file; ValueError for one that is not COCO JSON."""
        sections, keys = cls(), set()
        for key, elements in lists_of(place):
            keys.add(key)
            if key in ("images", "annotations", "categories", "licenses"):
                if elements is None:
                    raise ValueError(f"its {key} are not a list")
                for element in elements:
                    sections._add(key, element if isinstance(element, dict) else {})
        if "images" not in keys:
            known = ", ".join(sorted(keys)[:12]) or "none"
            raise ValueError(f"no COCO JSON: has no list of images; there are: {known}")
        return sections

    def _add(self, section: str, element: Mapping[str, Any]) -> None:
        id = id_of(element.get("id"))
        if section == "images":
            self.images.append(_NO_ID if id is None else hash(id))
        elif section == "annotations":
            image, category = (id_of(element.get(f"{name}_id")) for name in ("image", "category"))
            self.annotated.append(_NO_ID if image is None else hash(image))
            self.category.append(-1 if category is None else self.numbers.setdefault(category, len(self.numbers)))
        elif section == "categories" and id:
            facts = {
                _CATEGORY_COLUMNS.get(name, name): value
                for name, value in element.items()
                if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
            }
            self.categories.setdefault(id, facts)
        elif section == "licenses" and id and (name := id_of(element.get("name")) or id_of(element.get("url"))):
            self.licences.setdefault(id, name)


def images_of(place: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Every image with its facts, and what cannot be used, each at its place in `images` (from 1).

    `image_id`, `file_name`, `category`, `category_id`, the other columns of the category, `license` by its name,
    `taken`, and the image's own columns. Several categories of an image stand in one text, `a; b`, each column sorted.
    Annotations that name what is not there stand at the place of the first one. Raises ValueError for a file that is no
    COCO JSON, OSError as `open` does.
    """
    sections = _Sections.read(place)
    ids, category = np.array(sections.images, np.int64), np.array(sections.category, np.int32)
    repeated = ~np.isin(np.arange(len(ids)), np.unique(ids, return_index=True)[1]) & (ids != _NO_ID)
    # Where the image of each annotation stands first, (annotations,); -1 for nowhere
    annotated = np.array(sections.annotated, np.int64)
    unique, first = np.unique(np.append(ids, _NO_ID), return_index=True)
    near = np.minimum(np.searchsorted(unique, annotated), len(unique) - 1)
    at = np.where((unique[near] == annotated) & (annotated != _NO_ID), first[near], -1)
    unknown = [number for id, number in sections.numbers.items() if id not in sections.categories]
    yield from _first(at < 0, "names no image that is listed")
    yield from _first(np.isin(category, unknown), "names no category that is listed")
    columns = [sections.categories.get(id, {"category_id": id}) for id in sections.numbers]
    count, used = max(len(columns), 1), (at >= 0) & (category >= 0)
    pairs = np.unique(at[used] * count + category[used])  # of image and category
    ends = np.searchsorted(pairs // count, np.arange(len(ids) + 1))  # of the pairs of each image
    images = (image for key, elements in lists_of(place) if key == "images" for image in elements or ())
    for number, (image, again) in enumerate(zip(images, repeated.tolist(), strict=False), 1):
        if not isinstance(image, dict):
            yield number, "is not a JSON object"
        elif id_of(image.get("id")) is None:
            yield number, "has no id"
        elif again:
            yield number, f"has the id {image['id']!r:.40} of an image before it"
        else:
            facts = {name: value for name, value in image.items() if name not in ("id", *_DATES)}
            facts |= {"image_id": image["id"], "file_name": image.get("file_name")}
            facts["taken"] = next((image[name] for name in _DATES if image.get(name)), None)
            licence = image.get("license")
            facts["license"] = sections.licences.get(id_of(licence) or "", licence)
            numbers = (pairs[ends[number - 1] : ends[number]] % count).tolist()
            yield number, _joined([columns[one] for one in numbers]) | facts


def _first(wrong: NDArray[np.bool_], what: str) -> Iterator[tuple[int, str]]:
    """The first of the annotations with a fault, and how many there are."""
    if wrong.any():
        at, count = int(wrong.argmax()) + 1, int(wrong.sum())
        yield at, f"annotation {at} {what}{f' ({count} such annotations)' if count > 1 else ''}"


def _joined(categories: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns of an image's categories: one value as it is, several sorted in one text."""
    joined = {}
    for name in dict.fromkeys(name for columns in categories for name in columns):
        values = {columns[name] for columns in categories if name in columns}
        ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
        joined[name] = ordered[0] if len(ordered) == 1 else "; ".join(map(str, ordered))
    return joined
