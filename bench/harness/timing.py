"""Timing against a peer: fresh inputs in random order, the peer before and after each call of ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bench.harness.command import BenchmarkError, say
from bench.harness.data import Reals
from bench.harness.measurement import Measurement

T = TypeVar("T")
Task = Callable[[Any], Any]
Clock = Callable[[], float]


def timed(call: Callable[[], T], clock: Clock = time.process_time) -> tuple[float, T]:
    """Seconds of a call, CPU time by default, and what it gives."""
    start = clock()
    answer = call()
    return clock() - start, answer


class TrialTimes(NamedTuple):
    """Seconds of the peer, of ours, and of the peer again, on the same input."""

    before: float
    ours: float
    after: float


@dataclass
class Race:
    """Ours against a peer. Ratios are our time over the mean of the peer's before and after it."""

    name: str
    peer: str
    ours: Task
    theirs: Task
    goal: float | None = None
    clock: Clock = time.process_time  # perf_counter where other processes or threads work
    calls: int = 1  # of ours between two of the peer, where the peer takes far longer
    before_each: Callable[[], object] = lambda: None  # outside the clock
    same: Callable[[Any, Any], bool] = lambda ours, theirs: True  # whether the answers agree
    trials: list[TrialTimes] = field(default_factory=list)

    def run(self, value: Any) -> tuple[Any, Any]:
        """Time both on one input; gives the answers of ours and of the peer."""
        before, expected = self._timed(self.theirs, value)
        ours = [self._timed(self.ours, value) for _ in range(self.calls)]
        after, _ = self._timed(self.theirs, value)
        self.trials += [TrialTimes(before, seconds, after) for seconds, _ in ours]
        return self._checked(ours[-1][1], expected)

    def warm(self, value: Any) -> None:
        """Run both, uncounted: code is compiled and files are read."""
        self._checked(self.ours(value), self.theirs(value))

    def _timed(self, task: Task, value: Any) -> tuple[float, Any]:
        self.before_each()
        return timed(lambda: task(value), self.clock)

    def _checked(self, answer: Any, expected: Any) -> tuple[Any, Any]:
        if not self.same(answer, expected):
            raise BenchmarkError(f"{self.name}: {answer} differs from {expected}, the answer of {self.peer}")
        return answer, expected

    @property
    def times(self) -> Reals:
        """Seconds, (3, trials): the peer, ours, the peer again."""
        return np.array(self.trials).T

    @property
    def ratios(self) -> Reals:
        before, ours, after = self.times
        return np.asarray(2 * ours / (before + after))

    def measurement(self) -> Measurement:
        """The median of the ratios, with the peer's noise."""
        before, ours, after = self.times
        low, high = np.percentile(np.concatenate([before, after]), (10, 90))
        kind = "CPU time" if self.clock is time.process_time else "wall time"
        say(f"{self.name}: ours {milliseconds(ours)}, {self.peer} {milliseconds([before, after])} of {kind}")
        return replace(Measurement.from_trials(self.name, self.ratios, self.peer, self.goal), noise=float(high / low))


def milliseconds(times: ArrayLike) -> str:
    """The median of some seconds."""
    return f"{1e3 * np.median(np.asarray(times, np.float64)):,.3f} ms"


def race(races: Sequence[tuple[Race, Sequence[Any]]]) -> Iterator[Measurement]:
    """All races with their inputs, in random order; the first input of each only warms up."""
    for each, (first, *_) in races:
        each.warm(first)
    order = [(each, value) for each, (_, *values) in races for value in values]
    for at in np.random.default_rng(1).permutation(len(order)):
        each, value = order[at]
        each.run(value)
    for each, _ in races:
        yield each.measurement()
