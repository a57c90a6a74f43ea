"""How often a judge is right, and what a verdict of such a judge says."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyespot.types import UsageError

Reals = NDArray[np.float64]

POSSIBLE = 12  # pairs of sensitivity and specificity that stand for what a measured accuracy may really be


@dataclass(frozen=True)
class Accuracy:
    """`sensitivity` is the share of relevant pictures with a yes, `specificity` that of irrelevant ones with a no.

    `relevant` and `irrelevant` say on how many labelled pictures the two were measured; None: they are known. Raises
    `UsageError` where a yes is no more likely for a relevant picture than for another: such a judge tells nothing.
    """

    sensitivity: float = 1.0
    specificity: float = 1.0
    relevant: int | None = None
    irrelevant: int | None = None

    def __post_init__(self) -> None:
        if not (0 <= self.sensitivity <= 1 and 0 <= self.specificity <= 1):
            raise UsageError("sensitivity and specificity are shares between 0 and 1")
        if (self.relevant is None) != (self.irrelevant is None):
            raise UsageError(
                "a measured accuracy needs both counts: how many relevant and how many irrelevant pictures"
            )
        if self.relevant is not None and min(self.relevant, self.irrelevant or 0) < 1:
            raise UsageError("an accuracy is measured on at least one relevant and one irrelevant picture")
        if self.sensitivity + self.specificity <= 1:
            raise UsageError("sensitivity and specificity add up to 1 or less; take a judge that is better than chance")

    @property
    def exact(self) -> bool:
        """Whether verdicts are taken at their word."""
        return self.sensitivity == self.specificity == 1 and self.relevant is None

    @property
    def lift(self) -> float:
        """How much likelier a yes is for a relevant picture than for another: Youden's J."""
        return self.sensitivity + self.specificity - 1

    def corrected(self, verdicts: Reals) -> Reals:
        """Verdicts (n,) to values whose mean is the true share of relevant ones (Rogan and Gladen 1978)."""
        if self.exact:
            return verdicts
        corrected: Reals = ((verdicts >= 0.5).astype(np.float64) - (1 - self.specificity)) / self.lift
        return corrected

    def likelihoods(self, verdicts: Reals, rng: np.random.Generator) -> Reals:
        """How likely each verdict is for a relevant and for an irrelevant picture, (possible accuracies, n, 2).

        A probability p from an exact judge is evidence at odds of p : 1 - p. With an accuracy, 0.5 or more is a yes.
        """
        if self.exact:
            return np.stack([verdicts, 1 - verdicts], axis=-1)[None]
        if self.relevant is None or self.irrelevant is None:
            sensitivity, specificity = np.full((1, 1), self.sensitivity), np.full((1, 1), self.specificity)
        else:
            sensitivity, specificity = (
                _posterior(self.sensitivity, self.relevant, rng),
                _posterior(self.specificity, self.irrelevant, rng),
            )
        yes = verdicts[None, :] >= 0.5
        of_relevant = np.where(yes, sensitivity, 1 - sensitivity)  # (possible, n)
        return np.stack([of_relevant, np.where(yes, 1 - specificity, specificity)], axis=-1)


def _posterior(share: float, of: int, rng: np.random.Generator) -> Reals:
    """Shares that may lie behind a measured one, by Jeffreys' prior, (possible, 1)."""
    return rng.beta(share * of + 0.5, (1 - share) * of + 0.5, size=(POSSIBLE, 1))
