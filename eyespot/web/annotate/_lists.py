"""Queries that are typed in, and their lists: the first photos of a search that goes on, or all photos of a label."""

from __future__ import annotations

from eyespot.curate.annotate import candidates
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.gallery import filters
from eyespot.settings.search import RankingSettings
from eyespot.types import Mask, NothingFound, UsageError
from eyespot.web._search_params import refuse
from eyespot.web._state import AppState
from eyespot.web.annotate._session import AnnotationSession
from eyespot.web.found.snapshot import Snapshot


def query_of_words(at: AnnotationSession, house: AppState, text: str) -> str:
    """The id of the query with these words, taken in if it is new.

    `Problem` for words that the owner refuses, `UsageError` for none.
    """
    words = " ".join(text.split())
    known = next((id for id, one in at.store.queries().items() if one.text == words), None)
    if known is not None:
        return known
    refuse(words, house.settings.refused)
    at.store.take_in([AnnotationQuery(words, words, {})])
    return words


def grow_list(at: AnnotationSession, house: AppState, query: str) -> int:
    """Let the list of a search go on; gives how many photos are new."""
    snapshot = house.snapshot()
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
    run = snapshot.ranked(words, snapshot.embedded(words), RankingSettings(by="look"), k=count, mask=mask)
    return [int(id) for id in run.image]
