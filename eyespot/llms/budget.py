"""Budgets: limits on requests, tokens and money, checked before every request.

One rule for all of them. What is spent and what is in flight never pass a limit together. A request in flight counts as
much as the dearest one to its model so far, or as what was expected if that is more. Because a dearer one may still
come, no more requests are in flight than were paid for before. A store keeps the numbers: in memory (`BudgetStore`), or
in a file that survives a kill.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from threading import Condition, Lock

from eyespot.types import EyespotError, Spent, UsageError

LOG = logging.getLogger(__name__)
ROUNDING = 1e-9  # of a limit: sums of dollars are not exact


class BudgetSpent(EyespotError):
    """The limit is reached; what was answered before is kept."""

    exit_code = 3


@dataclass(frozen=True)
class CostLimits:
    """The most that may be spent; None: no limit. `UsageError` for one that is negative or NaN."""

    calls: int | None = None  # requests sent, retries included
    tokens: int | None = None  # in and out together
    money: float | None = None  # US dollars

    def __post_init__(self) -> None:
        # NaN is not below 0 either, and no sum would ever reach it
        if not all(limit is None or limit >= 0 for limit in (self.calls, self.tokens, self.money)):
            raise UsageError("a budget is a number, 0 or more; leave it out for no limit")

    @property
    def weighed(self) -> bool:
        """Whether a limit depends on what a request costs, which is known only afterwards."""
        return self.tokens is not None or self.money is not None

    def passed(self, spent: Spent, more: Spent) -> str | None:
        """Which limit is reached, or would be passed by this much more, in words."""
        sums: tuple[tuple[float | None, float, float, Callable[[float], str]], ...] = (
            (self.calls, spent.calls, more.calls, "{:,} calls".format),
            (self.tokens, spent.tokens, more.tokens, "{:,} tokens".format),
            (self.money, spent.money, more.money, lambda money: Spent(money=money).dollars),
        )
        for limit, before, extra, words in sums:
            if limit is not None and before >= limit:
                return f"{words(limit)} is spent"
            if limit is not None and before + extra > limit * (1 + ROUNDING):
                return f"{words(limit)} has no room for a request that may take {words(extra)} beside {words(before)}"
        return None


# -- where the numbers are kept ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LargestCost:
    """How many requests to a model were paid for, and the most that one of them cost, each part by itself."""

    requests: int = 0
    spent: Spent = field(default_factory=Spent)


def largest_of(one: Spent, other: Spent) -> Spent:
    """The larger of each part, for one request."""
    tokens = max(one.tokens_in, other.tokens_in), max(one.tokens_out, other.tokens_out)
    return Spent(1, *tokens, max(one.money, other.money))


class BudgetStore:
    """Keeps what a budget has spent and reserved, as long as the process runs; a subclass keeps it elsewhere."""

    def __init__(self) -> None:
        self._settled = Spent()
        self._reserved: dict[int, Spent] = {}
        self._dearest: dict[str, LargestCost] = {}
        self._numbers = count()
        self._lock = Lock()

    def total(self) -> Spent:
        """All that is spent, and all that is reserved."""
        with self._lock:
            return total_of([self._settled, *self._reserved.values()])

    def dearest(self, model: str) -> LargestCost:
        """The most that a request to this model cost so far."""
        return self._dearest.get(model, LargestCost())

    def reserve(self, price: Spent) -> int:
        """Count a request that is about to be sent with what it may cost; its number."""
        with self._lock:
            number = next(self._numbers)
            self._reserved[number] = price
        return number

    def settle(self, number: int | None, model: str, paid: Spent) -> None:
        """Replace a reservation by what the request did cost; None: there was no reservation."""
        with self._lock:
            if number is not None:
                del self._reserved[number]
            self._settled = self._settled.plus(paid)
            if any(paid[1:]):  # a request that was turned away says nothing of the price
                known = self.dearest(model)
                self._dearest[model] = LargestCost(known.requests + 1, largest_of(known.spent, paid))


def total_of(several: Iterable[Spent]) -> Spent:
    """The sum of all of them."""
    return reduce(Spent.plus, several, Spent())


# -- the rule ---------------------------------------------------------------------------------------------------


class Budget:
    """Limits that many threads share, in requests, tokens and US dollars; None: no limit.

    Requests are counted through an `ItemMeter`. Raises `UsageError` for a limit that is negative or NaN.
    """

    def __init__(
        self,
        calls: int | None = None,
        tokens: int | None = None,
        money: float | None = None,
        store: BudgetStore | None = None,
    ) -> None:
        self.limits = CostLimits(calls, tokens, money)
        self.calls, self.tokens, self.money = calls, tokens, money
        self.store = BudgetStore() if store is None else store
        self._in_flight: dict[int, tuple[str, Spent]] = {}  # model and price of each reservation, by its number
        self._changed = Condition()

    @property
    def spent(self) -> Spent:
        """What is spent; of a request in flight only that it was sent."""
        with self._changed:
            return self._settled()

    def reserve(self, model: str = "", expected: Spent = Spent()) -> int:
        """Count one request before it is sent, once there is room for it; its number.

        `expected` is what it may cost. Raises `BudgetSpent` if there will be no room, whatever is in flight may cost.
        """
        with self._changed:
            while True:
                known = self.store.dearest(model)
                price = largest_of(expected, known.spent)
                if passed := self.limits.passed(self._settled(), price):
                    LOG.info("no further request: the budget of %s", passed)
                    raise BudgetSpent(f"the budget of {passed}; raise it and run the same line again to go on")
                if not self.limits.weighed or self._has_room(known, model, price):
                    break
                self._changed.wait()
            number = self.store.reserve(price)
            self._in_flight[number] = model, price
            return number

    def reserve_batched(self, model: str, expected: Spent) -> int:
        """Count a request of a batch with all that it may cost, whenever it is answered; its number.

        Raises `BudgetSpent` if there is no room for it beside all that is spent and reserved.
        """
        with self._changed:
            price = largest_of(expected, self.store.dearest(model).spent)
            if passed := self.limits.passed(self.store.total(), price):
                raise BudgetSpent(f"the budget of {passed}; raise it and run the same line again to go on")
            return self.store.reserve(price)

    def settle(self, number: int | None, model: str, paid: Spent) -> None:
        """Count what a request did cost; None: one that was not reserved."""
        with self._changed:
            self.store.settle(number, model, paid)
            if number is not None:
                self._in_flight.pop(number, None)
            self._changed.notify_all()

    def release(self, number: int) -> None:
        """A request has ended, and its cost will never be known: what is reserved for it stays counted."""
        with self._changed:
            del self._in_flight[number]
            self._changed.notify_all()

    def _settled(self) -> Spent:
        """What is spent whatever requests in flight may cost; they count as calls."""
        total = self.store.total()
        if not self._in_flight:
            return total
        _, tokens_in, tokens_out, money = total_of(price for _, price in self._in_flight.values())
        return total.plus(Spent(0, -tokens_in, -tokens_out, -money))

    def _has_room(self, known: LargestCost, model: str, price: Spent) -> bool:
        models = Counter(model for model, _ in self._in_flight.values())
        if models[model] >= max(1, known.requests):
            return False
        dearest = {model: self.store.dearest(model).spent for model in models}
        in_flight = [largest_of(price, dearest[model]) for model, price in self._in_flight.values()]
        spent = self._settled()._replace(calls=0)
        return self.limits.passed(total_of([spent, *in_flight])._replace(calls=0), price._replace(calls=0)) is None


class ItemMeter:
    """Counts what one item costs, on its way to the budget; the requests of an item are sent one after the other."""

    def __init__(self, budget: Budget, expected: Spent = Spent()) -> None:
        self.spent = Spent()
        self._budget, self._model, self._expected = budget, "", per_request(expected)
        self._number: int | None = None

    def expect(self, model: str, spent: Spent) -> None:
        """Say what a request to this model may cost."""
        self._model, self._expected = model, per_request(spent)

    def take(self, likely: Callable[[], Spent] = Spent) -> None:
        """Count one request before it is sent; raises `BudgetSpent` if there is no room for it.

        `likely` estimates what it may cost, where nothing is expected and none to its model was paid for.
        """
        self.lose()
        known = any(self._expected[1:]) or self._budget.store.dearest(self._model).requests
        estimated = self._budget.limits.weighed and not known
        self._number = self._budget.reserve(self._model, likely() if estimated else self._expected)
        self.spent = self.spent.plus(Spent(calls=1))

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Count what the request cost, money in US dollars."""
        number, self._number = self._number, None
        paid = Spent(int(number is not None), tokens_in, tokens_out, money)
        self._budget.settle(number, self._model, paid)
        self.spent = self.spent.plus(paid._replace(calls=0))

    def lose(self) -> None:
        """The last request has ended, and its cost will never be known; what is reserved for it stays counted."""
        if self._number is not None:
            number, self._number = self._number, None
            self._budget.release(number)


def per_request(spent: Spent) -> Spent:
    """The share of one request, tokens rounded up."""
    calls = max(1, spent.calls)
    return Spent(1, math.ceil(spent.tokens_in / calls), math.ceil(spent.tokens_out / calls), spent.money / calls)
