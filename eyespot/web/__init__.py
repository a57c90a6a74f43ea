"""eyespot in the browser: search, annotation, and an API for programs, over one gallery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module

from fastapi import Depends, FastAPI
from starlette.middleware.gzip import GZipMiddleware

import eyespot
from eyespot.web import _pages, _problems, review
from eyespot.web._search_params import refuse_unknown
from eyespot.web._security import AuthMiddleware
from eyespot.web._settings import Access, Judging, Role, ServerSettings, User, read_access, read_named, read_refused
from eyespot.web._state import AppState
from eyespot.web.connections import DownloadsLast

__all__ = [
    "Access",
    "Judging",
    "Role",
    "ServerSettings",
    "User",
    "application",
    "read_access",
    "read_named",
    "read_refused",
]

# each with a `router`, some with LINKS for the bar
PARTS = (
    "login",
    "searching",
    "counting",
    "filtering",
    "reranking",
    "map",
    "why",
    "api",
    "programs",
    "large",
    "lists.api",
    "lists.pages",
    "lists.shared",
    "annotate",
    "review",
    "indexing",
    "_health",
)


def application(settings: ServerSettings) -> FastAPI:
    """The server over one gallery; run it with any ASGI server.

    Raises `UsageError` if there is no gallery, an adapter or a judge cannot be used, or a queue to review is none.
    Everything else that may be wrong is told to whoever asks.
    """
    state = AppState(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        state.snapshots.prepare()
        yield
        state.close()

    app = FastAPI(
        title="eyespot",
        version=eyespot.__version__,
        description="Search a gallery of photos, look at its items, read and write judgements.",
        docs_url=None,  # those pages fetch scripts from afar; /docs here is our own
        redoc_url=None,
        lifespan=lifespan,
        responses=_problems.DOCUMENTED,
        dependencies=[Depends(refuse_unknown)],
    )
    app.state.eyespot, app.state.links = state, []
    app.include_router(_pages.router)
    for name in PARTS:
        part = import_module(f"eyespot.web.{name}")
        app.include_router(part.router)
        app.state.links += getattr(part, "LINKS", ())
    with suppress(ImportError):  # without the extra, or with another version of the SDK
        app.include_router(import_module("eyespot.web.mcp").router)
    review.install(app, settings.reviews)
    _pages.install(app)
    # No page holds a token or another secret beside what somebody sent, so no compressed size gives one away (BREACH).
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    app.add_middleware(DownloadsLast)
    app.add_middleware(AuthMiddleware, settings=settings)
    return app
