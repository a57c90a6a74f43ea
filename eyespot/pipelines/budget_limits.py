"""What a step's client counts its requests by, and how an answer came about; the limits are those of `eyespot.llms`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from eyespot.llms.budget import BudgetSpent, CostLimits, LargestCost
from eyespot.types import Adjustment, BudgetMeter, Exchange, Spent

__all__ = ["Adjustment", "BudgetSpent", "CallMeter", "CostLimits", "Exchange", "LargestCost", "Provenance", "Spent"]


class Provenance(NamedTuple):
    """How a model came to its answer: its name as the server gives it, and what of the request was not accepted."""

    served: str = ""
    changes: Sequence[Adjustment] = ()


class CallMeter(BudgetMeter, Protocol):
    """What a client counts its requests by, one after the other.

    `take` counts a request with what it may cost. One that is never paid for stays counted with that.
    """

    def expect(self, model: str, spent: Spent) -> None:
        """Say what a request to this model may cost; without this the step's `expects` is taken."""
        ...

    def report(self, exchange: Exchange) -> None:
        """Say what was sent and what came of it; without this the answer is taken to be as it was asked for."""
        ...
