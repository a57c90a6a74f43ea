"""`/v1/lists`: named lists of photos for programs and for the scripts of the pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, Field

from eyespot.ledger.photo_lists import PhotoList
from eyespot.types import NothingFound, UsageError
from eyespot.web._judging import judge_of
from eyespot.web._problems import Problem
from eyespot.web._search_params import Name, is_text, query_of
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.lists.contents import (
    fields_of,
    judged_as,
    judged_otherwise,
    list_query,
    params_of,
    sort_out,
    stretch_of,
)

router = APIRouter(prefix="/v1/lists", tags=["lists"], dependencies=[Depends(needs(Role.ANNOTATOR))])
Annotator = Annotated[User, Depends(needs(Role.ANNOTATOR))]
Text = Annotated[str, AfterValidator(is_text)]
Id = Annotated[str, Path(max_length=200, description="The list's id, or its name.")]
Ids = Annotated[list[Annotated[Text, Field(max_length=500)]], Field(max_length=20_000)]
Verdict = Literal["yes", "no", "doubt"]
Address = Annotated[Text, Field(max_length=8000)]


class Photos(BaseModel):
    """Photos by id, and those with a verdict on a search, which is given as the part of its address behind the `?`."""

    items: Ids = Field(default_factory=list, description="Ids of items, in their order.")
    query: Address | None = Field(None, description="The search that they come from, such as `q=heron`.")
    verdict: Verdict | None = Field(None, description="Also the photos with this verdict on the words of `query`.")
    everybody: bool = Field(False, description="By the verdicts of all people, and not by yours alone.")


class NewList(Photos):
    """A list to be made."""

    name: Text = Field(max_length=300)


class ListChange(Photos):
    """What changes: each part may be left out."""

    name: Text | None = Field(None, max_length=300)
    remove: Ids = Field(default_factory=list, description="Ids of items that come off the list.")
    update: bool = Field(False, description="Also take off photos that do not have this `verdict` any more; own lists.")
    join: Text | None = Field(None, max_length=200, description="Another list, whose photos are added.")


@router.get("")
def lists(
    state: State,
    part: Annotated[Name, Query(description="Only those with this in name or words.")] = None,
    item: Annotated[Name, Query(description="Only those with this item.")] = None,
) -> Response:
    """All lists, the latest first."""
    store = state.ledger.readable.lists
    holding = None if item is None else store.holding(item)
    found = [one for one in store.all(part or "") if holding is None or one.number in holding]
    return JSONResponse({"lists": [fields_of(state, one) for one in found]})


@router.post("", status_code=201)
def make(state: State, person: Annotator, wanted: NewList) -> Response:
    """Make a list of photos by id, by verdict, or both; ids that the gallery has not are named in `unknown`."""
    photos, unknown, queries = gathered(state, person, wanted)
    if not photos:
        raise Problem(422, "there is no photo to put on a list; choose some, or judge some first")
    made = state.ledger.writable.lists.make(wanted.name, maker_of(person), photos, queries)
    return JSONResponse(fields_of(state, made) | {"unknown": unknown}, 201)


@router.get("/{id}")
def list_(
    state: State,
    id: Id,
    first: Annotated[int, Query(ge=0, le=10**6, description="Photos to pass over.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="How many.")] = 100,
) -> Response:
    """A list with a stretch of its photos and what everybody said of them."""
    one = state.ledger.readable.lists.find(id)
    stretch = stretch_of(state, one.id, first, limit)
    return JSONResponse(fields_of(state, one) | {"items": stretch.items, "next": stretch.next})


@router.patch("/{id}")
def change(state: State, person: Annotator, id: Id, wanted: ListChange) -> Response:
    """Rename a list, add photos to it or those of another list, take photos off it.

    An update is for whoever made the list: it answers 409 for the list of somebody else.
    """
    store = state.ledger.writable.lists
    one = store.find(id)
    if wanted.update and one.maker != maker_of(person):
        raise Problem(409, f"the list {one.name!r} is {one.maker}'s; choose another name for yours")
    photos, unknown, queries = gathered(state, person, wanted)
    remove = list(wanted.remove)
    if wanted.update:  # what was judged and has not the wanted verdict any more
        query = query_of(params_of(wanted.query), state.cache.uploads) if wanted.query else None
        if query is None or wanted.verdict is None:
            raise UsageError("an update goes by verdicts; give the search in `query`, such as q=heron, and a `verdict`")
        whose, listed = None if wanted.everybody else person, state.ledger.readable.lists.photos(one.id)
        remove += judged_otherwise(state, query, whose, wanted.verdict, listed)
    if wanted.name is not None:
        one = store.set_name(one.id, wanted.name)
    if photos or queries:
        one = store.add(one.id, photos, queries)
    if wanted.join is not None:
        one = store.join(one.id, store.find(wanted.join).id)
    full = one.photos
    if remove:
        one = store.remove(one.id, remove)
    return JSONResponse(fields_of(state, one) | {"unknown": unknown, "removed": full - one.photos})


@router.delete("/{id}", status_code=204, response_class=Response)
def delete(state: State, person: Annotator, id: Id) -> Response:
    """Forget a list and its link, for whoever made it and for the owner; photos and verdicts stay."""
    state.ledger.writable.lists.delete(own_list(state, person, id).id)
    return Response(status_code=204)


@router.post("/{id}/link", status_code=201)
def link(state: State, person: Annotator, id: Id) -> Response:
    """A link for reading without a token; the one before it ends. It is told this once, only its digest is kept."""
    token = state.ledger.writable.lists.link(own_list(state, person, id).id)
    return JSONResponse({"link": f"/shared/{token}"}, 201)


@router.delete("/{id}/link", status_code=204, response_class=Response)
def unlink(state: State, person: Annotator, id: Id) -> Response:
    """Take the link back: it leads nowhere from now on."""
    state.ledger.writable.lists.unlink(own_list(state, person, id).id)
    return Response(status_code=204)


# -- what both the API and the pages do -----------------------------------------------------------------------------


def maker_of(person: User) -> str:
    """Under which name somebody makes lists."""
    return judge_of(person).partition(":")[2]


def own_list(state: AppState, person: User, id: str) -> PhotoList:
    """A list that somebody may delete or show to others: their own, or any for the owner."""
    one = state.ledger.writable.lists.find(id)
    if person.role < Role.OWNER and one.maker != maker_of(person):
        raise Problem(403, f"this list is {one.maker}'s; ask them, or the gallery's owner")
    return one


def gathered(state: AppState, person: User, wanted: Photos) -> tuple[list[str], list[str], list[Any]]:
    """The photos that are wanted, the ids that the gallery has not, and the queries that they come from."""
    params = params_of(wanted.query) if wanted.query else None
    ids = list(wanted.items)
    if wanted.verdict is not None:
        query = query_of(params, state.cache.uploads) if params is not None else None
        if query is None:
            raise UsageError("verdicts are on words or a picture; give the search in `query`, such as q=heron")
        by_verdict = judged_as(state, query, None if wanted.everybody else person, wanted.verdict)
        if not by_verdict and not ids and not getattr(wanted, "update", False):
            raise NothingFound(f"nobody said {wanted.verdict} here yet; judge some photos first")
        ids += by_verdict
    there, unknown = sort_out(state, ids)
    from_query = list_query(state, params) if params is not None else None
    return there, unknown, [from_query] if from_query else []
