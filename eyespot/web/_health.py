"""What whoever runs the server asks: is it alive, is it ready, how does it fare, what can programs ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import PlainTextResponse

from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import Served

router = APIRouter(tags=["running"])
LINKS = (Link("API", "/docs"),)


@router.get("/healthz", response_class=PlainTextResponse)
def healthz() -> str:
    """Alive."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse)
def readyz(house: Served) -> str:
    """Ready to search at once; 503 while the encoder and the vectors are still being loaded."""
    if not house.ready:
        raise Problem(503, house.unready, {"Retry-After": "2"})
    return f"ready\n{house.tier.health}"


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[Depends(needs(Role.OWNER))])
def metrics(house: Served) -> str:
    """Requests, their time, and memory, in the text format of Prometheus; for the owner."""
    return house.counts.text() + house.scans.text() + house.tier.text()


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """The API on one page, made of its OpenAPI description."""
    described = request.app.openapi()
    operations: list[dict[str, Any]] = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            fields = list(_fields(described, operation))
            operations.append({"method": method.upper(), "path": path, "fields": fields, **operation})
    operations.sort(key=lambda one: one["path"] != "/v1/search")  # what most come for; the others in their order
    return page(request, "docs.html", operations=operations, about=described["info"], base=request.base_url)


def _fields(described: dict[str, Any], operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Parameters of the address, and fields of the body, each with where it goes."""
    yield from operation.get("parameters", ())
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = described["components"]["schemas"][body["schema"]["$ref"].rpartition("/")[2]]
        for name, one in schema["properties"].items():
            text = one.get("description") or ", ".join(one.get("enum", ()))
            needed = name in schema.get("required", ())
            yield {"name": name, "in": f"body ({kind})", "description": text, "required": needed}
