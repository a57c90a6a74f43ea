"""ECCV Caption, CxC and COCO 5k: the JSON files of the package eccv-caption, {caption: [image, …]} and back.

Sets of truths over the same 5,000 images and 25,000 captions: `coco` (each caption's own image), `cxc`, `eccv`, which
judges 1,332 captions and 1,261 images only, and `pm`, the plausible matches, whose files come apart. Captions are named
by COCO's annotation ids, not by Karpathy's sentence ids.
"""

from __future__ import annotations

from pathlib import Path

from eyespot.runs.json_scores import ids_of, queries_of
from eyespot.runs.judged import JudgedQueries
from eyespot.runs.matrix import ids_in_npy
from eyespot.storage.text_files import json_of, refuse
from eyespot.types import Qrels, UsageError

FILES = {"coco": "original", "cxc": "cxc", "eccv": "eccv", "pm": "pm"}
WAYS = {"t2i": "caption_to_image", "i2t": "image_to_caption"}


def is_layout(folder: Path) -> bool:
    """Whether a folder is that of eccv-caption's data."""
    return any((folder / f"{name}_{WAYS['t2i']}.json").is_file() for name in FILES.values())


def read_qrels(folder: Path, truth: str = "eccv", direction: str = "t2i") -> Qrels:
    """One set of truths in one direction, `t2i` or `i2t`."""
    if truth not in FILES or direction not in WAYS:
        raise UsageError(f"no truths {truth}:{direction}; there are: {', '.join(FILES)}, each with :t2i and :i2t")
    path = folder / f"{FILES[truth]}_{WAYS[direction]}.json" if folder.is_dir() else folder
    grades: dict[str, dict[str, int]] = {}
    for query, images in queries_of(path, json_of(path)).items():
        if not isinstance(images, list):
            refuse(path, f"query {query!r}", "has no list of ids")
        grades[query] = dict.fromkeys(ids_of(path, query, images), 1)
    return Qrels(grades, {"source": str(path), "truth": truth, "direction": direction})


def read(folder: Path, truth: str = "eccv", direction: str = "t2i", truths: Path | None = None) -> JudgedQueries:
    """The truths, and the pool that was searched: COCO's 5,000 images, or its 25,000 captions.

    `truths` is the folder of the truths, if it is another.
    """
    qrels = read_qrels(truths or folder, truth, direction)
    pool = caption_ids(folder) if direction == "i2t" else list(read_qrels(folder, "coco", "i2t"))
    return JudgedQueries({query: {} for query in qrels}, qrels, {image: {} for image in pool})


def caption_ids(folder: Path) -> list[str]:
    """The 25,000 captions in the order of `coco_test_ids.npy`."""
    path = folder / "coco_test_ids.npy"
    return list(map(str, ids_in_npy(path, "iu", "whole numbers")))
