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
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyespot.adapters.quari._formula import Formula
from eyespot.kernels.rows import Reals

_ROUNDING = 2.0**-38  # of ‖f(x)‖², in units of the largest it could be: what double precision may lose here
_LIKELY = 4  # one in so many rows of the sample is looked at: those that score best
_FEW = 4  # directions by whose energy the two ways are compared
_LEAST = 2.0**-18  # of the squares of all columns: what a direction of an orthonormal basis has at least
_PAIRS = 24  # eigenvectors of a map about the identity
_LEAST_VALUE = 2.0**-20  # of the largest: an eigenvalue below it counts as none
_ROOM = 2.0**-10  # of ‖identity · x‖²: by so much the bound of the rest may be too large
_NOTHING_ADDED = 2.0**-60  # of `size`: a map that adds no more to the identity
_ENOUGH = 0.5  # of ‖x‖²: with so much explained, the other way is not computed
_NEGLIGIBLE = 1e-7  # a direction with less than this share of what all add is not worth its product
_ROUNDS = 3  # of subspace iteration, each with the fourth power of the matrix
_NEAR = 0.25  # of an eigenvalue: how far the matrix may move its vector off
_UNIT = 2.0**-53
_GROWTH = 2  # of the step beyond a guess, as long as it is too short


@dataclass(frozen=True, eq=False)
class Directions:
    """‖f(x)‖² ≥ own · (x·w)² + floor · ‖x‖² + Σ (x·gains)² - Σ (x·debts)² - slack · ‖x‖² for every x."""

    direction: Reals  # w, (dim,)
    gains: Reals  # (a, dim)
    debts: Reals  # (b, dim)
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

    def energy(self, count: int) -> float:
        """How much of the mean ‖f(x)‖² of the sample these give."""


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

    The basis comes from the columns' products with each other. With identity a direction of which the columns hold next
    to nothing is left out, which only lowers the bound; without it no basis is needed, only Cholesky's factor.
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
        if formula.identity:
            columns, loss = _about_the_query(formula)
        elif not formula.spans[0] * formula.spans[1]:
            columns, loss = formula.left[:, :0], 0.0
        else:  # of C = left, Σ = Cx · (G + a little) Cx
            error = _gram_error(formula.right) * formula.left.shape[1]
            root = _root(_gram_beside(formula), error * formula.spans[1] ** 2)
            columns, loss = formula.left @ root, 4 * error
        turned, energies = _principal(sample @ columns.astype(np.float32))
        own = float(np.mean(np.square(sample @ direction.astype(np.float32)), dtype=np.float64))
        return cls(direction, columns, turned, energies, own, formula.size, loss)

    def first(self, count: int) -> Directions:
        head = (self.columns @ self.turn[:, : min(count, _worth(self.energies))]).T
        return Directions(self.direction, head, head[:0], 1.0, 0.0, self.size, self.loss)

    def energy(self, count: int) -> float:
        return self.own + float(self.energies[:count].sum())


def _about_the_query(formula: Formula) -> tuple[Reals, float]:
    """For any map, columns (dim, c) and what they may lose."""
    query, right = formula.query, formula.right
    gram = _gram_beside(formula)
    values, turn = np.linalg.eigh(gram)
    sure = values > _LEAST * formula.spans[1] ** 2
    turn = turn[:, sure] / np.sqrt(values[sure])  # (r, c)
    columns = formula.left @ (gram @ turn)  # (dim, c)
    columns += formula.identity * (right @ turn - np.outer(query, (query @ right) @ turn))
    off = _gram_error(right) * formula.spans[1] ** 2
    return columns, off / float(values[sure].min()) if sure.any() else 0.0


def _gram_beside(formula: Formula) -> Reals:
    """The products with each other of the columns of `right` without their share of the query, (r, r)."""
    along = formula.query @ formula.right
    gram: Reals = formula.right.T @ formula.right - np.outer(along, along)
    return gram


@dataclass(frozen=True, eq=False)
class _Terms:
    """Directions with weights, as columns for x and for the coordinates in which the rest is bounded."""

    columns: Reals  # (dim, b)
    roots: Reals  # (c, b)

    def only(self, which: NDArray[Any]) -> _Terms:
        return _Terms(self.columns[:, which], self.roots[:, which])

    def times(self, matrix: Reals) -> _Terms:
        return _Terms(self.columns @ matrix, self.roots @ matrix)

    def head(self, count: int, weights: Reals | float = 1.0) -> _Terms:
        return _Terms(self.columns[:, :count] * weights, self.roots[:, :count] * weights)


@dataclass(frozen=True, eq=False)
class NormTerms:
    """‖f(x)‖² = own ‖x‖² + Σ (x·gains)² - Σ (x·debts)² + a rest that is bounded and not taken apart.

    With the columns C = (left, right) all but own ‖x‖² is C'x · K C'x, K of the products of `right`. Λ is Cholesky's
    factor of C'C and a little more, so Λ'EΛ + d I >= 0 proves C'x · E C'x >= -d ‖x‖² for any E. Gains and debts come
    from some eigenvectors of the form Λ'KΛ; they may be off, since what they leave of it is bounded.
    """

    formula: Formula
    direction: Reals
    sample: NDArray[np.float32]
    form: Reals  # Λ'KΛ, (c, c)
    gains: _Terms  # most telling first
    energies: Reals  # (p,), their mean squared products with the sample
    debts: _Terms  # the deepest first
    owes: Reals  # (n,), mean squared products, at unit length
    depths: Reals  # (n + 1,), descending, the last about what all others are
    mean: float  # of ‖x‖²
    loss: float
    partial: bool  # whether the form has more eigenvectors

    @classmethod
    def of(cls, formula: Formula, direction: Reals, sample: NDArray[np.float32], count: int = _PAIRS) -> NormTerms:
        """From `count` eigenvectors; all of a form that hardly has more."""
        source = np.concatenate([formula.left, formula.right], axis=1)  # C, (dim, 2 r)
        if formula.spans[0] * formula.spans[1] <= _NOTHING_ADDED * formula.size:  # less than rounding is allowed
            source = source[:, :0]
        gram, error = source.T @ source, _gram_error(source)
        rank, spread = len(gram) // 2, float(np.trace(gram))
        middle = np.zeros_like(gram)  # K
        middle[:rank, :rank] = gram[rank:, rank:]
        middle[:rank, rank:] = middle[rank:, :rank] = formula.identity * np.eye(rank)
        root = _root(gram, error * len(gram) * spread)
        form: Reals = root.T @ (middle @ root)
        values, turn = leading_pairs(form, count)
        partial = len(values) < len(form)
        telling = np.abs(values) > _LEAST_VALUE * np.abs(values).max(initial=0)
        values, turn = values[telling], turn[:, telling]
        weights = middle @ (root @ (turn / np.sqrt(np.abs(values))))
        terms = _Terms(source @ weights, root.T @ weights)
        seen = sample @ terms.columns.astype(np.float32)  # (n, b)
        up, down = np.flatnonzero(values > 0), np.flatnonzero(values < 0)  # ascending values: the deepest first
        turned, energies = _principal(seen[:, up])
        owes = np.square(seen[:, down]).astype(np.float64).mean(axis=0) / -values[down]
        depths: Reals = np.append(-values[down], np.abs(values).min() if partial and len(values) else 0.0)
        mean = float(np.vdot(sample, sample)) / max(1, len(sample))
        # What rounding does to the form, to the terms, and to the form less the terms
        long, off = float(np.linalg.norm(terms.columns)), error * spread**0.5 * float(np.linalg.norm(weights))
        sums = spread * (float(np.linalg.norm(middle)) + formula.spans[1] ** 2) + long**2
        loss = (error * sums + off * (2 * long + off)) / formula.size**2
        gains, debts = terms.only(up).times(turned), terms.only(down)
        return cls(formula, direction, sample, form, gains, energies, debts, owes, depths, mean, loss, partial)

    def first(self, count: int) -> Directions:
        if count > _PAIRS and self.partial:
            return self._whole.first(count)
        own, owed = self.formula.identity**2, self._split(count)
        guess = float(self.depths[owed])
        gains = self.gains.head(min(count - owed, _worth(self.energies)))
        debts = self.debts.head(owed, np.sqrt(1 - guess / self.depths[:owed]))
        rest = self.form - gains.roots @ gains.roots.T + debts.roots @ debts.roots.T
        step = max(own * _ROOM, guess / 64, 2.0**-30 * float(np.linalg.norm(rest)))
        floor = own - depth(rest, guess, step)
        return Directions(self.direction, gains.columns.T, debts.columns.T, 0.0, floor, self.formula.size, self.loss)

    def energy(self, count: int) -> float:
        return self._explained(self._split(count), count)

    @cached_property
    def _whole(self) -> NormTerms:
        return NormTerms.of(self.formula, self.direction, self.sample, len(self.form))

    def _split(self, count: int) -> int:
        """How many of the `count` directions had best be debts."""
        most = min(count, len(self.owes))
        return max(range(most + 1), key=lambda owed: self._explained(owed, count))

    def _explained(self, owed: int, count: int) -> float:
        rest = self.depths[owed]
        paid = float(((self.depths[:owed] - rest) * self.owes[:owed]).sum())
        own = self.formula.identity**2
        return float((own - rest) * self.mean + self.energies[: count - owed].sum() - paid)


def _root(gram: Reals, more: float) -> Reals:
    """Cholesky's factor of a matrix of products with `more` added to its diagonal."""
    return np.asarray(np.linalg.cholesky(gram + more * np.eye(len(gram))), np.float64)


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


# -- a few eigenvectors, and a proven bound of how deep a matrix goes below zero, without its spectrum ----------


def leading_pairs(form: Reals, count: int) -> tuple[Reals, Reals]:
    """About the `count` eigenvalues of a symmetric matrix (c, c) that are farthest from 0, ascending, with vectors.

    (b,) and orthonormal columns (c, b), without those that are far off; small matrices are taken apart to rounding.
    """
    size = float(np.linalg.norm(form))
    if 2 * count >= len(form) or size == 0:
        values, vectors = np.linalg.eigh(form)
        return values, vectors
    square, turn = (form / size) @ (form / size), _random_start(len(form), count)
    power = square @ square
    for _ in range(_ROUNDS):
        turn = np.linalg.qr(power @ turn)[0]
    image = form @ turn
    values, inner = np.linalg.eigh(turn.T @ image)
    turn = turn @ inner
    near = np.linalg.norm(image @ inner - values * turn, axis=0) <= _NEAR * np.abs(values)
    return values[near], turn[:, near]


@cache
def _random_start(rows: int, columns: int) -> Reals:
    return np.random.default_rng(0).standard_normal((rows, columns))


def depth(form: Reals, guess: float, step: float) -> float:
    """A number d >= guess such that form + d I surely has no negative eigenvalue, for a symmetric matrix (c, c).

    step: how much above the guess is tried first. If D is the true depth, d is at most guess + step, or exceeds the
    guess by no more than twice what D and rounding do, and is never above the root of the sum of all squares.
    """
    most, whole = float(np.linalg.norm(form)) * (1 + 1e-12), guess
    while step > 0:
        whole = guess + step
        if whole >= most:
            break
        # Cholesky's factorisation proves that a matrix has no eigenvalue below 0, if its own rounding was subtracted
        # before (Rump, Verification of positive definiteness, BIT 46, 2006)
        shifted = form + whole * np.eye(len(form))
        rounding = 2 * (len(form) + 3) * _UNIT * max(0.0, float(np.trace(shifted))) + 1e-300
        with suppress(np.linalg.LinAlgError):
            np.linalg.cholesky(shifted - rounding * np.eye(len(form)))
            break
        step *= _GROWTH
    return max(guess, min(whole, most))
