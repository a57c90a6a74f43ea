"""A limit on what judges may spend: in requests, tokens and money; it is asked before every request."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Condition

from eyespot.types import EyespotError, Spent, UsageError


class BudgetSpent(EyespotError):
    """The limit is reached; what was answered before is kept."""

    exit_code = 3


@dataclass
class Budget:
    """Limits that many threads share; None is no limit. `UsageError` for one that is negative or no number.

    A request is counted before it leaves (`take`), so never more than `calls` do, retries included. Its tokens and its
    price are known only afterwards (`pay`). Until then it stands for the dearest before it, and what is spent and under
    way never pass a limit together; because a dearer one may come, no more are under way than were paid for before.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None  # US dollars
    spent: Spent = field(default_factory=Spent)
    _dearest: Spent = field(default_factory=Spent, repr=False)
    _under_way: int = field(default=0, repr=False)
    _paid: int = field(default=0, repr=False)
    _changed: Condition = field(default_factory=Condition, repr=False)

    def __post_init__(self) -> None:
        for name, limit in (("calls", self.calls), ("tokens", self.tokens), ("money", self.money)):
            if limit is not None and not limit >= 0:
                raise UsageError(f"a budget of {limit} {name} is none; give a number from 0 on")

    def take(self) -> None:
        """Count one request that is about to leave, once there is room; `BudgetSpent` if there will be none."""
        with self._changed:
            while (reached := self._reached(self.spent)) is None and not self._room():
                self._changed.wait()
            if reached is not None:
                raise BudgetSpent(f"the budget of {reached} is spent; raise it and run the same line again to go on")
            self._under_way += 1
            self.spent = self.spent._replace(calls=self.spent.calls + 1)

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what a request cost."""
        with self._changed:
            cost = Spent(0, tokens_in, tokens_out, money)
            tokens = max(self._dearest.tokens_in, tokens_in), max(self._dearest.tokens_out, tokens_out)
            self._dearest = Spent(0, *tokens, max(self._dearest.money, money))
            self._paid += bool(tokens_in or tokens_out or money)
            self._ended(cost)

    def lose(self) -> None:
        """What a request cost will never be known: it counts as the dearest before it."""
        with self._changed:
            self._ended(self._dearest)

    def _ended(self, cost: Spent) -> None:
        self._under_way = max(0, self._under_way - 1)
        self.spent = self.spent.plus(cost)
        self._changed.notify_all()

    def _room(self) -> bool:
        """Whether one more request may leave now: always if none is under way, for then none will make room."""
        if not self._under_way or (self.tokens is None and self.money is None):
            return True
        return self._under_way < self._paid and self._reached(self._with_all(self._under_way)) is None

    def _with_all(self, count: int) -> Spent:
        """What is spent, and so many requests at the dearest price, without their calls, which are counted."""
        _, tokens_in, tokens_out, money = self._dearest
        return self.spent.plus(Spent(0, count * tokens_in, count * tokens_out, count * money))

    def _reached(self, spent: Spent) -> str | None:
        """The limit that one more request would pass."""
        one, tokens = self._dearest, spent.tokens_in + spent.tokens_out
        if self.calls is not None and spent.calls >= self.calls:
            return f"{self.calls} calls"
        if self.tokens is not None and tokens + max(1, one.tokens_in + one.tokens_out) > self.tokens:
            return f"{self.tokens} tokens"
        if self.money is not None and (spent.money >= self.money or spent.money + one.money > self.money * (1 + 1e-9)):
            return f"${self.money:g}"
        return None
