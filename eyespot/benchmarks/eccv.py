"""ECCV Caption, CxC, COCO 5k and PMRP on one ranking: truths over the same images and captions, both ways.

PMRP is R-precision over the plausible matches, whose files are a download apart.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

from eyespot.benchmarks._benchmark import Benchmark, Needed, Task
from eyespot.benchmarks._captions import COCO, one_way
from eyespot.metrics import preset
from eyespot.runs import eccv

HOME = "https://github.com/naver-ai/eccv-caption"
RAW = f"{HOME}/tree/main/eccv_caption/data"
CITATION = (
    "Chun, Kim, Park, Chang, Oh: ECCV Caption: Correcting False Negatives by Collecting Machine-and-Human-verified "
    "Image-Caption Associations for MS-COCO. ECCV 2022"
)
SCORING = {"eccv": "eccv", "cxc": "coco", "coco": "coco", "pm": "pmrp"}
SIZES = {  # of the package's version 0.1.0
    "original_caption_to_image.json": (441_843, "646c37bf5148480d854a3d135b1f3646cc7fa2bd0f84ed7499e264f09338e0fa"),
    "original_image_to_caption.json": (225_731, "17e7673206edefd9cd227e8fafb703eba375671e43dd202a33b51567ebd4593e"),
    "cxc_caption_to_image.json": (513_636, "95fa65de2171c2d5df8769b46770cb74b9d4e09522d0c255e5d166c56028d125"),
    "cxc_image_to_caption.json": (298_632, "e567e46b527901bb87ad9cf6511d005e5ad80620a968db1b3314bce23c917a61"),
    "eccv_caption_to_image.json": (91_246, "3f1d209e7fc4100acc4092818125884d1523582ccebf950a4f89ff71babe281a"),
    "eccv_image_to_caption.json": (168_731, "47b822df8932da569a471a557f49e7b45465dac3728c2e2922f7bfbd25399242"),
    "coco_test_ids.npy": (200_080, "edf99145aaed260188fd9384c1329ed287fca0e9b92e4e59de46660667932a15"),
}


def tasks(data: Path, split: str, ids: str | None = None) -> list[Task]:
    """Tasks such as eccv-t2i and coco-i2t; one ranking of all captions and images serves all."""
    folder = NEEDS[0].place(data).parent
    truths = [truth for truth in SCORING if truth != "pm" or all(needed.find(data) for needed in PLAUSIBLE)]
    made = {}
    for truth, way in product(truths, ("t2i", "i2t")):
        place = PLAUSIBLE[0].place(data).parent if truth == "pm" else folder
        judged = eccv.read(folder, truth, way, place)
        made[f"{truth}-{way}"] = one_way(way, judged, preset(SCORING[truth]))
    return [replace(task, name=name) for name, task in made.items()]


NEEDS = tuple(
    Needed(f"{name}|*/{name}|eccv_caption/data/{name}", "of the package eccv_caption", RAW, size, sha256)
    for name, (size, sha256) in SIZES.items()
)
PLAUSIBLE = tuple(
    Needed(f"{name}|*/{name}", "plausible matches, for PMRP (140 MB both)", f"{HOME}#readme", required=False)
    for name in ("pm_caption_to_image.json", "pm_image_to_caption.json")
)


def load() -> Benchmark:
    """The benchmark."""
    about = "captions of COCO 5k with all images that fit them, both ways; CxC, COCO 5k, PMRP"
    return Benchmark("eccv", "ECCV Caption", about, HOME, "MIT", f"{CITATION}; {COCO}", tasks, (*NEEDS, *PLAUSIBLE))
