"""The budget of a step: the rule is that of `eyespot.llms.budget`, the numbers are in the pipeline's file.

What a request may cost is on the disk before it is sent, and what it did cost replaces it. What a kill cuts off stays
counted, because it may have been paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from eyespot.llms.budget import Budget, CostLimits, ItemMeter
from eyespot.pipelines.work_db import Provenance, StepKey, StepStore, WorkDB
from eyespot.types import Exchange, Spent


class ReservedBudget(Budget):
    """What the requests of one step are paid from, by any number of threads; those of earlier runs count."""

    def __init__(self, limits: CostLimits, work: WorkDB, step: StepKey, expects: Spent = Spent()) -> None:
        super().__init__(limits.calls, limits.tokens, limits.money, StepStore(work, step))
        self.expects = expects  # of one record

    @contextmanager
    def opened(self) -> Iterator[PromptMeter]:
        """The meter of one prompt. What it leaves unpaid stays counted, and no thread waits for it any more."""
        meter = PromptMeter(self, self.expects)
        try:
            yield meter
        finally:
            meter.close()


class PromptMeter(ItemMeter):
    """A `CallMeter` of one prompt."""

    def __init__(self, budget: Budget, expected: Spent = Spent()) -> None:
        super().__init__(budget, expected)
        self.exchanges: list[Exchange] = []

    def report(self, exchange: Exchange) -> None:
        """Say what was sent and what came of it."""
        self.exchanges.append(exchange)

    @property
    def provenance(self) -> Provenance:
        """How the answer came about: by the last reply."""
        replies = (exchange.reply for exchange in reversed(self.exchanges))
        last = next((reply for reply in replies if reply is not None), None)
        return Provenance() if last is None else Provenance(last.model, last.changes)
