"""Flickr30K: the 1,000 test images of Karpathy's split and their 5,000 captions, both ways."""

from functools import partial

from eyespot.benchmarks._captions import caption_benchmark

load = partial(caption_benchmark, "flickr30k")
