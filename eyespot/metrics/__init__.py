"""Ranking + grades → number. Every number names its definition: AP@50 alone is three numbers.

    scores = evaluate(run, qrels, *preset("inquire").scoring)
    scores.means["AP@50"], scores.interval("AP@50"), scores.measures["AP@50"].definition

One file for each measure; the files whose names begin with an underscore are what measures are made of and used by.
"""

from eyespot.metrics._aligned import Aligned, aligned
from eyespot.metrics._comparing import (
    CORRECTIONS,
    Compared,
    Comparison,
    Move,
    Resampling,
    SignFlips,
    compare,
    corrected,
    sign_flips,
)
from eyespot.metrics._evaluating import evaluate
from eyespot.metrics._floor import Floor, floor, simulated_floor, tie_range
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import OUTSIDE
from eyespot.metrics._parsing import names, parse
from eyespot.metrics._presets import PRESETS, Preset, preset
from eyespot.metrics._scores import Rules, Scores, bootstrap, labels_of
from eyespot.metrics.ap import AP
from eyespot.metrics.hit import Hit
from eyespot.metrics.ndcg import NDCG
from eyespot.metrics.precision import Precision
from eyespot.metrics.recall import Recall
from eyespot.metrics.rr import RR
from eyespot.types.kinds import checked_names

__all__ = [
    "AP",
    "CORRECTIONS",
    "NDCG",
    "OUTSIDE",
    "PRESETS",
    "RR",
    "Aligned",
    "Compared",
    "Comparison",
    "Floor",
    "Hit",
    "Measure",
    "Move",
    "Precision",
    "Preset",
    "Recall",
    "Resampling",
    "Rules",
    "Scores",
    "SignFlips",
    "aligned",
    "bootstrap",
    "compare",
    "corrected",
    "evaluate",
    "floor",
    "labels_of",
    "names",
    "parse",
    "preset",
    "sign_flips",
    "simulated_floor",
    "tie_range",
]

globals().update(checked_names(globals(), __all__))
