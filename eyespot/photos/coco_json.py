"""COCO JSON as a list of pictures: images with the taxonomy of their categories, as iNaturalist's data sets come.

The file is read twice, an element at a time: first for ids, categories, licences and annotations, then for its images.
In memory that is about 200 bytes for each image, a fifth of what the parsed file would be.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from eyespot.photos.found import is_utf8
from eyespot.photos.json_lists import lists_of
from eyespot.storage.ids import id_of

_pc: Any = pyarrow.compute
_PIECE = 1 << 16
_RANGES = {"latitude": 90.0, "longitude": 180.0}
_DATES = ("date", "date_captured")
_OWN = {"id": "category_id", "name": "category"}  # how columns of a category are called beside those of an image

Fault = tuple[int, str]  # an image or annotation by its place in its list, from 1, and what is wrong with it
Row = tuple[int, dict[str, Any]]  # an image by its place, and its facts with `file_name`


def rows_of(place: Path) -> Iterator[Row | Fault]:
    """Every image with its facts, and what cannot be used, each at its place in `images` (from 1).

    `image_id`, `category`, `category_id`, the other columns of the category, `license` by its name, `taken`, and the
    image's own columns. Several categories of an image stand in one text, `a; b`, each column sorted. Raises ValueError
    for a file that is no COCO JSON, OSError as `open` does.
    """
    tables = _read_tables(place)
    kinds = _Kinds(tables)
    yield from kinds.faults()
    images = (image for key, elements in lists_of(place) if key == "images" for image in elements or ())
    for number, (image, repeated) in enumerate(zip(images, tables.images.repeated().tolist(), strict=False), 1):
        if not isinstance(image, dict):
            yield number, "is no JSON object"
        elif id_of(image.get("id")) is None:
            yield number, "has no id"
        elif repeated:
            yield number, f"has the id {image['id']!r:.40} of an image before it"
        else:
            facts, faults = _facts(image, tables.licences)
            yield from ((number, fault) for fault in faults)
            yield number, kinds.of(number - 1) | facts


# -- an image -----------------------------------------------------------------------------------------------


def _facts(image: Mapping[str, Any], licences: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """An image's own columns, and what is wrong with its position."""
    facts = {name: value for name, value in image.items() if name not in ("id", *_DATES)}
    facts |= {"image_id": image["id"], "file_name": image.get("file_name")}
    facts["taken"] = next((image[name] for name in _DATES if image.get(name)), None)
    facts["license"] = licences.get(id_of(image.get("license")) or "", image.get("license"))
    wrong = []
    for name, limit in _RANGES.items():
        within_value = image.get(name)
        # Whether a coordinate is there and sound, or not there at all
        try:
            within = within_value is None or within_value == "" or abs(float(within_value)) <= limit
        except (TypeError, ValueError, OverflowError):
            within = False
        if not within:
            wrong.append(name)
    return facts | dict.fromkeys(wrong), [f"has the {name} {image[name]!r:.40}; it is left out" for name in wrong]


# -- everything else ----------------------------------------------------------------------------------------


class _Texts:
    """A long column of texts, some missing, in the memory of their characters."""

    def __init__(self) -> None:
        self._done: list[Any] = []
        self._open: list[str | None] = []

    def add(self, text: str | None) -> None:
        self._open.append(text if text and is_utf8(text) else None)
        if len(self._open) == _PIECE:
            self._done.append(pa.array(self._open, pa.string()))
            self._open = []

    def __len__(self) -> int:
        return sum(map(len, self._done)) + len(self._open)

    def whole(self) -> Any:
        """The column, as Arrow has it."""
        return pa.chunked_array([*self._done, pa.array(self._open, pa.string())])

    def places_of(self, others: _Texts) -> NDArray[np.int64]:
        """Where each of the others stands first in this column; -1 for nowhere; (others,)."""
        found = _pc.index_in(others.whole(), value_set=self.whole().combine_chunks(), skip_nulls=True)
        places: NDArray[np.int64] = _pc.fill_null(found, -1).to_numpy().astype(np.int64)
        return places

    def repeated(self) -> NDArray[np.bool_]:
        """True where a text stands that stood before; (texts,)."""
        places = self.places_of(self)
        again: NDArray[np.bool_] = np.logical_and(places >= 0, places != np.arange(len(places)))
        return again


@dataclass
class _Tables:
    """The result of the first reading; a category is its number among those that annotations name."""

    images: _Texts = field(default_factory=_Texts)
    annotated: _Texts = field(default_factory=_Texts)  # (annotations,), ids of images
    category: array[int] = field(default_factory=lambda: array("i"))  # (annotations,); -1: none
    numbers: dict[str, int] = field(default_factory=dict)
    categories: dict[str, dict[str, Any]] = field(default_factory=dict)
    licences: dict[str, str] = field(default_factory=dict)

    def add_images(self, images: Iterable[Any]) -> None:
        for image in images:
            self.images.add(id_of(_object(image).get("id")))

    def add_annotations(self, annotations: Iterable[Any]) -> None:
        for annotation in map(_object, annotations):
            category = id_of(annotation.get("category_id"))
            self.annotated.add(id_of(annotation.get("image_id")))
            self.category.append(-1 if category is None else self.numbers.setdefault(category, len(self.numbers)))

    def add_categories(self, categories: Iterable[Any]) -> None:
        for category in categories:
            if id := id_of(_object(category).get("id")):
                facts = {
                    _OWN.get(name, name): value
                    for name, value in category.items()
                    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
                }
                self.categories.setdefault(id, facts)

    def add_licences(self, licences: Iterable[Any]) -> None:
        for licence in map(_object, licences):
            name = id_of(licence.get("name")) or id_of(licence.get("url"))
            if name and (id := id_of(licence.get("id"))):
                self.licences.setdefault(id, name)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read_tables(place: Path) -> _Tables:
    """The whole file once, and only what is needed of it; ValueError if it has no list of images."""
    tables, keys = _Tables(), set()
    readers = {
        "images": tables.add_images,
        "annotations": tables.add_annotations,
        "categories": tables.add_categories,
        "licenses": tables.add_licences,
    }
    for key, elements in lists_of(place):
        keys.add(key)
        if key in readers:
            if elements is None:
                raise ValueError(f"its {key} are no list")
            readers[key](elements)
    if "images" not in keys:
        raise ValueError(f"no COCO JSON: has no list of images; there are: {', '.join(sorted(keys)[:12]) or 'none'}")
    return tables


class _Kinds:
    """The categories of each image: those of image i are `numbers[ends[i]:ends[i + 1]]`."""

    def __init__(self, tables: _Tables) -> None:
        self.unknown = [number for number, id in enumerate(tables.numbers) if id not in tables.categories]
        self.facts = [tables.categories.get(id, {"category_id": id}) for id in tables.numbers]
        self.images = tables.images.places_of(tables.annotated)  # (annotations,)
        self.categories = np.array(tables.category, np.int32)  # (annotations,)
        count, used = max(len(self.facts), 1), (self.images >= 0) & (self.categories >= 0)
        pairs = np.unique(self.images[used] * count + self.categories[used])  # of image and category
        self.numbers = pairs % count
        self.ends = np.searchsorted(pairs // count, np.arange(len(tables.images) + 1))

    def of(self, image: int) -> dict[str, Any]:
        """The columns of an image's categories."""
        numbers = self.numbers[self.ends[image] : self.ends[image + 1]].tolist()
        return self.facts[numbers[0]] if len(numbers) == 1 else _joined([self.facts[number] for number in numbers])

    def faults(self) -> Iterator[Fault]:
        """Annotations that name what is not there: the first of a kind, and how many."""
        yield from _first(self.images < 0, "names no image that is listed")
        yield from _first(np.isin(self.categories, self.unknown), "names no category that is listed")


def _first(wrong: NDArray[np.bool_], what: str) -> Iterator[Fault]:
    if wrong.any():
        at, count = int(wrong.argmax()) + 1, int(wrong.sum())
        yield at, f"annotation {at} {what}{f' ({count} such annotations)' if count > 1 else ''}"


def _joined(facts: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns of several categories: one value as it is, several sorted in one text."""
    joined = {}
    for name in dict.fromkeys(name for columns in facts for name in columns):
        values = {columns[name] for columns in facts if name in columns}
        ordered = sorted(values, key=lambda value: (isinstance(value, str), value))
        joined[name] = ordered[0] if len(ordered) == 1 else "; ".join(map(str, ordered))
    return joined
