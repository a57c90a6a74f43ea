"""The likely ones first: a logistic regression on the embeddings, learnt from the labels so far, orders the rest.

The logarithm of a photo's rank in the search goes on to count beside what was learnt, which keeps a good ranking good.
What is found this way is found sooner; how much is left is still for the audit to say, for the stopping rule counts
ranks of the list as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyespot.types import Vectors

RIDGE = 1.0
STEPS, CLOSE = 25, 1e-3  # Newton's, and how small the last one is
PRIOR = 3.0  # how much a photo's rank weighs beside the model once both classes are seen

Reals = NDArray[np.float64]


def likely_first(vectors: Vectors, labels: Sequence[bool | None]) -> NDArray[np.int64]:
    """The unlabelled rows, the most likely relevant first; `vectors` (photos, dim) stand in the order of the ranking.

    While only one class was seen the ranking stays as it is.
    """
    rest, odds = _learnt(vectors, labels)
    return rest if odds is None else rest[np.argsort(-(odds - PRIOR * np.log(rest + 1.0)), kind="stable")]


def telling_first(vectors: Vectors, labels: Sequence[bool | None]) -> NDArray[np.int64]:
    """The unlabelled rows, those of which the model is least sure first (uncertainty sampling, Lewis and Gale 1994).

    While only one class was seen the ranking stays as it is.
    """
    rest, odds = _learnt(vectors, labels)
    return rest if odds is None else rest[np.argsort(np.abs(odds), kind="stable")]


def _learnt(vectors: Vectors, labels: Sequence[bool | None]) -> tuple[NDArray[np.int64], Reals | None]:
    """The unlabelled rows, and the log-odds that the model gives them; None while only one class was seen."""
    known = np.array([label is not None for label in labels], bool)  # (photos,)
    truth = np.array([bool(label) for label in labels])[known]
    rest = np.flatnonzero(~known)
    if len(set(truth.tolist())) < 2:
        return rest, None
    mean = vectors.mean(axis=0)
    weights = fit((vectors[known] - mean).astype(np.float64), truth)
    return rest, (vectors[rest] - mean) @ weights[:-1] + weights[-1]


def fit(features: Reals, truth: NDArray[np.bool_]) -> Reals:
    """Weights and intercept, (dim + 1,), of a ridge-penalised logistic regression, both classes of equal weight."""
    # Rows of a length at which the ridge leaves them a say
    scale = float(np.sqrt(features.shape[1]) / max(np.linalg.norm(features, axis=1).mean(), 1e-12))
    rows = np.hstack([features * scale, np.ones((len(features), 1))])  # (labelled, dim + 1)
    importance = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum()) * len(truth)
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        chance: Reals = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        uphill = rows.T @ (importance * (truth - chance)) - RIDGE * weights
        curvature = (rows.T * (importance * chance * (1 - chance))) @ rows + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, uphill)
        weights += step
        if np.abs(step).max() < CLOSE:
            break
    weights[:-1] *= scale
    return weights
