"""Flickr30K: the 1,000 test images of Karpathy's split and their 5,000 captions, both ways."""

from __future__ import annotations

from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._captions import FLICKR, KARPATHY, SPLITS, caption_benchmark

NEED = Needed("dataset_flickr30k.json|*/dataset_flickr30k.json", "Karpathy's split with its captions", KARPATHY)


def load() -> Benchmark:
    """The benchmark."""
    return caption_benchmark(
        "flickr30k",
        "Flickr30K 1k",
        "1,000 images, five captions each, both ways",
        NEED,
        home="https://shannon.cs.illinois.edu/DenotationGraph/",
        licence="Flickr's terms of use; images for non-commercial research on request",
        citation=f"{FLICKR}; {SPLITS}",
    )
