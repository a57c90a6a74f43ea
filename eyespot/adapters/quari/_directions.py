"""Which few products with an image bound its score from above: the algebra that lets a scan skip the whole formula.

With w such that the score of x is x·w / ‖f(x)‖, only the length needs more than one product, and any part of it that
is surely there bounds it from below. Two ways to take it apart, the better of which for the gallery at hand is used:

outside the query: f(x) has the component x·w along the query, and others along directions at right angles to it; the
    squares of any of them add up to no more than ‖f(x)‖². Nothing is assumed, so this serves maps of any kind.
about the identity: ‖f(x)‖² = identity² ‖x‖² + Σ μᵢ (x·eᵢ)² over at most 2r orthonormal directions eᵢ. Those of
    positive μ may be left out; of the negative ones some are counted, and the rest take at most the next |μ| of ‖x‖².
    Where f is near the identity this bound is tight with hardly a direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._formula import Formula
from eyespot.kernels.rows import Reals

_ROUNDING = 2.0**-38  # of ‖f(x)‖², in units of the largest it could be: what double precision may lose here
_LIKELY = 4  # one in so many rows of the sample is looked at: those that score best
_ENOUGH = 0.5  # of ‖x‖²: told so much, the other way is not looked at
_NEGLIGIBLE = 1e-7  # a direction with less than this share of what all add is not worth its product


@dataclass(frozen=True, eq=False)
class Directions:
    """‖f(x)‖² ≥ own · (x·w)² + floor · ‖x‖² + Σ (x·kept)² - Σ (x·owed)² - slack · ‖x‖² for every x."""

    direction: Reals  # w, (dim,)
    kept: Reals  # (a, dim)
    owed: Reals  # (b, dim)
    own: float
    floor: float
    size: float  # ‖f(x)‖ ≤ size · ‖x‖

    @property
    def slack(self) -> float:
        return _ROUNDING * self.size**2


class Ways(Protocol):
    """One way to take ‖f(x)‖² apart."""

    def first(self, count: int) -> Directions:
        """The `count` directions that tell most, or all there are."""
        ...

    def energy(self, count: int) -> float:
        """How much of the mean ‖f(x)‖² of the sample these give."""
        ...


def ways(formula: Formula, sample: NDArray[np.float32]) -> Ways:
    """The better way for rows like those of the sample (n, dim)."""
    direction = formula.direction
    # The rows that lie nearest to the direction: only for rows of high score need the bound be tight
    scores = sample @ direction.astype(np.float32)
    count = max(1, len(sample) // _LIKELY)
    likely = sample[np.argpartition(-scores, count - 1)[:count]] if len(sample) > count else sample
    if not formula.identity:
        return Outside.of(formula, direction, likely)
    about = NormTerms.of(formula, direction, likely)
    if about.energy(_LIKELY) > _ENOUGH * formula.identity**2:
        return about
    outside = Outside.of(formula, direction, likely)
    return about if about.energy(_LIKELY) > outside.energy(_LIKELY) else outside


@dataclass(frozen=True, eq=False)
class Outside:
    """‖f(x)‖² = (x·w)² + Σ (f(x)·v)² over an orthonormal basis v of all that is at right angles to the query."""

    direction: Reals
    columns: Reals  # (c, dim), most telling first
    energies: Reals  # (c,), their mean squared products with the sample
    own: float
    size: float

    @classmethod
    def of(cls, formula: Formula, direction: Reals, sample: NDArray[np.float32]) -> Outside:
        """The part of that basis in which `right` can put anything."""
        whole = _orthonormal(np.column_stack([formula.query, formula.right]))  # (dim, 1 + r)
        basis = whole[:, 1:]
        columns = formula.identity * basis + formula.left @ (formula.right.T @ basis)  # (dim, r)
        turned, energies = _principal(columns, sample)
        own = float(np.mean(np.square(sample @ direction.astype(np.float32)), dtype=np.float64))
        return cls(direction, turned, energies, own, formula.size)

    def first(self, count: int) -> Directions:
        head = self.columns[: min(count, _worth(self.energies))]
        return Directions(self.direction, head, self.columns[:0], 1.0, 0.0, self.size)

    def energy(self, count: int) -> float:
        return self.own + float(self.energies[:count].sum())


@dataclass(frozen=True, eq=False)
class NormTerms:
    """‖f(x)‖² = own ‖x‖² + Σ (x·positive)² - Σ depth (x·negative)², negatives of unit length, the deepest first."""

    direction: Reals
    positive: Reals  # (p, dim), most telling first
    energies: Reals  # (p,), their mean squared products with the sample
    negative: Reals  # (n, dim)
    owes: Reals  # (n,), mean squared products
    depths: Reals  # (n + 1,), descending, the last 0
    mean: float  # of ‖x‖²
    own: float  # the square of f's share of the identity
    size: float

    @classmethod
    def of(cls, formula: Formula, direction: Reals, sample: NDArray[np.float32]) -> NormTerms:
        basis = _orthonormal(np.column_stack([formula.left, formula.right]))  # (dim, at most 2r)
        left, right = basis.T @ formula.left, basis.T @ formula.right
        cross = left @ right.T
        values, turn = np.linalg.eigh(formula.identity * (cross + cross.T) + cross @ cross.T)
        vectors = basis @ turn  # (dim, at most 2r)
        up, down = values > 0, values < 0
        positive, energies = _principal(vectors[:, up] * np.sqrt(values[up]), sample)
        negative = vectors[:, down].T  # ascending values: the deepest first
        owes = np.square(sample @ negative.T.astype(np.float32)).astype(np.float64).mean(axis=0)
        depths: Reals = np.append(-values[down], 0.0)
        mean = float(np.mean(np.square(sample).sum(axis=1), dtype=np.float64))
        own = formula.identity**2
        return cls(direction, positive, energies, negative, owes, depths, mean, own, formula.size)

    def first(self, count: int) -> Directions:
        owed = self._split(count)
        head = self.positive[: min(count - owed, _worth(self.energies))]
        rest = self.depths[owed]
        scaled = self.negative[:owed] * np.sqrt(self.depths[:owed] - rest)[:, None]
        return Directions(self.direction, head, scaled, 0.0, self.own - float(rest), self.size)

    def energy(self, count: int) -> float:
        return self._explained(self._split(count), count)

    def _split(self, count: int) -> int:
        """How many of the `count` directions had best be negative ones."""
        most = min(count, len(self.negative))
        return max(range(most + 1), key=lambda owed: self._explained(owed, count))

    def _explained(self, owed: int, count: int) -> float:
        rest = self.depths[owed]
        paid = float(((self.depths[:owed] - rest) * self.owes[:owed]).sum())
        return float((self.own - rest) * self.mean + self.energies[: count - owed].sum() - paid)


def _orthonormal(columns: Reals) -> Reals:
    """An orthonormal basis of columns (dim, c), the first of them first.

    Two rounds of Cholesky on their products, where they are independent enough for that: a few products of matrices,
    while Householder's way has all threads wait for each other at every column.
    """
    basis, gram = columns, np.zeros(())
    for _ in range(2):
        gram = basis.T @ basis  # (c, c)
        try:
            basis = basis @ np.linalg.inv(np.linalg.cholesky(gram)).T
        except np.linalg.LinAlgError:
            return np.linalg.qr(columns)[0]
    if np.abs(gram - np.eye(len(gram))).max(initial=0) < 0.1:
        return basis
    return np.linalg.qr(columns)[0]


def _principal(columns: Reals, sample: NDArray[np.float32]) -> tuple[Reals, Reals]:
    """The columns (dim, c) turned among themselves so that the first few give most of their squares' sum.

    Rows (c, dim), and the mean squared product of each with the sample.
    """
    products = sample @ columns.astype(np.float32)  # (n, c)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = (products.T @ products).astype(np.float64) / max(1, len(sample))
    if not np.isfinite(spread).all():
        return columns.T.copy(), np.square(columns).sum(axis=0)
    values, turn = np.linalg.eigh(spread)
    return (columns @ turn[:, ::-1]).T, np.maximum(values[::-1], 0.0)


def _worth(energies: Reals) -> int:
    """How many of the descending energies are worth their products."""
    return int(np.count_nonzero(energies > _NEGLIGIBLE * energies.sum()))
