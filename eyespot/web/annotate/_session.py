"""Who labels: the annotation store of this gallery, and the name that a token proves or somebody gave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Query, Request

from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.team_store import LONGEST_NAME
from eyespot.web._problems import Problem
from eyespot.web._recent import RecentAnswers
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import app_state
from eyespot.web.annotate._overview import Overview
from eyespot.web.found.snapshot import Snapshot

annotator = needs(Role.ANNOTATOR)
_opening = Lock()
LISTS = 64  # whose groups are remembered


@dataclass(frozen=True)
class AnnotationSession:
    """The store, the annotator's name ("" while nobody gave one), and the state of all queries."""

    store: AnnotationStore
    who: str
    overview: Overview
    groups: RecentAnswers[dict[str, int]]

    def annotator_name(self) -> str:
        """The annotator's name; `Problem` if it is unknown."""
        if not self.who:
            raise Problem(422, "nobody knows who you are here; say your name on the page /annotate first")
        return self.who

    def groups_of(self, query: str, listed: Sequence[Candidate], snapshot: Snapshot) -> dict[str, int]:
        """For each photo of a query's list, which only grows at its end, the number of its group, if it is in one."""

        def make() -> dict[str, int]:
            rows = snapshot.rows_by_id([photo.image for photo in listed])
            numbers = np.append(snapshot.groups.numbers, -1)[rows].tolist()  # -1 also of what is gone
            return {photo.image: number for photo, number in zip(listed, numbers, strict=True) if number >= 0}

        return self.groups.get((query, snapshot.version, len(listed)), make)


def session_of(request: Request) -> AnnotationSession:
    """The session of whoever asks, as a dependency; refused without the role."""
    who = annotator(request).name[:LONGEST_NAME].strip()
    # Where the ledger cannot be written, anyone who only reads gets a store over a copy, and a write is refused
    served = app_state(request).ledger
    ledger = (served.readable if request.method == "GET" else served.writable).judgements.path
    app_data = request.app.state
    with _opening:
        if getattr(app_data, "store", None) is None or app_data.store.judgements.path != ledger:
            app_data.store = AnnotationStore(ledger)
            app_data.overview, app_data.list_groups = Overview(app_data.store), RecentAnswers(LISTS)
        return AnnotationSession(app_data.store, who, app_data.overview, app_data.list_groups)


Session = Annotated[AnnotationSession, Depends(session_of)]
LONGEST_ID = 1000  # a file of queries may have longer ones than the form takes
Id = Annotated[str, Query(max_length=LONGEST_ID)]


def check_listed(at: AnnotationSession, query: str, images: Iterable[str]) -> None:
    """`Problem` if some of these photos are on no list of the query."""
    strange = set(images).difference(at.store.photos(query))
    if strange:
        raise Problem(409, f"{len(strange)} of these photos are on no list of this query; load the page again")


def new_router(prefix: str) -> APIRouter:
    """The router of these pages, which closes the store when the server ends."""

    @asynccontextmanager
    async def closing(app: FastAPI) -> AsyncIterator[None]:
        yield
        store: AnnotationStore | None = getattr(app.state, "store", None)
        if store is not None:
            store.close()

    return APIRouter(prefix=prefix, include_in_schema=False, lifespan=closing)


def units(listed: Sequence[Candidate], groups: dict[str, int]) -> list[list[str]]:
    """The photos of a list as they are labelled: groups where their first photo stands, and single photos."""
    found: dict[object, list[str]] = {}
    for photo in listed:
        found.setdefault(groups.get(photo.image, photo.image), []).append(photo.image)
    return list(found.values())
