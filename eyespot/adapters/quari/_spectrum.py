"""A few eigenvectors of a symmetric matrix, and a proven bound of how deep it goes below zero, without its spectrum."""

from __future__ import annotations

import functools

import numpy as np

from eyespot.kernels.rows import Reals

_ROUNDS = 3  # of subspace iteration, each with the fourth power of the matrix
_NEAR = 0.25  # of an eigenvalue: how far the matrix may move its vector off
_UNIT = 2.0**-53
_GROWTH = 2  # of the step beyond a guess, as long as it is too short


def leading_pairs(form: Reals, count: int) -> tuple[Reals, Reals]:
    """About the `count` eigenvalues of a symmetric matrix (c, c) that are farthest from 0, ascending, with vectors.

    (b,) and orthonormal columns (c, b), without those that are far off; small matrices are taken apart to rounding.
    """
    size = float(np.linalg.norm(form))
    if 2 * count >= len(form) or size == 0:
        values, vectors = np.linalg.eigh(form)
        return values, vectors
    square, turn = (form / size) @ (form / size), _start(len(form), count)
    power = square @ square
    for _ in range(_ROUNDS):
        turn = np.linalg.qr(power @ turn)[0]
    image = form @ turn
    values, inner = np.linalg.eigh(turn.T @ image)
    turn = turn @ inner
    near = np.linalg.norm(image @ inner - values * turn, axis=0) <= _NEAR * np.abs(values)
    return values[near], turn[:, near]


@functools.cache
def _start(rows: int, columns: int) -> Reals:
    return np.random.default_rng(0).standard_normal((rows, columns))


def depth(form: Reals, guess: float, step: float) -> float:
    """A number d >= guess such that form + d I surely has no negative eigenvalue, for a symmetric matrix (c, c).

    step: how much above the guess is tried first. If D is the true depth, d is at most guess + step, or exceeds the
    guess by no more than twice what D and rounding do, and is never above the root of the sum of all squares.
    """
    most, whole = float(np.linalg.norm(form)) * (1 + 1e-12), guess
    while step > 0:
        whole = guess + step
        if whole >= most or _surely_positive(form + whole * np.eye(len(form))):
            break
        step *= _GROWTH
    return max(guess, min(whole, most))


def _surely_positive(form: Reals) -> bool:
    """Whether Cholesky's factorisation proves that no eigenvalue of the matrix is below 0.

    It proves as much of a matrix from which its own rounding has been subtracted (Rump, Verification of positive
    definiteness, BIT 46, 2006).
    """
    rounding = 2 * (len(form) + 3) * _UNIT * max(0.0, float(np.trace(form))) + 1e-300
    try:
        np.linalg.cholesky(form - rounding * np.eye(len(form)))
    except np.linalg.LinAlgError:
        return False
    return True
