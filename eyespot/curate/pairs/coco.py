"""COCO captions: `captions_train2017.json` and its like, about five sentences a picture.

The file is read twice, an element at a time, since `images` may stand before `annotations`; captions stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eyespot.curate.pair_set import CAPTIONS, LEFT_OUT, PICTURES, LeftOut, PairRow, digest
from eyespot.photos.json_lists import lists_of
from eyespot.storage.ids import id_of
from eyespot.storage.systems import relative_path
from eyespot.storage.text_files import refuse
from eyespot.types import Progress


@dataclass(frozen=True)
class Coco:
    """Files of captions, and the folder where their pictures lie. `without`: ids of images that give no pair.

    train2017 is train2014 and val2014 less 5,000 images, so it holds most of the 5,000 images of val2014 that are the
    usual test set: leave those out by their ids.
    """

    files: Sequence[Path]
    images: Path
    out: Path
    without: frozenset[str] = frozenset()

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """A list of pictures, and their captions."""
        return {PICTURES: ("file_name", "image_id"), CAPTIONS: ("file_name", "caption")}

    @property
    def settings(self) -> Mapping[str, Any]:
        """Where the pictures lie, and which are left out."""
        return {"images": str(self.images.absolute()), "without": digest(self.without)}

    def begin(self, done: Sequence[Path], tell: Progress) -> None:
        """Nothing has to be known."""

    def read(self, file: Path) -> Iterator[PairRow | LeftOut]:
        """Each image in its order, with its captions in theirs."""
        try:
            texts: dict[str, list[str]] = {}  # by image
            for element in _elements(file, "annotations"):
                fields = element if isinstance(element, dict) else {}
                image_id, text = id_of(fields.get("image_id")), " ".join(str(fields.get("caption") or "").split())
                if image_id and text:
                    texts.setdefault(image_id, []).append(text)
            folder = relative_path(self.images, self.out / file.stem)
            for number, image in enumerate(_elements(file, "images"), 1):
                id, name = (image.get("id"), image.get("file_name")) if isinstance(image, dict) else (None, None)
                captions = texts.pop(id_of(id) or "", [])
                if not isinstance(name, str) or not name or id_of(id) is None:
                    yield LeftOut(f"image {number}", "has no id or no file_name")
                elif str(id) in self.without:
                    yield LeftOut(f"image {id}", LEFT_OUT)
                elif not captions:
                    yield LeftOut(f"image {id}", "has no caption")
                else:
                    yield PairRow(PICTURES, {"file_name": f"{folder}/{name}", "image_id": str(id)})
                    yield from (PairRow(CAPTIONS, {"file_name": name, "caption": one}) for one in captions)
        except (ValueError, OSError) as error:
            refuse(file, "", f"is no COCO JSON ({error})")
        yield from (LeftOut(f"image {id}", "is not listed among the images") for id in texts)


def _elements(file: Path, wanted: str) -> Iterator[Any]:
    for key, elements in lists_of(file):
        if key == wanted and elements is not None:
            yield from elements
