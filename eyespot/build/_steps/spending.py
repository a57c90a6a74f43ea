"""What asking models costs, and the limit on it: asked before every request, and never passed by a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from eyespot.judges._budget import BudgetSpent
from eyespot.types import Spent, UsageError

__all__ = ["BudgetSpent", "Limits", "Purse", "Spent", "Till"]


@dataclass(frozen=True)
class Limits:
    """How much a collection may cost from its beginning on, over all runs of it; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None  # US dollars

    def __post_init__(self) -> None:
        if any(limit is not None and limit < 0 for limit in (self.calls, self.tokens, self.money)):
            raise UsageError("a budget is 0 or more; leave it out for no limit")

    def reached(self, spent: Spent) -> str | None:
        """The limit that is reached, in words."""
        if self.calls is not None and spent.calls >= self.calls:
            return f"{self.calls:,} calls"
        if self.tokens is not None and spent.tokens_in + spent.tokens_out >= self.tokens:
            return f"{self.tokens:,} tokens"
        if self.money is not None and spent.money >= self.money:
            return f"${self.money:g}"
        return None


class Till(Protocol):
    """What a client counts its requests by."""

    def take(self) -> None:
        """Count one request that is about to leave; `BudgetSpent` if it may not."""
        ...

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what it cost, which is known only afterwards."""
        ...


class Purse:
    """The till of one step: its requests are on the disk (`record`) before they leave, those of earlier runs count."""

    def __init__(self, limits: Limits, total: Callable[[], Spent], record: Callable[[Spent], None]) -> None:
        self._limits, self._total, self._record = limits, total, record
        self._lock = Lock()

    def take(self) -> None:
        """Count one request that is about to leave; `BudgetSpent` if it may not."""
        with self._lock:
            if (reached := self._limits.reached(self._total())) is not None:
                raise BudgetSpent(f"the budget of {reached} is spent; raise it and run the same line again to go on")
            self._record(Spent(calls=1))

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what it cost; no further request leaves once a limit is reached."""
        self._record(Spent(0, tokens_in, tokens_out, money))
