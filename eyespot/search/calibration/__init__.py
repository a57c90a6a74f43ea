"""A score that means something: from verdicts on a few dozen hits of a ranking to what the whole of it holds.

`plan` draws hits to judge, `fit` makes a `Curve` of their verdicts: how probable each hit is relevant, how many
relevant pictures there are, and where to stop showing hits. `next_ranks` says where further verdicts tell most.
Verdicts come from a person or from a judge that errs at a known `Accuracy`; `assisted` lets a model's answers narrow
what a person's verdicts say.
"""

from eyespot.search.calibration.accuracy import Accuracy
from eyespot.search.calibration.covariate import HELPED, Assistance, assisted
from eyespot.search.calibration.curve import Count, Curve, Cut, fit, next_ranks
from eyespot.search.calibration.sampling import RankSample, plan

__all__ = [
    "HELPED",
    "Accuracy",
    "Assistance",
    "Count",
    "Curve",
    "Cut",
    "RankSample",
    "assisted",
    "fit",
    "next_ranks",
    "plan",
]
