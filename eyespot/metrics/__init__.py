"""Ranking + grades → number. Every number names its definition: AP@50 alone is three numbers.

    scores = evaluate(run, qrels, *preset("inquire").scoring)
    scores.means["AP@50"], scores.interval("AP@50"), scores.measures["AP@50"].definition

One file for each measure; the files whose names begin with an underscore are what measures are made of and used by.
"""

# ruff: noqa: F403 - a type checker reads all names of these modules, a program those that are listed

from typing import TYPE_CHECKING

from eyespot.rooms import lazy

if TYPE_CHECKING:
    from eyespot.metrics._aligned import *
    from eyespot.metrics._comparing import *
    from eyespot.metrics._evaluating import *
    from eyespot.metrics._floor import *
    from eyespot.metrics._measure import *
    from eyespot.metrics._outside import *
    from eyespot.metrics._parsing import *
    from eyespot.metrics._presets import *
    from eyespot.metrics._scores import *
    from eyespot.metrics.ap import AP as AP
    from eyespot.metrics.hit import Hit as Hit
    from eyespot.metrics.ndcg import NDCG as NDCG
    from eyespot.metrics.precision import Precision as Precision
    from eyespot.metrics.recall import Recall as Recall
    from eyespot.metrics.rr import RR as RR
else:
    __getattr__, __all__ = lazy(
        __name__,
        {
            "_aligned": "Aligned aligned",
            "_comparing": "CORRECTIONS Compared Comparison Move Resampling SignFlips compare corrected sign_flips",
            "_evaluating": "evaluate",
            "_floor": "Floor floor simulated_floor tie_range",
            "_measure": "Measure",
            "_outside": "OUTSIDE",
            "_parsing": "names parse",
            "_presets": "PRESETS Preset preset",
            "_scores": "Rules Scores bootstrap labels_of",
            "ap": "AP",
            "hit": "Hit",
            "ndcg": "NDCG",
            "precision": "Precision",
            "recall": "Recall",
            "rr": "RR",
        },
    )
