"""The history of searches and the saved ones, for each person their own: a page, and the latest on the start page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response
from starlette.responses import RedirectResponse

from eyespot.ledger.search_history import SearchHistory
from eyespot.web._judging import judge_of
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._security import is_visitor, needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State

router = APIRouter(prefix="/history", include_in_schema=False, dependencies=[Depends(needs(Role.READER))])
LINKS = (Link("History", "/history"),)
Number = Annotated[int, Form(ge=1, le=2**62)]


def history_of(state: AppState) -> SearchHistory:
    """The history; `Problem` where the owner keeps none, or it cannot be written."""
    if state.history is None:
        raise Problem(404, "this server keeps no history; its owner started it with --no-history")
    return state.history.open()


@router.get("")
def history(request: Request, state: State) -> Response:
    """One's own searches, saved and recent."""
    person = person_of(request)
    who, history = judge_of(person), history_of(state)
    if is_visitor(
        person, state.settings.access
    ):  # searches of visitors, which earlier versions kept, can only be deleted
        left = bool(history.saved(who) or history.recent(who))
        return page(request, "history.html", unnamed=True, left=left, saved=[], recent=[], on=True)
    shown = {"saved": history.saved(who), "recent": [one for one in history.recent(who) if one.name is None]}
    on = {"on": history.wanted(who), "unnamed": False, "who": who.partition(":")[2] if person.name else ""}
    return page(request, "history.html", **{**shown, **on})  # type: ignore[arg-type]


@router.post("/save")
def save(request: Request, state: State, number: Number, name: Annotated[str, Form(max_length=300)] = "") -> Response:
    """Keep a search under a name; without one it is no saved search any more. Visitors have none to keep."""
    if is_visitor(person_of(request), state.settings.access):
        raise Problem(422, "nobody knows who you are here; say your name on the page /history first")
    who, history = judge_of(person_of(request)), history_of(state)
    if name.strip():
        history.save(who, number, name)
    else:
        history.unsave(who, number)
    return RedirectResponse("/history", 303)


@router.post("/forget")
def forget(request: Request, state: State, number: Number) -> Response:
    """Delete one search."""
    history_of(state).forget(judge_of(person_of(request)), number)
    return RedirectResponse("/history", 303)


@router.post("/clear")
def clear(request: Request, state: State) -> Response:
    """Delete all that is not saved; of visitors, who share a name, the saved ones too."""
    person, history = person_of(request), history_of(state)
    who = judge_of(person)
    for one in history.saved(who) if is_visitor(person, state.settings.access) else ():
        history.unsave(who, one.number)
    history.clear(who)
    return RedirectResponse("/history", 303)


@router.post("/keep")
def keep(request: Request, state: State, on: Annotated[bool, Form()]) -> Response:
    """Whether one's searches are remembered from now on."""
    who, history = judge_of(person_of(request)), history_of(state)
    if on:
        history.go_on(who)
    else:
        history.stop(who)
    return RedirectResponse("/history", 303)
