"""The map of the collection: its page, its points for the page's script, and a region's photos."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote_plus

import numpy as np
from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import AfterValidator, BaseModel, Field

from eyespot.settings.search import RankingSettings
from eyespot.types import EyespotError, NothingFound
from eyespot.web._items import item_of, title_of
from eyespot.web._judging import own_of
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._search_params import Given, Name, SearchParams, is_text
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, Served
from eyespot.web.found.on_map import PhotoCluster, ShownMap, map_of
from eyespot.web.map._making import Work, making_of, start
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
def map_page(request: Request, house: Served, given: Given, colour: Name = None, depth: Depth = LIT[1]) -> Response:
    """The map with a search's hits lit up; where there is none, how to make it."""
    wrong, lit, shown, person = None, None, None, person_of(request)
    try:
        shown = map_of(house.snapshot(given.encoder))
        if shown is not None:
            colour = colour if colour in shown.columns else next(iter(shown.columns), None)
            lit = lit_by(house, given, depth, person)[1]
    except (EyespotError, Problem) as error:  # the map stays, with what is wrong with the search
        wrong = error
    making = making_of(house)
    answer: dict[str, Any] = {
        "asked": given,
        "shown": shown,
        "wrong": wrong and str(wrong),
        "lit": lit,
        "making": making,
    }
    answer |= {"colour": colour, "depth": depth, "depths": LIT, "clusters": shown.clusters(colour) if shown else []}
    answer |= {"items": _typical(shown, answer["clusters"]) if shown else {}, "may_make": person.role >= Role.OWNER}
    answer |= {"may_list": person.role >= Role.ANNOTATOR, "hidden": _hidden(given)}
    status = 200 if wrong is None or isinstance(wrong, NothingFound) else 422
    return page(request, "map.html", status, **answer, **helpers(given))


def _hidden(given: SearchParams) -> list[tuple[str, str]]:
    """The parts of a search that the page's form sends along unseen."""
    fields = {name: value for name, value in given.model_dump(exclude_defaults=True).items() if name != "q"}
    parts = [(name, value if isinstance(value, tuple | list) else (value,)) for name, value in fields.items()]
    return [(name, str(one).lower() if isinstance(one, bool) else str(one)) for name, values in parts for one in values]


def _typical(shown: ShownMap, clusters: list[PhotoCluster]) -> dict[int, dict[str, Any]]:
    """For each cluster the photo in its middle."""
    rows = shown.rows[[cluster.typical for cluster in clusters]].tolist()
    items = map(item_of, shown.snapshot.facts(rows))
    return {cluster.number: item for cluster, item in zip(clusters, items, strict=True)}


@router.post("/map/make", include_in_schema=False, dependencies=[Depends(needs(Role.OWNER))])
def make(
    house: Served, encoder: Annotated[str, Form(max_length=300)] = "", work: Annotated[Work, Form()] = "place"
) -> Response:
    """Make the map in the background, and back to its page, which tells how far it is."""
    start(house, house.snapshot(encoder or None).view, work)
    return RedirectResponse(f"/map?encoder={quote_plus(encoder)}" if encoder else "/map", 303)


# -- for programs, the page's own among them ----------------------------------------------------------------------


@router.get("/v1/map", tags=["map"])
def about(house: Served, encoder: Encoder = None, colour: Name = None) -> Response:
    """The map: how it was made, its clusters with their names, the columns for colours; or that there is none."""
    making = making_of(house)
    shown = map_of(house.snapshot(encoder or None))
    answer: dict[str, Any] = {"state": "ready" if shown else "none", "making": making and making.fields()}
    if shown is not None:
        colour = colour or next(iter(shown.columns), None)
        notes = shown.layout.notes
        answer |= {"version": shown.version, "map": notes.id, "photos": len(shown.rows), "waiting": shown.waiting}
        answer |= {"computed": notes.computed, "trustworthiness": notes.trust, "seed": notes.seed, "made": notes.made}
        answer |= {"columns": shown.columns, "colour": colour}
        answer |= {"legend": shown.legend(colour) if colour else []}
        answer |= {"clusters": [one._asdict() | _region_of(shown, one) for one in shown.clusters(colour)]}
    return JSONResponse(answer)


def _region_of(shown: ShownMap, cluster: PhotoCluster) -> dict[str, str]:
    return {"region": f"{shown.layout.notes.id}:c{cluster.number}"}


class MapRequest(BaseModel):
    """What is to be done: `compute` makes the map anew, `place` puts new photos on the one that is there."""

    work: Work = "place"
    encoder: Name = None


@router.post("/v1/map", status_code=202, tags=["map"], dependencies=[Depends(needs(Role.OWNER))])
def begin(house: Served, wanted: MapRequest) -> Response:
    """Make the map in the background; /v1/map tells how far it is."""
    making = start(house, house.snapshot(wanted.encoder).view, wanted.work)
    return JSONResponse({"making": making.fields()}, 202)


@router.get("/v1/map/points", tags=["map"], response_class=Response)
def points(house: Served, version: Version, encoder: Encoder = None) -> Response:
    """x and y of each photo in 65,535ths of the map's side: pairs of 16 bits, little-endian."""
    return Response(_map(house, encoder, version).packed(), media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/colours", tags=["map"], response_class=Response)
def colours(
    house: Served, version: Version, column: Annotated[str, Query(max_length=300)], encoder: Encoder = None
) -> Response:
    """A byte for each photo: its place in the legend of /v1/map, 10 for other values, 11 for none."""
    return Response(_map(house, encoder, version).colours(column), media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/clusters", tags=["map"], response_class=Response)
def clusters(house: Served, version: Version, encoder: Encoder = None) -> Response:
    """The cluster of each photo: numbers of 16 bits, little-endian; -1 between clusters."""
    data = _map(house, encoder, version).clusters_of.astype("<i2").tobytes()
    return Response(data, media_type=BYTES, headers=FOR_EVER)


@router.get("/v1/map/hits", tags=["map"], response_class=Response)
def hits(house: Served, person: Reader, given: Given, version: Version, depth: Depth = LIT[1]) -> Response:
    """Which photos a search finds, best first, as places in the list of points; with filters alone all that pass."""
    shown = _map(house, given.encoder, version)
    rows, _ = lit_by(house, given, depth, person)
    return Response(shown.at(np.asarray(rows)).astype("<u4").tobytes(), media_type=BYTES)


@router.get("/v1/map/items", tags=["map"])
def items(
    house: Served,
    version: Version,
    at: Annotated[list[int], Query(max_length=100, description="Places in the list of points.")],
    encoder: Encoder = None,
) -> Response:
    """The photos at these places in the list of points."""
    shown = _map(house, encoder, version)
    if not all(0 <= one < len(shown.rows) for one in at):
        raise Problem(404, f"the map has {len(shown.rows)} photos; ask for places from 0 on")
    found = map(item_of, shown.snapshot.facts(shown.rows[at].tolist()))
    return JSONResponse({"items": [item | {"name": title_of(item)} for item in found]})


class RegionRequest(BaseModel):
    """A region of the map and which of its photos; `first` and `limit` page through their ids."""

    region: Annotated[str, Field(max_length=6_000), AfterValidator(is_text)]
    encoder: Name = None
    first: Annotated[int, Field(ge=0, le=2**31)] = 0
    limit: Annotated[int, Field(ge=0, le=20_000)] = 1_000


@router.get("/v1/map/region", tags=["map"])
def region(house: Served, wanted: Annotated[RegionRequest, Query()]) -> Response:
    """The ids of the photos in a region, in the gallery's order, and how many there are."""
    snapshot = house.snapshot(wanted.encoder)
    rows = np.flatnonzero(house.mask(SearchParams(region=wanted.region), snapshot))
    part = rows[wanted.first : wanted.first + wanted.limit].tolist()
    return JSONResponse({"photos": len(rows), "ids": [facts["id"] for facts in snapshot.facts(part)]})


def _map(house: AppState, encoder: str | None, version: str) -> ShownMap:
    shown = map_of(house.snapshot(encoder or None))
    if shown is None or shown.version != version:
        raise Problem(409, "the map has changed since; load it again")
    return shown


def lit_by(house: AppState, given: SearchParams, depth: int, person: User) -> tuple[Any, int | None]:
    """The rows of a search's first hits, best first, and how many it finds in all; None where nothing is asked for."""
    if given.something:
        frozen = house.search(given, own_of(person))
        return frozen.slice(0, depth).rows, frozen.total
    filters = given.model_dump(exclude_defaults=True, exclude={"encoder", "grouped", *RankingSettings.model_fields})
    if not filters:
        return np.zeros(0, np.int64), None
    rows = np.flatnonzero(house.mask(given, house.snapshot(given.encoder)))
    return rows, len(rows)
