"""What whoever runs the server asks: is it alive, is it ready, how does it fare, what can programs ask of it."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Lock

from fastapi import APIRouter, Depends, Request, Response
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._security import needs
from eyespot.web._settings import Role
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


@router.get("/metrics", response_class=PlainTextResponse, dependencies=[Depends(needs(Role.OWNER))])
def metrics(request: Request, state: State) -> str:
    """Requests, their time, and memory, in the text format of Prometheus; for the owner."""
    counts: RequestMetrics = request.app.state.metrics
    return counts.text() + state.snapshots.scans.text() + state.snapshots.tier.text()


@router.get("/docs", include_in_schema=False)
def docs(request: Request) -> Response:
    """The API on one page, made of its OpenAPI description."""
    described = request.app.openapi()
    # what most come for first; the others in their order
    paths = sorted(described["paths"].items(), key=lambda one: one[0] != "/v1/search")
    return page(request, "docs.html", paths=paths, schemas=described["components"]["schemas"], base=request.base_url)


BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, inf)  # seconds
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class RequestMetrics:
    """Requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One more request that was answered."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a counter of fractions is one too
            for bound in BOUNDS:
                self._within[route, bound] += seconds <= bound

    def text(self) -> str:
        """All of it, a line each."""
        lines = ["# TYPE eyespot_requests_total counter"]
        with self._lock:
            for (method, route, status), count in sorted(self._requests.items()):
                lines.append(f'eyespot_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}')
            lines.append("# TYPE eyespot_request_seconds histogram")
            for route, seconds in sorted(self._seconds.items()):
                for bound in BOUNDS:
                    labels = f'{{route="{route}",le="{"+Inf" if bound == inf else f"{bound:g}"}"}}'
                    lines.append(f"eyespot_request_seconds_bucket{labels} {self._within[route, bound]}")
                lines.append(f'eyespot_request_seconds_sum{{route="{route}"}} {seconds:.6f}')
                lines.append(f'eyespot_request_seconds_count{{route="{route}"}} {self._within[route, inf]}')
        lines.append("# TYPE process_cpu_seconds_total counter")
        lines.append(f"process_cpu_seconds_total {time.process_time():.3f}")
        with suppress(OSError, ValueError, StopIteration):  # only Linux tells it so
            status_lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
            kilobytes = next(line.split()[1] for line in status_lines if line.startswith("VmRSS:"))
            lines.append("# TYPE process_resident_memory_bytes gauge")
            lines.append(f"process_resident_memory_bytes {int(kilobytes) * 1024}")
        return "\n".join([*lines, ""])


class MetricsMiddleware:
    """The middleware that counts every answer, refusals among them."""

    def __init__(self, app: ASGIApp, counts: RequestMetrics) -> None:
        self.app, self.counts = app, counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begun, status = time.perf_counter(), 500

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path", "other")  # never the address itself: it holds what was asked
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.counts.count(method, route, status, time.perf_counter() - begun)
