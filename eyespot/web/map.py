"""The map of the collection: its page, its points for the page's script, and a region's photos."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Annotated, Any, Literal
from urllib.parse import quote_plus
from weakref import WeakKeyDictionary

import numpy as np
from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import AfterValidator, BaseModel, Field

from eyespot.extras import needed
from eyespot.settings.search import RankingSettings
from eyespot.types import EyespotError, NothingFound, quantity
from eyespot.web._items import item_of, title_of
from eyespot.web._judging import judge_key_of
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._search_params import Given, Name, SearchParams, is_text
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.found.on_map import ShownMap, map_of
from eyespot.web.searching import helpers

router = APIRouter(dependencies=[Depends(needs(Role.READER))])
LINKS = (Link("Map", "/map"),)
LIT = (100, 500, 2_000, 10_000)  # how many of the first hits may be lit up
BYTES = "application/octet-stream"
FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}  # the version in the address names the content
Encoder = Annotated[str | None, Query(max_length=300)]
Version = Annotated[str, Query(pattern="^[0-9a-f]{16}$", description="The `version` of /v1/map.")]
Depth = Annotated[int, Query(ge=1, le=LIT[-1], description="How many of the first hits.")]
Reader = Annotated[User, Depends(needs(Role.READER))]


@router.get("/map", include_in_schema=False)
def map_page(request: Request, state: State, given: Given, colour: Name = None, depth: Depth = LIT[1]) -> Response:
    """The map with a search's hits lit up; where there is none, how to make it."""
    wrong, lit, shown, person = None, None, None, person_of(request)
    try:
        shown = map_of(state.snapshots.current(given.encoder))
        if shown is not None:
            colour = colour if colour in shown.columns else next(iter(shown.columns), None)
            lit = lit_by(state, given, depth, person)[1]
    except (EyespotError, Problem) as error:  # the map stays, with what is wrong with the search
        wrong = error
    answer: dict[str, Any] = {"params": given, "shown": shown, "wrong": wrong and str(wrong), "lit": lit}
    answer |= {"making": _MAKING.get(state), "items": {}}
    answer |= {"colour": colour, "depth": depth, "depths": LIT, "clusters": shown.clusters(colour) if shown else []}
    if shown:  # for each cluster the photo in its middle
        rows = shown.rows[[cluster["typical"] for cluster in answer["clusters"]]].tolist()
        found = map(item_of, shown.snapshot.facts(rows))
        answer["items"] = {one["number"]: item for one, item in zip(answer["clusters"], found, strict=True)}
    answer |= {"may_make": person.role >= Role.OWNER, "may_list": person.role >= Role.ANNOTATOR}
    status = 200 if wrong is None or isinstance(wrong, NothingFound) else 422
    return page(request, "map.html", status, **answer, **helpers(given))


@router.post("/map/make", include_in_schema=False, dependencies=[Depends(needs(Role.OWNER))])
def make(
    state: State, encoder: Annotated[str, Form(max_length=300)] = "", work: Annotated[Work, Form()] = "place"
) -> Response:
    """Make the map in the background, unless one is in the making, and back to its page, which tells how far it is."""
    if work == "compute" and find_spec("openTSNE") is None:
        raise Problem(422, needed("the map", "openTSNE"))
    view = state.snapshots.current(encoder or None).view
    with _STARTING:
        known = _MAKING.get(state)
        if known is None or known.state != "running":
            making = _MAKING[state] = MapJob(work)
            module = [sys.executable, "-P", "-m", "eyespot.gallery.layout.worker"]
            line = [*module, str(view.gallery.path), view.stem, work]
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
            Thread(target=_follow, args=(making, process), daemon=True).start()
    return RedirectResponse(f"/map?encoder={quote_plus(encoder)}" if encoder else "/map", 303)


# -- for programs, the page's own among them ----------------------------------------------------------------------


@router.get("/v1/map", tags=["map"])
def about(state: State, encoder: Encoder = None, colour: Name = None) -> Response:
    """The map: how it was made, its clusters with their names, the columns for colours; or that there is none."""
    making = _MAKING.get(state)
    shown = map_of(state.snapshots.current(encoder or None))
    answer: dict[str, Any] = {"state": "ready" if shown else "none", "making": making and asdict(making)}
    if shown is not None:
        colour = colour or next(iter(shown.columns), None)
        notes = shown.layout.notes
        answer |= {"version": shown.version, "map": notes.id, "photos": len(shown.rows), "waiting": shown.waiting}
        answer |= {"computed": notes.computed, "trustworthiness": notes.trust, "seed": notes.seed, "made": notes.made}
        answer |= {"columns": shown.columns, "colour": colour}
        answer |= {"legend": shown.legend(colour) if colour else []}
        region = f"{notes.id}:c"
        answer["clusters"] = [one | {"region": f"{region}{one['number']}"} for one in shown.clusters(colour)]
    return JSONResponse(answer)


@router.get("/v1/map/points", tags=["map"], response_class=Response)
def points(state: State, version: Version, encoder: Encoder = None) -> Response:
    """x and y of each photo in 65,535ths of the map's side: pairs of 16 bits, little-endian."""
    return Response(_map(state, encoder, version).packed(), media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/colours", tags=["map"], response_class=Response)
def colours(
    state: State, version: Version, column: Annotated[str, Query(max_length=300)], encoder: Encoder = None
) -> Response:
    """A byte for each photo: its place in the legend of /v1/map, 10 for other values, 11 for none."""
    return Response(_map(state, encoder, version).colours(column), media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/clusters", tags=["map"], response_class=Response)
def clusters(state: State, version: Version, encoder: Encoder = None) -> Response:
    """The cluster of each photo: numbers of 16 bits, little-endian; -1 between clusters."""
    data = _map(state, encoder, version).clusters_of.astype("<i2").tobytes()
    return Response(data, media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/hits", tags=["map"], response_class=Response)
def hits(state: State, person: Reader, given: Given, version: Version, depth: Depth = LIT[1]) -> Response:
    """Which photos a search finds, best first, as places in the list of points; with filters alone all that pass."""
    shown = _map(state, given.encoder, version)
    rows, _ = lit_by(state, given, depth, person)
    return Response(shown.at(np.asarray(rows)).astype("<u4").tobytes(), media_type=BYTES)


@router.get("/v1/map/items", tags=["map"])
def items(
    state: State,
    version: Version,
    at: Annotated[list[int], Query(max_length=100, description="Places in the list of points.")],
    encoder: Encoder = None,
) -> Response:
    """The photos at these places in the list of points."""
    shown = _map(state, encoder, version)
    if not all(0 <= one < len(shown.rows) for one in at):
        raise Problem(404, f"the map has {quantity(len(shown.rows), 'photo')}; ask for places from 0 on")
    found = map(item_of, shown.snapshot.facts(shown.rows[at].tolist()))
    return JSONResponse({"items": [item | {"name": title_of(item)} for item in found]})


class RegionRequest(BaseModel):
    """A region of the map and which of its photos; `first` and `limit` page through their ids."""

    region: Annotated[str, Field(max_length=6_000), AfterValidator(is_text)]
    encoder: Name = None
    first: Annotated[int, Field(ge=0, le=2**31)] = 0
    limit: Annotated[int, Field(ge=0, le=20_000)] = 1_000


@router.get("/v1/map/region", tags=["map"])
def region(state: State, wanted: Annotated[RegionRequest, Query()]) -> Response:
    """The ids of the photos in a region, in the gallery's order, and how many there are."""
    snapshot = state.snapshots.current(wanted.encoder)
    rows = np.flatnonzero(state.searches.mask(SearchParams(region=wanted.region), snapshot))
    part = rows[wanted.first : wanted.first + wanted.limit].tolist()
    return JSONResponse({"photos": len(rows), "ids": [facts["id"] for facts in snapshot.facts(part)]})


def _map(state: AppState, encoder: str | None, version: str) -> ShownMap:
    shown = map_of(state.snapshots.current(encoder or None))
    if shown is None or shown.version != version:
        raise Problem(409, "the map has changed since; load it again")
    return shown


def lit_by(state: AppState, given: SearchParams, depth: int, person: User) -> tuple[Any, int | None]:
    """The rows of a search's first hits, best first, and how many it finds in all; None where nothing is asked for."""
    if given.something:
        result = state.searches.run(given, judge_key_of(person))
        return result.slice(0, depth).rows, result.total
    filters = given.model_dump(exclude_defaults=True, exclude={"encoder", "grouped", *RankingSettings.model_fields})
    if not filters:
        return np.zeros(0, np.int64), None
    rows = np.flatnonzero(state.searches.mask(given, state.snapshots.current(given.encoder)))
    return rows, len(rows)


Work = Literal["compute", "place"]


@dataclass
class MapJob:
    """How far a map is: `running`, `done` or `failed`; what is being done, how much of it, and of how much."""

    work: Work
    state: Literal["running", "done", "failed"] = "running"
    what: str = "starting"
    done: int = 0
    total: int = 0
    problem: str | None = None


_MAKING: WeakKeyDictionary[AppState, MapJob] = WeakKeyDictionary()  # the map that a server made last, or makes now
_STARTING = Lock()


def _follow(making: MapJob, process: subprocess.Popen[str]) -> None:
    """Keep what the process says until it ends."""
    with process:
        for line in process.stdout or ():
            with suppress(ValueError):
                progress = json.loads(line)
                making.problem = progress.get("problem", making.problem)
                making.what = progress.get("what", making.what)
                making.done, making.total = progress.get("done", making.done), progress.get("total", making.total)
    if process.returncode and making.problem is None:
        making.problem = "the process that makes the map ended before its time; what it said is in the server's output"
    making.state = "failed" if making.problem else "done"
