"""What whoever runs the server asks: is it alive, is it ready, what can programs ask of it."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.responses import PlainTextResponse

from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._state import State

router = APIRouter(tags=["running"])
LINKS = (Link("API", "/docs"),)


@router.get("/healthz", response_class=PlainTextResponse)
def healthz() -> str:
    """Alive."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse)
def readyz(state: State) -> str:
    """Ready to search at once; 503 while the encoder and the vectors are still being loaded."""
    if not state.snapshots.ready:
        raise Problem(503, state.snapshots.unready, {"Retry-After": "2"})
    return f"ready\n{state.snapshots.tier.health}"


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """The API on one page, made of its OpenAPI description."""
    described = request.app.openapi()
    # what most come for first; the others in their order
    paths = sorted(described["paths"].items(), key=lambda one: one[0] != "/v1/search")
    return page(request, "docs.html", paths=paths, schemas=described["components"]["schemas"], base=request.base_url)
