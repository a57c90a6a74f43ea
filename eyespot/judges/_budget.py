"""A limit on what judges may spend: in requests, tokens and money; it is asked before every request."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from eyespot.types import EyespotError, Spent


class BudgetSpent(EyespotError):
    """The limit is reached; what was answered before is kept."""

    exit_code = 3


@dataclass
class Budget:
    """Limits that many threads share; None is no limit.

    A request is counted before it leaves (`take`), so never more than `calls` do, retries included. Its tokens and its
    price are known only afterwards (`pay`): no further request leaves once one of these limits is reached.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None  # US dollars
    spent: Spent = field(default_factory=Spent)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def take(self) -> None:
        """Count one request that is about to leave; `BudgetSpent` if it may not."""
        with self._lock:
            if (reached := self._reached()) is not None:
                raise BudgetSpent(f"the budget of {reached} is spent; raise it and run the same line again to go on")
            self.spent = self.spent._replace(calls=self.spent.calls + 1)

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what a request cost."""
        with self._lock:
            before = self.spent
            self.spent = Spent(
                before.calls, before.tokens_in + tokens_in, before.tokens_out + tokens_out, before.money + money
            )

    def _reached(self) -> str | None:
        spent = self.spent
        if self.calls is not None and spent.calls >= self.calls:
            return f"{self.calls} calls"
        if self.tokens is not None and spent.tokens_in + spent.tokens_out >= self.tokens:
            return f"{self.tokens} tokens"
        if self.money is not None and spent.money >= self.money:
            return f"${self.money:g}"
        return None
