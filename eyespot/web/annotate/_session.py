"""Who labels: the annotation store of this gallery, and the name that a token proves or somebody gave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request

from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.team_store import LONGEST_NAME
from eyespot.web._problems import Problem
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import AppState
from eyespot.web.annotate._groups import ListGroups
from eyespot.web.annotate._overview import Overview

annotator = needs(Role.ANNOTATOR)
_opening = Lock()


@dataclass(frozen=True)
class AnnotationSession:
    """The store, the annotator's name ("" while nobody gave one), and the state of all queries."""

    store: AnnotationStore
    who: str
    overview: Overview
    groups: ListGroups

    def annotator_name(self) -> str:
        """The annotator's name; `Problem` if it is unknown."""
        if not self.who:
            raise Problem(422, "nobody knows who you are here; say your name on the page /annotate first")
        return self.who


def session_of(request: Request) -> AnnotationSession:
    """The session of whoever asks, as a dependency; refused without the role."""
    who = annotator(request).name[:LONGEST_NAME].strip()
    # Where the ledger cannot be written, anyone who only reads gets a store over a copy, and a write is refused
    state, reads = request.app.state, request.method == "GET"
    house: AppState = state.house
    ledger = (house.readable_judgements if reads else house.judgements).path
    with _opening:
        if getattr(state, "store", None) is None or state.store.judgements.path != ledger:
            state.store = AnnotationStore(ledger)
            state.overview, state.list_groups = Overview(state.store), ListGroups()
        return AnnotationSession(state.store, who, state.overview, state.list_groups)


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
