"""The pages of lists: all of them, and one with its photos and everybody's verdicts."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import Field
from starlette.responses import RedirectResponse

from eyespot.curate.annotate.candidates import list_rows
from eyespot.web._pages import Link, page
from eyespot.web._search_params import Name
from eyespot.web._security import is_visitor, needs
from eyespot.web._settings import Role
from eyespot.web._state import State
from eyespot.web.annotate._grid import grow_list, query_of_words
from eyespot.web.annotate._session import AnnotationSession, session_of
from eyespot.web.downloads import formats_for
from eyespot.web.lists.api import (
    FORMATS,
    Annotator,
    Id,
    LinkTerms,
    NewList,
    fields_of,
    gathered,
    list_to_manage,
    maker_of,
    params_of,
    stretch_of,
)
from eyespot.web.lists.shared import MARKS, PAGE, First

router = APIRouter(prefix="/lists", include_in_schema=False, dependencies=[Depends(needs(Role.ANNOTATOR))])
LINKS = (Link("Lists", "/lists", Role.ANNOTATOR),)
Text = Annotated[str, Form(max_length=300)]
Items = Annotated[list[Annotated[str, Field(max_length=500)]], Form(max_length=PAGE)]


@router.get("")
def lists(request: Request, state: State, person: Annotator, part: Annotated[Name, Query()] = None) -> Response:
    """All lists, to be searched by name and by the words of their queries."""
    found = [fields_of(state.ledger, one) for one in state.ledger.readable.lists.all(part or "")]
    every = len(state.ledger.readable.lists.all())
    shared = is_visitor(person, state.settings.access)
    return page(request, "lists.html", lists=found, part=part or "", every=every, me=maker_of(person), shared=shared)


@router.get("/{id}")
def one_list(request: Request, state: State, person: Annotator, id: Id, first: First = 0) -> Response:
    """A list with its photos, and all that can be done with it."""
    one = state.ledger.readable.lists.find(id)
    about = fields_of(state.ledger, one)
    items, _, following = stretch_of(state, one.id, first, PAGE)
    others = [other for other in state.ledger.readable.lists.all() if other.id != one.id]
    manageable = person.role >= Role.OWNER or one.maker == maker_of(person)
    what: dict[str, Any] = {"items": items, "next": following, "others": others, "manageable": manageable}
    what |= {"formats": formats_for(state, person, FORMATS), "marks": MARKS}
    # Large, a photo can be judged with the list's first query
    search = about["queries"][0]["link"].partition("?")[2] if about["queries"] else ""
    what |= {"photo_of": lambda id: f"/photo/{quote(id, safe='')}?{search}"}
    return page(request, "list.html", one=about, **what)


# -- what forms do, also without scripts ----------------------------------------------------------------------------


@router.post("")
def make(
    state: State,
    person: Annotator,
    name: Text,
    query: Annotated[str, Form(max_length=8000)] = "",
    everybody: Annotated[bool, Form()] = False,
) -> Response:
    """A list of the photos with a yes on a search."""
    wanted = NewList(name=name, query=query or None, verdict="yes", everybody=everybody)
    photos, _, queries = gathered(state, person, wanted)
    made = state.ledger.writable.lists.make(name, maker_of(person), photos, queries)
    return RedirectResponse(f"/lists/{made.id}", 303)


@router.get("/{id}/delete")
def ask_to_delete(request: Request, state: State, person: Annotator, id: Id) -> Response:
    """Whether the list is to be forgotten."""
    return page(request, "list_delete.html", one=list_to_manage(state, person, id))


@router.post("/{id}/delete")
def delete(state: State, person: Annotator, id: Id) -> Response:
    """Forget the list."""
    state.ledger.writable.lists.delete(list_to_manage(state, person, id).id)
    return RedirectResponse("/lists", 303)


@router.post("/{id}/link")
def link(request: Request, state: State, person: Annotator, id: Id, terms: Annotated[LinkTerms, Form()]) -> Response:
    """A new link, shown this once."""
    one = list_to_manage(state, person, id)
    address = f"{request.url.scheme}://{request.url.netloc}{terms.link(state, one.id)}"
    return page(request, "list_link.html", one=one, address=address, terms=terms)


@router.post("/{id}/annotate")
def annotate(state: State, at: Annotated[AnnotationSession, Depends(session_of)], id: Id) -> Response:
    """To the page on which the list's words are labelled to the end, the nearest photos and its own among them."""
    if not at.who:  # first to where somebody says their name
        return RedirectResponse("/annotate", 303)
    lists, snapshot = state.ledger.readable.lists, state.snapshots.current()
    one = lists.find(id)
    words = [text for query in lists.queries(one.id) if (text := params_of(query.address).q)]
    query = query_of_words(at, state.settings.refused, words[0] if words else one.name)
    if not at.store.candidates(query):
        grow_list(at, state.snapshots, query)
    there = {candidate.image for candidate in at.store.candidates(query)}
    rows = snapshot.rows_by_id([image for image in lists.photos(one.id) if image not in there])
    if (rows >= 0).any():
        at.store.narrow(query)  # these were chosen and not ranked, which an audit has to know
        list_rows(at.store, query, snapshot.view, rows[rows >= 0].tolist())
    return RedirectResponse(f"/annotate/label?{urlencode({'query': query})}", 303)


@router.post("/{id}/{act}")
def change(
    state: State,
    person: Annotator,
    id: Id,
    *,
    act: Literal["rename", "join", "remove", "unlink"],
    name: Text = "",
    other: Text = "",
    item: Items | None = None,
) -> Response:
    """Another name, the photos of another list too, some photos less, or a link that leads nowhere from now on."""
    lists = state.ledger.writable.lists
    if act == "rename":
        lists.set_name(id, name)
    elif act == "join":
        lists.join(id, lists.find(other).id)
    elif act == "remove":
        lists.remove(id, item or [])
    else:
        lists.unlink(list_to_manage(state, person, id).id)
    return RedirectResponse(f"/lists/{quote(id, safe='')}", 303)
