"""Flickr30K-FG: Flickr30K's test images with finer captions, among more and more similar images."""

from functools import partial

from eyespot.benchmarks._captions import caption_benchmark

load = partial(caption_benchmark, "flickr30k-fg")
