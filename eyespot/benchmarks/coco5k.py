"""COCO 5k: the 5,000 test images of Karpathy's split and their 25,000 captions, both ways."""

from __future__ import annotations

from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._captions import COCO, KARPATHY, SPLITS, caption_benchmark

NEED = Needed("dataset_coco.json|*/dataset_coco.json", "Karpathy's split with its captions", KARPATHY)


def load() -> Benchmark:
    """The benchmark."""
    return caption_benchmark(
        "coco5k",
        "MS-COCO 5k",
        "5,000 images, five captions each, both ways",
        NEED,
        home="https://cocodataset.org",
        licence="captions CC BY 4.0; images under Flickr's terms of use",
        citation=f"{COCO}; {SPLITS}",
    )
