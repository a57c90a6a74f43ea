"""MSCOCO-FG: COCO 5k with finer captions, among more and more similar images."""

from functools import partial

from eyespot.benchmarks._captions import caption_benchmark

load = partial(caption_benchmark, "coco5k-fg")
