"""Which photos the grid shows, in which order: a list, a share of it, an audit, the likely or the telling ones."""

from __future__ import annotations

import numpy as np

from eyespot.curate.annotate import shared_list
from eyespot.curate.annotate.active import likely_first, telling_first
from eyespot.curate.annotate.annotation_store import Candidate, relevant
from eyespot.curate.annotate.auditing import share_of
from eyespot.web._problems import Problem
from eyespot.web._state import AppState
from eyespot.web.annotate._session import AnnotationSession


def photos_shown(at: AnnotationSession, house: AppState, query: str, what: str) -> list[Candidate]:
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
    snapshot = house.snapshot()
    rows = {photo.image: snapshot.row_of(photo.image) for photo in listed}
    there = [photo for photo in listed if rows[photo.image] is not None]
    if not there:
        return []
    vectors = np.stack([snapshot.vector(row) for photo in there if (row := rows[photo.image]) is not None])
    in_order = telling_first if what == "telling" else likely_first
    order = in_order(vectors, [labels.get(photo.image) for photo in there])
    return [there[at_row] for at_row in order.tolist()]
