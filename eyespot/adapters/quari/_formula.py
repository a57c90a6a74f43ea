"""The score of an image under an adapted query, to the letter in float64 and, with a bound on its error, in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eyespot.kernels.rows import Reals
from eyespot.types import AdaptedQuery, UsageError

NOTHING = 1e-9  # an image whose f(x) is shorter than this share of what it could be is mapped to nothing: score 0

_TOGETHER = 48  # rows; blocks of one size, the last filled up, so that equal rows are summed alike wherever they lie


ScoreBounds: TypeAlias = tuple[Any, Any]
"""What the scores of some rows surely lie between, (rows,) both: low and high."""


@dataclass(frozen=True, eq=False)
class Formula:
    """cos(query, f(x)) with f(x) = identity · x + (x @ left) @ right.T, for rows x of any length.

    Only the direction of f(x) counts, so f is scaled by a power of two, which rounds nothing, to a `size` of about 1.
    A row of f(x) = 0 has no direction: where ‖f(x)‖ ≤ `NOTHING` · ‖x‖ · `size`, within which rounding decides on the
    direction, the score is 0.
    """

    query: Reals  # (dim,), of unit length
    left: Reals  # (dim, r)
    right: Reals  # (dim, r)
    identity: float
    size: float  # ‖f(x)‖ ≤ size · ‖x‖
    spans: tuple[float, float]  # ‖left‖ and ‖right‖ over all their entries

    @classmethod
    def of(cls, adapted: AdaptedQuery, dim: int) -> Formula:
        """UsageError if the query does not fit vectors of so many components, or holds NaN or infinity."""
        query, left, right = (np.asarray(part, np.float64) for part in adapted[:3])
        if query.shape != (dim,) or left.ndim != 2 or left.shape != right.shape or len(left) != dim:
            shapes = f"{query.shape}, {left.shape} and {right.shape}"
            raise UsageError(
                f"an adapted query of shapes {shapes} does not fit these vectors; its parts need {dim} rows"
            )
        if not all(np.isfinite(part).all() for part in (query, left, right, adapted.identity)):
            raise UsageError("an adapted query holds NaN or infinity; adapt it again")
        left, right, identity = _of_size_one(left, right, float(adapted.identity))
        spans = float(np.linalg.norm(left)), float(np.linalg.norm(right))
        length = float(np.linalg.norm(query))
        return cls(query / (length or 1.0), left, right, identity, abs(identity) + spans[0] * spans[1], spans)

    @property
    def direction(self) -> Reals:
        """The vector w whose product with an image is that of the query with the image's f(x), (dim,)."""
        return self.identity * self.query + self.left @ (self.right.T @ self.query)

    @cached_property
    def target(self) -> tuple[Reals, Reals]:
        """What a row's products with `left` are compared with: the query (d,) and the columns of `right` (d, r).

        Without identity f(x) lies among the columns of `right`, which with the query turn to r + 1 dimensions.

        Householder's way keeps all lengths and angles to rounding.
        """
        dim, rank = self.right.shape
        if self.identity or rank + 1 >= dim:
            return (self.query, self.right)
        turned = np.asarray(np.linalg.qr(np.column_stack([self.right, self.query]), mode="r"), np.float64)
        return (np.ascontiguousarray(turned[:, rank]), np.ascontiguousarray(turned[:, :rank]))

    def scores(self, vectors: NDArray[Any]) -> Reals:
        """The formula in float64 for vectors (n, dim): (n,)."""
        query, right = self.target
        scores = np.empty(len(vectors))
        for start in range(0, len(vectors), _TOGETHER):
            block = np.zeros((_TOGETHER, vectors.shape[1]))
            part = vectors[start : start + _TOGETHER]
            block[: len(part)] = part
            with np.errstate(invalid="ignore"):  # of a row that is not finite: its score is NaN
                bent = (block @ self.left) @ right.T  # (n, dim), or (n, r + 1)
                if self.identity:
                    bent += self.identity * block
                lengths = np.linalg.norm(bent, axis=1)
                mask = ~(lengths <= NOTHING * self.size * np.linalg.norm(block, axis=1))  # NaN stays NaN
                block_scores: Reals = np.divide(bent @ query, lengths, out=np.zeros(len(block)), where=mask)
                scores[start : start + _TOGETHER] = block_scores[: len(part)]
        return scores

    def near(self, vectors: NDArray[np.float32], lengths: Reals) -> ScoreBounds:
        """What the scores of vectors (n, dim), not longer than `lengths` (n,), surely lie between, by float32 alone."""
        parts = [np.asarray(part, np.float32) for part in (*self.target, self.left)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self.between(vectors, lengths, parts, np)

    def between(self, vectors: Any, lengths: Any, parts: Sequence[Any], xp: Any) -> ScoreBounds:
        """The same in the precision of the vectors, by arrays of `xp`, which is numpy or torch.

        parts: the two of `target`, and `left`, in that precision. lengths: float64.
        """
        query, right, left = parts
        inner = vectors @ left  # (n, r)
        if not self.identity:
            bent = inner @ right.T
        elif xp is np:
            bent = self.identity * vectors + inner @ right.T
        else:  # torch adds while it multiplies
            bent = xp.addmm(vectors, inner, right.T, beta=self.identity)
        inner_lengths, short = (xp.asarray(_lengths(rows, xp), dtype=xp.float64) for rows in (inner, bent))
        middle = xp.asarray(bent @ query, dtype=xp.float64) / short
        error = self._error(lengths, inner_lengths, short, float(xp.finfo(vectors.dtype).eps) / 2, xp)
        sure = (error < 1) & xp.isfinite(middle) & xp.isfinite(short)
        middle, error = xp.where(sure, middle, 0.0), xp.where(sure, error, 1.0)
        return middle - error, middle + error

    @cached_property
    def _stretch(self) -> float:
        return stretch(self.right.T)

    def _error(self, lengths: Any, inner: Any, bent: Any, unit: float, xp: Any) -> Any:
        """How far rounding to `unit` of a number may put a score off, at least 1 where it tells nothing.

        A product of two vectors of n components is off by at most γₙ = n u / (1 - n u) of their lengths'
        product in any order of summation (Higham, Accuracy and Stability of Numerical Algorithms, §3.1); so f(x) is
        off by δ, its direction by 2 δ / ‖f(x)‖, and the score by no more than that and its own rounding.
        """
        dim, rank = self.left.shape
        (left, right), stretched = self.spans, self._stretch
        first = (dim + 4) * 1.1 * unit * left * stretched * lengths
        second = (rank + 4) * 1.1 * unit * right * (inner * 1.001)
        added = (rank + 8) * 1.1 * unit * abs(self.identity) * lengths  # it may be what a product begins with
        vanished = dim * 2.0**-100 * (1 + right) * (1 + lengths)  # what is too small for float32
        off = first + second + added + vanished + 16 * NOTHING * self.size * lengths
        return xp.where(bent > 1e-15, 2.2 * off / bent, xp.inf) + (3 * dim + 16) * unit


def _lengths(rows: Any, xp: Any) -> Any:
    if xp is np:
        return np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return xp.linalg.vector_norm(rows, dim=1)  # torch's einsum multiplies row by row


def stretch(columns: Reals) -> float:
    """The largest singular value of columns (c, dim), or a little more."""
    if not len(columns):
        return 0.0
    largest = max(0.0, float(np.linalg.eigvalsh(columns @ columns.T)[-1]))
    return float(largest**0.5) * (1 + 1e-6) + 1e-7 * float(np.linalg.norm(columns))


def _of_size_one(left: Reals, right: Reals, identity: float) -> tuple[Reals, Reals, float]:
    """The same f but for a power of two, with a size between 1/2 and 1 and the two factors about alike."""
    spans = np.linalg.norm(left), np.linalg.norm(right)
    powers = [int(np.frexp(span)[1]) for span in spans]
    whole = int(np.frexp(abs(identity) + spans[0] * spans[1])[1])
    half = (sum(powers) - whole) // 2
    others = sum(powers) - whole - half
    return np.ldexp(left, half - powers[0]), np.ldexp(right, others - powers[1]), float(np.ldexp(identity, -whole))
