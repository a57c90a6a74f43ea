"""How well pictures must fit a text before the built-in encoder believes that what it asks for is among them."""

from __future__ import annotations

from eyespot.encoders.starter.networks import Floats

# Calibrated on real photos, docs/starter.md.
LEAST_SHARE = 0.57  # of what an ideal picture of the fittest class would score
LEAST_LEAD = 2.7  # standard deviations above what ideal pictures of all classes score


def weakest_match(ideal_scores: Floats) -> float:
    """The lowest score of a probable match, from what a text scores with an ideal picture of every class.

    A noun that is a class, or kin to one, shows by the share that its pictures are missing; a long text, which no class
    fits well, by the small lead of the best picture over any other.
    """
    share = LEAST_SHARE * ideal_scores.max()
    lead = ideal_scores.mean() + LEAST_LEAD * ideal_scores.std()
    return float(max(share, lead))
