"""Flickr30K-FG: Flickr30K's test images with finer captions, among more and more similar images."""

from __future__ import annotations

from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._captions import FG, FINE_GRAINED, FLICKR, UNSTATED, caption_benchmark

NEED = Needed("Flickr30K_FG.json|*/Flickr30K_FG.json|*/Flickr30K_FG_ann.json", "the captions", FINE_GRAINED)
POOL = Needed(
    "Flickr30K_FG_img_filenames.npy|*/Flickr30K_FG_img_filenames.npy",
    "the images to rank besides (without it the described images are the pool)",
    f"{FINE_GRAINED}/tree/main/Images",
    required=False,
)


def load() -> Benchmark:
    """The benchmark."""
    about = "Flickr30K's test images with finer captions, both ways"
    source = {"home": FINE_GRAINED, "licence": UNSTATED, "citation": f"{FG}; {FLICKR}"}
    return caption_benchmark("flickr30k-fg", "Flickr30K-FG", about, NEED, POOL, **source)
