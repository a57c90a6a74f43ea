"""Queries that are typed in, and their lists: the first photos of a search that goes on, or all photos of a label."""

from __future__ import annotations

import numpy as np

from eyespot.curate.annotate import candidates, shared_list
from eyespot.curate.annotate.active import likely_first, telling_first
from eyespot.curate.annotate.annotation_store import Candidate, relevant
from eyespot.curate.annotate.auditing import share_of
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.gallery import filters
from eyespot.search.chain import StageOptions
from eyespot.types import Mask, NothingFound, UsageError
from eyespot.web._problems import Problem
from eyespot.web._search_params import refuse
from eyespot.web._state import AppState
from eyespot.web.annotate._session import AnnotationSession
from eyespot.web.found.snapshot import Snapshot


def query_of_words(at: AnnotationSession, state: AppState, text: str) -> str:
    """The id of the query with these words, taken in if it is new.

    `Problem` for words that the owner refuses, `UsageError` for none.
    """
    words = " ".join(text.split())
    known = next((id for id, one in at.store.queries().items() if one.text == words), None)
    if known is not None:
        return known
    refuse(words, state.settings.refused)
    at.store.take_in([AnnotationQuery(words, words, {})])
    return words


def grow_list(at: AnnotationSession, state: AppState, query: str) -> int:
    """Let the list of a search go on; gives how many photos are new."""
    snapshot = state.snapshots.current()
    wanted = len(at.store.candidates(query)) + candidates.STEP
    rows = _nearest(at, query, snapshot, snapshot.view.live, wanted)
    return candidates.grow_by_rows(at.store, query, snapshot.view, rows)


def mask_of_a_label(snapshot: Snapshot, label: str) -> Mask:
    """The photos of COLUMN=VALUE; `UsageError` for what is no label and `NothingFound` if no photo has it."""
    column, sign, value = label.partition("=")
    if not sign or not column.strip():
        raise UsageError(f"a label is COLUMN=VALUE, such as category=fishes, not {label!r}")
    condition = filters.label(column.strip(), value.strip())
    mask = snapshot.mask(filters.checked(condition.sql, list(snapshot.kinds)))
    if not mask.any():
        raise NothingFound(f"no photo has {label}; choose one of the labels that the form offers")
    return mask


def list_all(at: AnnotationSession, query: str, snapshot: Snapshot, mask: Mask) -> int:
    """Put all photos that a mask lets through on the list, the nearest first; gives how many are new."""
    rows = _nearest(at, query, snapshot, mask, int(mask.sum()))
    return candidates.list_rows(at.store, query, snapshot.view, rows)


def _nearest(at: AnnotationSession, query: str, snapshot: Snapshot, mask: Mask, count: int) -> list[int]:
    words = at.store.query(query).query
    run = snapshot.ranked(words, snapshot.embedded(words), StageOptions(count, mask))
    return [int(id) for id in run.image]


def photos_shown(at: AnnotationSession, state: AppState, query: str, what: str) -> list[Candidate]:
    """The photos of one of the ways to look."""
    if what == "team":
        return shared_list.photos_of(at.store, query, at.annotator_name())
    if what == "audit":
        share = share_of(at.store, query, at.annotator_name())
        if share is None:
            raise Problem(404, "no audit was drawn yet; draw one from the page of the query")
        return share
    listed = at.store.candidates(query)
    if what == "list":
        return listed
    labels = {image: relevant(label) for image, label in at.store.last_judgements(query, at.annotator_name()).items()}
    snapshot = state.snapshots.current()
    rows = {photo.image: snapshot.row_of(photo.image) for photo in listed}
    there = [photo for photo in listed if rows[photo.image] is not None]
    if not there:
        return []
    vectors = np.stack([snapshot.vector(row) for photo in there if (row := rows[photo.image]) is not None])
    in_order = telling_first if what == "telling" else likely_first
    order = in_order(vectors, [labels.get(photo.image) for photo in there])
    return [there[at_row] for at_row in order.tolist()]
