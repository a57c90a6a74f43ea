"""The purse of a step: what a request may cost is on the disk before it leaves, what it did cost takes its place.

What is spent and what is under way never pass a limit together. A request may cost as much as the dearest one to its
model in this step so far, or what was expected if that is more. Because a dearer one may still come, no more requests
are under way at once than were paid for before. What a kill cuts off stays counted, for it may have been paid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

from eyespot.pipelines.budget_limits import BudgetSpent, CostLimits, Provenance
from eyespot.pipelines.work_db import LargestCost, StepKey, WorkDB
from eyespot.types import Spent


@dataclass(frozen=True)
class ReservedBudget:
    """What the requests of one step are paid from, by any number of threads; those of earlier runs count."""

    limits: CostLimits
    memory: WorkDB
    mark: StepKey
    expects: Spent = field(default_factory=Spent)  # of one record
    _changed: Condition = field(default_factory=Condition, repr=False)
    _under_way: Counter[str] = field(default_factory=Counter, repr=False)  # by model

    @contextmanager
    def opened(self) -> Iterator[PromptMeter]:
        """The till of one prompt. What it leaves unpaid stays counted, and nobody waits for it any more."""
        tab = PromptMeter(self, self.expects)
        try:
            yield tab
        finally:
            tab.close()

    def reserve(self, model: str, likely: Spent) -> int:
        """Put aside what a request may cost, once there is room; its number. `BudgetSpent` if there will be none."""
        with self._changed:
            while True:
                known = self.memory.dearest(self.mark, model)
                tokens = max(likely.tokens_in, known.spent.tokens_in), max(likely.tokens_out, known.spent.tokens_out)
                price = Spent(1, *tokens, max(likely.money, known.spent.money))
                passed = self.limits.passed(self.memory.total(), price)
                if passed is None and self._trusted(known, model):
                    break
                if passed is not None and not self._under_way.total():
                    raise BudgetSpent(f"the budget of {passed}; raise it and run the same line again to go on")
                self._changed.wait()
            number = self.memory.reserve(self.mark, price)
            self._under_way[model] += 1
            return number

    def settle(self, number: int, model: str, paid: Spent) -> None:
        """Count what a request did cost."""
        self.memory.settle(number, self.mark, model, paid)
        self.let_go(model)

    def let_go(self, model: str) -> None:
        """A request is no longer under way."""
        with self._changed:
            self._under_way[model] -= 1
            self._changed.notify_all()

    def _trusted(self, known: LargestCost, model: str) -> bool:
        return not self.limits.weighed or self._under_way[model] < max(1, known.requests)


class PromptMeter:
    """The till of one prompt, whose requests leave one after the other."""

    def __init__(self, purse: ReservedBudget, likely: Spent) -> None:
        self._purse, self._likely, self._model = purse, _of_one(likely), ""
        self._open: int | None = None
        self.provenance = Provenance()

    def reply(self, provenance: Provenance) -> None:
        """Say how the answer came about."""
        self.provenance = provenance

    def expect(self, model: str, spent: Spent) -> None:
        """Say what a request to this model may cost."""
        self._model, self._likely = model, _of_one(spent)

    def take(self) -> None:
        """Count one request that is about to leave; `BudgetSpent` if it may not."""
        self.close()
        self._open = self._purse.reserve(self._model, self._likely)

    def pay(self, tokens_in: int, tokens_out: int, money: float) -> None:
        """Say what it did cost."""
        if self._open is None:
            self._purse.memory.pay(self._purse.mark, Spent(0, tokens_in, tokens_out, money))
            return
        self._purse.settle(self._open, self._model, Spent(1, tokens_in, tokens_out, money))
        self._open = None

    def lose(self) -> None:
        """What the last request cost will never be known; its reserve stays counted."""
        self.close()

    def close(self) -> None:
        """The last request came to nothing that is known; it stays counted."""
        if self._open is not None:
            self._open = None
            self._purse.let_go(self._model)


def _of_one(spent: Spent) -> Spent:
    """The share of one request."""
    count = max(1, spent.calls)
    return Spent(1, math.ceil(spent.tokens_in / count), math.ceil(spent.tokens_out / count), spent.money / count)
