"""One number of a benchmark: ours over a named peer, where smaller is better."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

NOISY = 2.0  # a peer whose p90 is more than this many times its p10 says nothing


@dataclass(frozen=True)
class Measurement:
    """A ratio with its spread, the number of trials, and the goal: the ratio that it may have at most, if any."""

    name: str
    ratio: float
    peer: str
    p10: float
    p90: float
    n: int
    goal: float | None = None
    noise: float = field(default=1.0, kw_only=True)  # p90 / p10 of the peer in the same run

    @classmethod
    def from_trials(cls, name: str, ratios: ArrayLike, peer: str, goal: float | None = None) -> Self:
        """The median of some trials, from their p10 to their p90."""
        p10, middle, p90 = np.percentile(np.asarray(ratios, np.float64), (10, 50, 90)).tolist()
        return cls(name, middle, peer, p10, p90, np.size(ratios), goal)

    @classmethod
    def from_mean(cls, name: str, values: ArrayLike, peer: str, goal: float | None = None) -> Self:
        """The mean of some values, such as the share of wrong answers; without a spread."""
        mean = float(np.asarray(values, np.float64).mean())
        return cls(name, mean, peer, mean, mean, np.size(values), goal)

    def times(self, factor: float) -> Self:
        """The same for ours multiplied by a factor, as where it has so many workers or rows."""
        return replace(self, ratio=factor * self.ratio, p10=factor * self.p10, p90=factor * self.p90)

    @property
    def met(self) -> bool:
        """Whether the goal is reached; true without a goal."""
        return self.goal is None or self.ratio <= self.goal

    @property
    def noisy(self) -> bool:
        """Whether the machine was too busy to tell: such a run is thrown away."""
        return self.noise > NOISY

    def json(self) -> str:
        """The line of `--json`."""
        return json.dumps({name: value for name, value in asdict(self).items() if name != "noise"})

    def __str__(self) -> str:
        spread = "" if self.p10 == self.p90 else f"{self.p10:.4g}-{self.p90:.4g}, "
        return f"{self.name}: {self.ratio:.4g} ({spread}n={self.n}) of {self.peer}{self.verdict}"

    @property
    def verdict(self) -> str:
        """The end of the line for people."""
        return "" if self.goal is None else f"; goal {self.goal:g}: {'met' if self.met else 'MISSED'}"
