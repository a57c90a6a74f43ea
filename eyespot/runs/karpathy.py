"""Captions and their images, both ways: Karpathy's split of COCO and Flickr30K, and the fine-grained FG captions.

`dataset_coco.json` and `dataset_flickr30k.json` hold all splits; the tests take the first five captions of an image
(COCO's 5,000 × 5 of 25,010). An image's id is its `cocoid`, or its file name without the ending (Flickr30K has no
other); a caption's id is its `sentid`. The FG files are {file name without ending: [caption, …]}: a caption's id there
is `image#0` to `image#4`, and a pool of more images is a list of their file names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.runs.matrix import ids_in_npy
from eyespot.storage.text_files import id_of, json_of, refuse
from eyespot.types import Qrels

CAPTIONS = 5


@dataclass(frozen=True)
class KarpathyCaptions:
    """Images with their captions, each by its id."""

    source: str
    images: dict[str, Columns]
    texts: dict[str, Columns]  # `text`, and `image`: the id of the image that it describes


def read(path: Path, split: str = "test", captions: int = CAPTIONS) -> KarpathyCaptions:
    """The images of a split, each with its first captions; FG's files have one split only."""
    data = json_of(path)
    if not isinstance(data, dict):
        refuse(path, "", "holds no object; expected Karpathy's {images: […]} or FG's {image: [caption, …]}")
    rows = _of_split(path, data["images"], split) if isinstance(data.get("images"), list) else _fine_grained(data)
    images: dict[str, Columns] = {}
    texts: dict[str, Columns] = {}
    for number, (image, facts, sentences) in enumerate(rows, 1):
        if image is None or image in images or not sentences:
            refuse(path, f"image {number}", "has no id of its own, or no captions")
        images[image] = facts
        own: dict[str, Columns] = {}
        for id, text in sentences[:captions]:
            if id is None or id in texts or not isinstance(text, str):
                refuse(path, f"image {image!r}", f"has a caption without an id of its own or without text ({id!r})")
            if id in own:
                refuse(path, f"image {image!r}", "has two captions of one id")
            own[id] = {"text": text, "image": image}
        texts |= own
    if not images:
        listed = data["images"] if isinstance(data.get("images"), list) else []
        splits = sorted({str(row.get("split")) for row in listed if isinstance(row, dict)})
        refuse(path, "", f"has no images in the split {split!r}; splits there: {', '.join(splits) or 'none'}")
    return KarpathyCaptions(str(path), images, texts)


def images_of(path: Path) -> list[str]:
    """The images that an FG list names, by file name without ending; `UsageError` for a list of Python objects."""
    return [PurePosixPath(name).stem for name in ids_in_npy(path, "U", "file names, as names.astype(str) has them")]


def text_to_image(captions: KarpathyCaptions) -> JudgedQueries:
    """Captions as queries, images as the pool."""
    grades = {text: {facts["image"]: 1} for text, facts in captions.texts.items()}
    return JudgedQueries(
        captions.texts, Qrels(grades, {"source": captions.source, "direction": "t2i"}), captions.images
    )


def image_to_text(captions: KarpathyCaptions) -> JudgedQueries:
    """Images as queries, captions as the pool."""
    grades: dict[str, dict[str, int]] = {image: {} for image in captions.images}
    for text, facts in captions.texts.items():
        grades[facts["image"]][text] = 1
    return JudgedQueries(
        captions.images, Qrels(grades, {"source": captions.source, "direction": "i2t"}), captions.texts
    )


_Sentences = list[tuple[str | None, Any]]
_Row = tuple[str | None, Columns, _Sentences]


def _of_split(path: Path, images: list[Any], split: str) -> Iterator[_Row]:
    for at, row in enumerate(images, 1):
        if not isinstance(row, dict) or not isinstance(row.get("sentences"), list):
            refuse(path, f"image {at}", "is not an object with a list of sentences")
        if row.get("split") == split:
            name = row.get("filename")
            stem = PurePosixPath(name).stem if isinstance(name, str) else row.get("imgid")
            image_path = "/".join(part for part in (row.get("filepath"), name) if isinstance(part, str))
            sentences = [s if isinstance(s, dict) else {} for s in row["sentences"]]
            yield (
                id_of(row.get("cocoid", stem)),
                {"path": image_path},
                [(id_of(s.get("sentid")), s.get("raw")) for s in sentences],
            )


def _fine_grained(data: dict[str, Any]) -> Iterator[_Row]:
    for image, texts in data.items():
        listed = texts if isinstance(texts, list) else []
        yield image or None, {"path": image}, [(f"{image}#{number}", text) for number, text in enumerate(listed)]
