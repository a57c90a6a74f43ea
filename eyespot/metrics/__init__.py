"""Ranking + grades → number. Every number names its definition: AP@50 alone is three numbers.

    scores = evaluate(run, qrels, *preset("inquire").scoring)
    scores.means["AP@50"], scores.interval("AP@50"), scores.measures["AP@50"].definition

One file for each measure; the files whose names begin with an underscore are what measures are made of and used by.
"""

from eyespot.metrics._aligned import Aligned, aligned, from_similarity
from eyespot.metrics._evaluating import evaluate
from eyespot.metrics._floor import Floor, floor, simulated_floor
from eyespot.metrics._measure import Measure
from eyespot.metrics._parsing import names, parse
from eyespot.metrics._presets import PRESETS, Preset, preset
from eyespot.metrics._scores import Rules, Scores, bootstrap

__all__ = [
    "PRESETS",
    "Aligned",
    "Floor",
    "Measure",
    "Preset",
    "Rules",
    "Scores",
    "aligned",
    "bootstrap",
    "evaluate",
    "floor",
    "from_similarity",
    "names",
    "parse",
    "preset",
    "simulated_floor",
]
