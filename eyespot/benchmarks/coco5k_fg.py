"""MSCOCO-FG: COCO 5k with finer captions, among more and more similar images."""

from __future__ import annotations

from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._captions import COCO, FG, FINE_GRAINED, UNSTATED, caption_benchmark

NEED = Needed("MSCOCO_FG_ann.json|*/MSCOCO_FG_ann.json", "the captions", f"{FINE_GRAINED}/tree/main/Annotations")
POOL = Needed(
    "MSCOCO_FG_img_filenames.npy|*/MSCOCO_FG_img_filenames.npy",
    "the images to rank besides (without it the described images are the pool)",
    f"{FINE_GRAINED}/tree/main/Images",
    required=False,
)


def load() -> Benchmark:
    """The benchmark."""
    about = "COCO's test images with finer captions, both ways"
    source = {"home": FINE_GRAINED, "licence": UNSTATED, "citation": f"{FG}; {COCO}"}
    return caption_benchmark("coco5k-fg", "MSCOCO-FG", about, NEED, POOL, **source)
