"""What asking models costs, and the limit on it: asked before every request, and never passed by a kill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from eyespot.llms.budget import BudgetSpent
from eyespot.llms.unsupported_fields import Adjustment
from eyespot.types import Spent, UsageError

__all__ = ["Adjustment", "BudgetSpent", "CallMeter", "CostLimits", "Provenance", "Spent"]

_ROUNDING = 1e-9  # of a limit: sums of dollars are not exact


@dataclass(frozen=True)
class CostLimits:
    """How much a collection may cost from its beginning on, over all runs of it; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None  # US dollars

    def __post_init__(self) -> None:
        # NaN is not below 0 either, and no sum would ever reach it.
        if not all(limit is None or limit >= 0 for limit in (self.calls, self.tokens, self.money)):
            raise UsageError("a budget is a number, 0 or more; leave it out for no limit")

    @property
    def weighed(self) -> bool:
        """Whether a limit hangs on what a request costs, which is known only afterwards."""
        return self.tokens is not None or self.money is not None

    def passed(self, spent: Spent, more: Spent) -> str | None:
        """Which limit is reached, or would be passed by so much more, in words."""
        told = (
            (self.calls, spent.calls, more.calls, "{:,} calls"),
            (self.tokens, _tokens(spent), _tokens(more), "{:,} tokens"),
            (self.money, spent.money, more.money, "${:g}"),
        )
        for limit, before, then, words in told:
            if limit is not None and before >= limit:
                return f"{words.format(limit)} is spent"
            if limit is not None and before + then > limit * (1 + _ROUNDING):
                taken, needs = words.format(before), words.format(then)
                return f"{words.format(limit)} has no room for a request that may take {needs} beside {taken}"
        return None


def _tokens(spent: Spent) -> int:
    return spent.tokens_in + spent.tokens_out


class Provenance(NamedTuple):
    """How a model came to its answer: who it is by its server's own word, and what of the request was not accepted."""

    served: str = ""
    changes: Sequence[Adjustment] = ()


class CallMeter(Protocol):
    """What a client counts its requests by, one after the other."""

    def expect(self, model: str, spent: Spent) -> None:
        """Say what a request to this model may cost; without this the step's `expects` is taken."""
        ...

    def take(self) -> None:
        """Count one request that is about to leave, with what it may cost; `BudgetSpent` if it may not leave."""
        ...

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Say what it did cost. A request that is never paid for counts with what it might have cost."""
        ...

    def lose(self) -> None:
        """Say that this will never be known."""
        ...

    def reply(self, provenance: Provenance) -> None:
        """Say how the answer came about; without this it is taken to be as it was asked for."""
        ...
