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

from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._formula import Formula
from eyespot.kernels.rows import Reals

_ROUNDING = 2.0**-38  # of ‖f(x)‖², in units of the largest it could be: what double precision may lose here
_LIKELY = 4  # one in so many rows of the sample is looked at: those that score best
_FEW = 4  # directions by whose energy the two ways are compared
_LEAST = 2.0**-18  # of the squares of all columns: what a direction of an orthonormal basis has at least
_MOST_LOST = 2.0**-12  # of ‖identity · x‖², by a basis that one product of the columns with themselves gives
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
    loss: float = 0.0  # of ‖f(x)‖² at its largest, beside what double precision loses in a few sums

    @property
    def slack(self) -> float:
        return (_ROUNDING + self.loss) * self.size**2


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
    if about.energy(_FEW) > _ENOUGH * formula.identity**2:
        return about
    outside = Outside.of(formula, direction, likely)
    return about if about.energy(_FEW) > outside.energy(_FEW) else outside


@dataclass(frozen=True, eq=False)
class Outside:
    """‖f(x)‖² ≥ (x·w)² + Σ (f(x)·v)² over an orthonormal basis v of what `right` can put at right angles to the query.

    The basis comes from the columns' products with each other. A direction of which the columns hold next to nothing
    is left out, which only lowers the bound.
    """

    direction: Reals
    columns: Reals  # (dim, c)
    turn: Reals  # (c, c), to columns of which the first tell most
    energies: Reals  # (c,), their mean squared products with the sample
    own: float
    size: float
    loss: float

    @classmethod
    def of(cls, formula: Formula, direction: Reals, sample: NDArray[np.float32]) -> Outside:
        query, left, right = formula.query, formula.left, formula.right
        along = right.T @ query  # (r,)
        squares = right.T @ right  # (r, r)
        gram = squares - np.outer(along, along)  # of the columns of `right` without their share of the query
        values, turn = np.linalg.eigh(gram)
        sure = values > _LEAST * float(np.trace(squares))
        turn = turn[:, sure] / np.sqrt(values[sure])  # (r, c)
        columns = left @ (gram @ turn)  # (dim, c)
        if formula.identity:
            columns += formula.identity * (right @ turn - np.outer(query, along @ turn))
        turned, energies = _principal(sample @ columns.astype(np.float32))
        own = float(np.mean(np.square(sample @ direction.astype(np.float32)), dtype=np.float64))
        off = _gram_error(right) * float(np.trace(squares))
        loss = off / float(values[sure].min()) if sure.any() else 0.0
        return cls(direction, columns, turned, energies, own, formula.size, loss)

    def first(self, count: int) -> Directions:
        head = (self.columns @ self.turn[:, : min(count, _worth(self.energies))]).T
        return Directions(self.direction, head, head[:0], 1.0, 0.0, self.size, self.loss)

    def energy(self, count: int) -> float:
        return self.own + float(self.energies[:count].sum())


@dataclass(frozen=True, eq=False)
class NormTerms:
    """‖f(x)‖² = own ‖x‖² + Σ (x·positive)² - Σ depth (x·negative)², negatives of unit length, the deepest first.

    Both are columns of `source` turned.
    """

    direction: Reals
    source: Reals  # (dim, c)
    positive: Reals  # (c, p), most telling first
    energies: Reals  # (p,), their mean squared products with the sample
    negative: Reals  # (c, n)
    owes: Reals  # (n,), mean squared products
    depths: Reals  # (n + 1,), descending, the last 0
    mean: float  # of ‖x‖²
    own: float  # the square of f's share of the identity
    size: float
    loss: float

    @classmethod
    def of(cls, formula: Formula, direction: Reals, sample: NDArray[np.float32]) -> NormTerms:
        own = formula.identity**2
        basis = _basis(np.column_stack([formula.left, formula.right]), _MOST_LOST * own / formula.size**2)
        left, right = np.hsplit(basis.products, 2)
        cross = left @ right.T
        values, turn = np.linalg.eigh(formula.identity * (cross + cross.T) + cross @ cross.T)
        turn = basis.turn @ turn
        up, down = values > 0, values < 0
        positive, negative = turn[:, up] * np.sqrt(values[up]), turn[:, down]  # ascending values: the deepest first
        seen = sample @ basis.source.astype(np.float32)  # (n, c)
        turned, energies = _principal(seen @ positive.astype(np.float32))
        owes = np.square(seen @ negative.astype(np.float32)).astype(np.float64).mean(axis=0)
        depths: Reals = np.append(-values[down], 0.0)
        mean = float(np.einsum("ij,ij->", sample, sample, dtype=np.float64)) / max(1, len(sample))
        loss = 4 * basis.loss
        positive = positive @ turned
        return cls(direction, basis.source, positive, energies, negative, owes, depths, mean, own, formula.size, loss)

    def first(self, count: int) -> Directions:
        owed = self._split(count)
        head = self.source @ self.positive[:, : min(count - owed, _worth(self.energies))]
        rest = self.depths[owed]
        scaled = (self.source @ self.negative[:, :owed]) * np.sqrt(self.depths[:owed] - rest)
        return Directions(self.direction, head.T, scaled.T, 0.0, self.own - float(rest), self.size, self.loss)

    def energy(self, count: int) -> float:
        return self._explained(self._split(count), count)

    def _split(self, count: int) -> int:
        """How many of the `count` directions had best be negative ones."""
        most = min(count, len(self.owes))
        return max(range(most + 1), key=lambda owed: self._explained(owed, count))

    def _explained(self, owed: int, count: int) -> float:
        rest = self.depths[owed]
        paid = float(((self.depths[:owed] - rest) * self.owes[:owed]).sum())
        return float((self.own - rest) * self.mean + self.energies[: count - owed].sum() - paid)


class _Basis(NamedTuple):
    """An orthonormal basis of some columns: `source` turned."""

    source: Reals  # (dim, c)
    turn: Reals  # (c, b)
    products: Reals  # (b, c), of the basis and the columns
    loss: float  # how far a vector's squared products with the basis may be above its square, as a share of it


def _basis(columns: Reals, most: float) -> _Basis:
    """An orthonormal basis of columns (dim, c): from their products with each other, where that loses at most `most`.

    That is one product of matrices, while Householder's way goes column by column.
    """
    gram = columns.T @ columns  # (c, c)
    with suppress(np.linalg.LinAlgError):
        root = np.linalg.cholesky(gram)
        inverse: Reals = np.linalg.inv(root)
        # Of columns at unit length, which is how Cholesky's error counts (Higham, theorem 10.7)
        loss = len(gram) * _gram_error(columns) * float(np.square(inverse).sum(axis=0) @ np.diag(gram))
        if loss <= most:
            return _Basis(columns, inverse.T, np.asarray(root.T, np.float64), loss)
    whole: Reals = np.asarray(np.linalg.qr(columns)[0], np.float64)
    return _Basis(whole, np.eye(whole.shape[1]), whole.T @ columns, 0.0)


def _gram_error(columns: Reals) -> float:
    """What double precision loses of columns' products and in taking their matrix apart, per lengths of both."""
    return 4 * (sum(columns.shape) + 8) * 2.0**-53


def _principal(products: NDArray[np.float32]) -> tuple[Reals, Reals]:
    """How columns (dim, c) of these products (n, c) with the sample are turned so that the first few give most.

    (c, c), and the mean squared product of each turned column with the sample.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        spread = (products.T @ products).astype(np.float64) / max(1, len(products))
    if not np.isfinite(spread).all():
        return np.eye(len(spread)), np.ones(len(spread))
    values, turn = np.linalg.eigh(spread)
    return turn[:, ::-1], np.maximum(values[::-1], 0.0)


def _worth(energies: Reals) -> int:
    """How many of the descending energies are worth their products."""
    return int(np.count_nonzero(energies > _NEGLIGIBLE * energies.sum()))
