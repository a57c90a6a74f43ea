"""How many relevant photos remain once an annotator stops: an audit drawn at random from the rest, and its interval.

The stopping rule looks at labels, so whatever is computed from the same labels is flattered by it: a ranking is left
where it happened to be poor. The audit is drawn after the rule has fired, from the photos nobody has looked at, all
with the same chance. Given where the rule fired, the relevant photos in it follow the hypergeometric distribution and
nothing else, whatever the ranking was like; so the interval holds at the stop, for one audit whose size was fixed
before. An annotator who stops because of what the interval says draws another audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from eyespot.types import UsageError

LEVEL = 0.95
HALF = 0.5  # the middle of every lot: the mid-p interval


@dataclass(frozen=True)
class Audit:
    """A random draw from what nobody had looked at: `drawn` of `rest` photos, `relevant` of them relevant."""

    rest: int
    drawn: int
    relevant: int

    def __post_init__(self) -> None:
        if not 0 <= self.relevant <= self.drawn <= self.rest:
            raise UsageError(
                f"an audit of {self.drawn} photos out of {self.rest} with {self.relevant} relevant cannot be;"
                " each number is at most the one before"
            )


class Remaining(NamedTuple):
    """How many relevant photos are still unseen: the unbiased estimate and the interval."""

    expected: float
    low: int
    high: int

    def without(self, found: int, unseen: int) -> Remaining:
        """What remains once `found` more relevant photos of the rest turned up and `unseen` are left to look at."""
        left = (min(max(number - found, 0), unseen) for number in self)
        expected, low, high = left
        return Remaining(expected, int(low), int(high))


def remaining(audit: Audit, level: float = LEVEL, lot: float = HALF) -> Remaining:
    """The relevant photos of the rest that the audit did not show, with an interval at this level.

    Both ends invert the hypergeometric tails (Clopper and Pearson 1934). Such tails move in steps; `lot` says how much
    of the step on which the audit lies counts. Drawn evenly from 0 to 1 it makes the interval right exactly as often as
    promised (Stevens 1950), but for this: no interval denies what the audit has shown, so where nothing is left all are
    right. 1 errs on the safe side; 0.5 is the mid-p interval, right about as often as promised without a draw. Raises
    `UsageError` for a level or lot outside 0 to 1.
    """
    if not 0 < level < 1 or not 0 <= lot <= 1:
        raise UsageError(f"a level lies between 0 and 1 and a lot from 0 to 1, not {level} and {lot}")
    tail = (1 - level) / 2
    least, most = audit.relevant, audit.rest - (audit.drawn - audit.relevant)
    low = _first(least, most, lambda count: 1 - _at_most(audit, count, 1 - lot) > tail) if audit.relevant else 0
    high = _first(least, most + 1, lambda count: _at_most(audit, count, lot) <= tail) - 1
    expected = audit.relevant / audit.drawn * (audit.rest - audit.drawn) if audit.drawn else math.nan
    return Remaining(expected, low - least, max(high, low, least) - least)


def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """The first count from `start` for which it holds, `end` if for none; once it holds it goes on to."""
    while start < end:
        middle = (start + end) // 2
        start, end = (start, middle) if holds(middle) else (middle + 1, end)
    return start


# -- the hypergeometric distribution --------------------------------------------------------------------------------


def _at_most(audit: Audit, count: int, lot: float) -> float:
    """The chance of fewer relevant photos, and `lot` of the chance of as many, where `count` of the rest are."""
    fewer = math.fsum(_chance(audit, count, shown) for shown in range(audit.relevant))
    return fewer + lot * _chance(audit, count, audit.relevant)


def _chance(audit: Audit, count: int, shown: int) -> float:
    """That `shown` relevant photos are drawn where `count` of the rest are relevant."""
    hidden = audit.drawn - shown
    if shown > count or hidden > audit.rest - count:
        return 0.0
    ways = _choices(count, shown) + _choices(audit.rest - count, hidden) - _choices(audit.rest, audit.drawn)
    return math.exp(ways)


def _choices(many: int, few: int) -> float:
    """The logarithm of the ways to choose a few of many."""
    return math.lgamma(many + 1) - math.lgamma(few + 1) - math.lgamma(many - few + 1)
