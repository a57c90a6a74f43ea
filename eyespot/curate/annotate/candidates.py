"""Which photos a query is labelled over, and in which order: all of some labels, else a search that goes on.

INQUIRE, section 3.2: species labels where they apply, the nearest photos of a strong encoder where they do not. A
logistic regression on the embeddings, learned from the labels so far, orders the rest. The logarithm of a photo's rank
in the search counts beside it, which keeps a good ranking good. How much is left is for the audit to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.gallery import filters
from eyespot.gallery.filters import Condition
from eyespot.gallery.view import View
from eyespot.photos.names import stored_name
from eyespot.search.collection import Collection
from eyespot.search.matching import matched
from eyespot.types import NothingFound, Query, Run, Vectors

STEP = 500  # photos that a growing list grows by


def list_labelled(store: AnnotationStore, id: str, collection: Collection, condition: Condition) -> int:
    """Put all photos that pass a filter on the list, the nearest to the words first; gives how many are new.

    Raises `NothingFound` if none pass.
    """
    # The order matters although all are looked at: with the relevant ones first an annotator sees what they look like.
    count = int(filters.mask(collection.view.tables, condition).sum())
    found = collection.search(store.query(id).query, k=max(count, 1), where=condition).run
    store.narrow(id)
    return store.extend(id, _photos(found, collection.view))


def list_nearest(store: AnnotationStore, id: str, collection: Collection, count: int = STEP) -> int:
    """Put the nearest photos on a list that may grow, `count` more than are on it; gives how many are new."""
    wanted = len(store.candidates(id)) + count
    photos = nearest(collection, store.query(id).query, wanted)
    return _let_grow(store, id, collection.view, photos)


def nearest(collection: Collection, query: Query, count: int) -> list[Candidate]:
    """The photos that a search of the whole gallery finds first."""
    return list(_photos(collection.search(query, k=max(count, 1), by="look").run, collection.view))


def grow_by_rows(store: AnnotationStore, id: str, view: View, rows: Sequence[int]) -> int:
    """Let a list go on with what a search of the whole gallery found, its rows in order; gives how many are new."""
    return _let_grow(store, id, view, [_candidate(facts, view) for facts in view.facts(rows)])


def _let_grow(store: AnnotationStore, id: str, view: View, photos: Sequence[Candidate]) -> int:
    """What the search leaves out counts as not looked at, so only one that brought every photo is at its end."""
    store.let_grow(id)
    new = store.extend(id, photos)
    if len(photos) >= view.live.sum():
        store.let_grow(id, ended=True)
    return new


def list_rows(store: AnnotationStore, id: str, view: View, rows: Sequence[int]) -> int:
    """Put these rows of a gallery on the list, in their order; gives how many are new."""
    return store.extend(id, (_candidate(facts, view) for facts in view.facts(rows)))


def list_ranked(store: AnnotationStore, id: str, view: View, run: Run) -> tuple[int, list[str]]:
    """Put the photos of a ranking on the list, by the query's id in the run and the photos' ids, paths or file names.

    Gives how many are new, and the names that the gallery does not know; `NothingFound` if it knows none.
    """
    if id not in run:
        raise NothingFound(f"the ranking has no query {id!r}; give one that ranks photos for it")
    matching = matched(view, (hit.image for hit in run[id]))
    rows = matching.rows[matching.rows >= 0].tolist()
    if not rows:
        example = f"such as {matching.names[0]}" if matching.names else "for it is empty"
        raise NothingFound(f"no photo of the ranking is in the gallery, {example}; name another with -g")
    return list_rows(store, id, view, rows), matching.unmatched


def _photos(found: Run, view: View) -> Iterable[Candidate]:
    (query,) = found
    return (_candidate(found.facts[hit.image], view) for hit in found[query])


def _candidate(facts: Mapping[str, Any], view: View) -> Candidate:
    """A photo with its place within its root: what lies above that is nobody's business."""
    path, roots = stored_name(str(facts["path"] or "")), (root.path for root in view.gallery.header.roots.values())
    above = max((root for root in roots if path.startswith(f"{root}/")), key=len, default=None)
    return Candidate(str(facts["id"]), path if above is None else path[len(above) + 1 :])


def any_label(column: str, values: Sequence[str]) -> Condition:
    """The filter for photos with one of these labels."""
    return Condition(" OR ".join(f"({filters.label(column, value).sql})" for value in values), (column,))


# -- photos nobody has looked at ------------------------------------------------------------------------------------


def draw_from_gallery(
    collection: Collection, seen: Iterable[str], size: int, rng: np.random.Generator
) -> tuple[int, list[Candidate]]:
    """How many photos of the gallery are not among those seen, and `size` of them drawn at random, or all."""
    view = collection.view
    left, rows = view.live.copy(), view.rows_by_id(list(seen))
    left[rows[rows >= 0]] = False
    unseen = np.flatnonzero(left)
    drawn = rng.choice(unseen, min(size, len(unseen)), replace=False).tolist()
    return len(unseen), [_candidate(facts, view) for facts in view.facts(drawn)]


# -- the likely ones first ------------------------------------------------------------------------------------------


RIDGE = 1.0
STEPS, CLOSE = 25, 1e-3  # Newton's, and how small the last one is
PRIOR = 3.0  # how much a photo's rank weighs beside the model once both classes are seen

Reals = NDArray[np.float64]


def learned_order(vectors: Vectors, labels: Sequence[bool | None], unsure: bool = False) -> NDArray[np.int64]:
    """The unlabelled rows, the most likely relevant first; `vectors` (photos, dim) stand in the order of the ranking.

    With `unsure` those of which the model is least sure come first (uncertainty sampling, Lewis and Gale 1994). While
    only one class was seen the ranking stays as it is.
    """
    known = np.array([label is not None for label in labels], bool)  # (photos,)
    truth = np.array([bool(label) for label in labels])[known]
    rest = np.flatnonzero(~known)
    if len(set(truth.tolist())) < 2:
        return rest
    mean = vectors.mean(axis=0)
    weights = fit((vectors[known] - mean).astype(np.float64), truth)
    odds = (vectors[rest] - mean) @ weights[:-1] + weights[-1]  # log-odds
    return rest[np.argsort(np.abs(odds) if unsure else PRIOR * np.log(rest + 1.0) - odds, kind="stable")]


def fit(features: Reals, truth: NDArray[np.bool_]) -> Reals:
    """Weights and intercept, (dim + 1,), of a ridge-penalised logistic regression, both classes of equal weight."""
    # Rows of a length at which the ridge leaves them a say
    scale = float(np.sqrt(features.shape[1]) / max(np.linalg.norm(features, axis=1).mean(), 1e-12))
    rows = np.hstack([features * scale, np.ones((len(features), 1))])  # (labelled, dim + 1)
    importance = np.where(truth, 0.5 / truth.sum(), 0.5 / (~truth).sum()) * len(truth)
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        probability: Reals = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        uphill = rows.T @ (importance * (truth - probability)) - RIDGE * weights
        curvature = (rows.T * (importance * probability * (1 - probability))) @ rows + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(curvature, uphill)
        weights += step
        if np.abs(step).max() < CLOSE:
            break
    weights[:-1] *= scale
    return weights
