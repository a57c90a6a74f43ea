"""Who sits at the annotators' desk: the desk of this gallery, and the name that a token proves or somebody said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from threading import Lock

from fastapi import APIRouter, FastAPI, Request

from eyespot.curate.annotate.annotation_store import LONGEST, AnnotationStore
from eyespot.web._problems import Problem
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import AppState
from eyespot.web.annotate._overview import Overview

annotator = needs(Role.ANNOTATOR)
_opening = Lock()


@dataclass(frozen=True)
class AnnotationSession:
    """The desk, who sits at it, empty until they said how they are called, and how its queries stand."""

    desk: AnnotationStore
    who: str
    overview: Overview

    def named(self) -> str:
        """Who it is; `Problem` if nobody knows."""
        if not self.who:
            raise Problem(422, "nobody knows who you are here; say your name on the page /annotate first")
        return self.who


def seat(request: Request) -> AnnotationSession:
    """The seat of whoever asks, as a dependency; turned away without the role."""
    who = annotator(request).name[:LONGEST].strip()
    # Where the ledger cannot be written, who only looks gets a desk over a copy, and who says something is told
    state, looks = request.app.state, request.method == "GET"
    house: AppState = state.house
    ledger = (house.said if looks else house.judgements).path
    with _opening:
        if getattr(state, "desk", None) is None or state.desk.judgements.path != ledger:
            state.desk = AnnotationStore(ledger)
            state.overview = Overview(state.desk)
    desk, overview = state.desk, state.overview
    return AnnotationSession(desk, who, overview)


def new_router(prefix: str) -> APIRouter:
    """The router of these pages, which closes the desk when the server ends."""
    return APIRouter(prefix=prefix, include_in_schema=False, lifespan=_close)


@asynccontextmanager
async def _close(app: FastAPI) -> AsyncIterator[None]:
    yield
    desk: AnnotationStore | None = getattr(app.state, "desk", None)
    if desk is not None:
        desk.close()
