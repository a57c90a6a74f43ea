"""The annotators' pages: a table of queries, a grid to label by keyboard, audits, disputes, and flagged photos."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field, Json
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import auditing, shared_list
from eyespot.curate.annotate.progress import IN_A_ROW
from eyespot.curate.annotate.team_store import OWN_DISPUTES
from eyespot.types import Mask
from eyespot.web._pages import Link, page
from eyespot.web._settings import Role
from eyespot.web._state import AppState, Served
from eyespot.web.annotate import _disputing, _flagging, _grid, _leading
from eyespot.web.annotate._grid import What
from eyespot.web.annotate._lists import grow_list, list_all, mask_of_a_label, query_of_words
from eyespot.web.annotate._overview import STATES, people_of
from eyespot.web.annotate._session import LONGEST_ID, AnnotationSession, Id, Session, annotator, new_router
from eyespot.web.annotate._table import COLUMNS, NUMBERS, TableRequest, labels_of
from eyespot.web.annotate._taking import zipped
from eyespot.web.found.facets import facets_of
from eyespot.web.found.snapshot import Snapshot

router = new_router("/annotate")
LINKS = (Link("Annotate", "/annotate", Role.ANNOTATOR),)
Words = Annotated[str, Form(min_length=1, max_length=300)]
Short = Annotated[str, Form(max_length=300)]


@router.get("", dependencies=[Depends(annotator)])
def overview(request: Request, at: Session, house: Served, params: Annotated[TableRequest, Query()]) -> Response:
    """All queries as a table, how each stands, who labels what, and a form for another one."""
    every, assigned = at.overview.rows(), at.store.team.assigned()
    labels = [f"{one.column}={value}" for one in facets_of(house.snapshot()).labels for value, _ in one.values]
    people = people_of(every, assigned)
    shown: dict[str, Any] = {"asked": params, "rows": params.rows(every, assigned), "all": len(every)}
    choices: dict[str, Any] = {"labels": labels, "groupings": labels_of(every), "states": STATES}
    columns: dict[str, Any] = {"columns": COLUMNS, "numbers": NUMBERS}
    team: dict[str, Any] = {"assigned": assigned, "people": people, "own_allowed": at.store.team.allows(OWN_DISPUTES)}
    names = sorted({*(one.name for one in people), *_annotators(house), at.who} - {""}, key=str.casefold)
    team |= {"names": names, "flagged": len(at.store.team.flags.images())}
    return page(request, "annotate.html", who=at.who, **shown, **choices, **columns, **team)


def _annotators(house: Served) -> list[str]:
    return [one.name for one in house.settings.access if one.role >= Role.ANNOTATOR and not one.internal]


@router.post("/queries")
def take_in(at: Session, house: Served, text: Words, label: Short = "") -> Response:
    """Take a query in and list the nearest photos to its words, or all of a label."""
    at.annotator_name()
    labelled = _labelled(house, label)  # a wrong one leaves no query behind
    query = query_of_words(at, house, text)
    _fill(at, house, query, labelled)
    return _to_grid(query)


@router.post("/fill")
def fill(at: Session, house: Served, query: Annotated[str, Form(max_length=LONGEST_ID)], label: Short = "") -> Response:
    """List photos for a query that came without any: the nearest ones to its words, or all of a label."""
    at.annotator_name()
    wanted = at.store.query(query).id
    _fill(at, house, wanted, _labelled(house, label))
    return _to_grid(wanted)


def _labelled(house: AppState, label: str) -> tuple[Snapshot, Mask] | None:
    """The photos of a label, as rows of the gallery as it is now; None without a label."""
    if not label.strip():
        return None
    snapshot = house.snapshot()
    return snapshot, mask_of_a_label(snapshot, label)


def _fill(at: AnnotationSession, house: AppState, query: str, labelled: tuple[Snapshot, Mask] | None) -> None:
    if labelled is not None:
        list_all(at, query, *labelled)
    elif not at.store.candidates(query):
        grow_list(at, house, query)


def _to_grid(query: str) -> RedirectResponse:
    return RedirectResponse(f"/annotate/label?{urlencode({'query': query})}", 303)


class QueryFacts(BaseModel):
    """What is told of a query: INQUIRE's columns, whether it uses terms of science, the criteria of the intake.

    before: the same as the form showed it, by field.
    """

    query: str = Field(max_length=LONGEST_ID)
    supercategory: str = Field("", max_length=100)
    category: str = Field("", max_length=100)
    iconic_group: str = Field("", max_length=100)
    lingo: Literal["", "yes", "no"] = ""
    visible: Literal["", "yes", "no"] = ""
    feasible: Literal["", "yes", "no"] = ""
    of_interest: Literal["", "yes", "no"] = ""
    before: Json[dict[str, str]] | None = Field(None, max_length=5000)

    def changed(self) -> dict[str, str]:
        """What somebody said by this form; what it merely repeats may be long out of date."""
        fields: dict[str, str] = self.model_dump(exclude={"query", "before"}, exclude_unset=self.before is None)
        before = self.before or {}
        return {name: value for name, value in fields.items() if value != before.get(name)}


@router.post("/about")
def describe(at: Session, about: Annotated[QueryFacts, Form()]) -> Response:
    """Keep what somebody tells of a query; what they leave as it was stays as others may have changed it."""
    at.annotator_name()
    at.store.describe(about.query, about.changed())
    return RedirectResponse(f"/annotate/query?{urlencode({'query': about.query})}", 303)


@router.post("/remove")
def remove(at: Session, query: Annotated[str, Form(max_length=LONGEST_ID)]) -> Response:
    """Forget a query that nobody has marked a photo for."""
    at.annotator_name()
    at.store.remove(query)
    return RedirectResponse("/annotate", 303)


@router.get("/set.zip")
def take_away(at: Session, without_flagged: bool = False) -> Response:
    """All that is labelled, as `eyespot annotate export` writes it."""
    how = {"Content-Disposition": 'attachment; filename="labelled.zip"'}
    left_out = at.store.team.flags.images() if without_flagged else set[str]()
    return Response(zipped(at.store, left_out), media_type="application/zip", headers=how)


@router.get("/label")
def label(request: Request, at: Session, house: Served, query: Id, what: What = "list") -> Response:
    """The grid: photos of the list, somebody's share of it, those of the audit, the likely or telling ones first."""
    if not at.who:
        return RedirectResponse("/annotate", 303)
    who, wanted = at.who, at.store.query(query)
    if what == "audit" and auditing.share_of(at.store, query, who) == []:  # drawn in a terminal
        auditing.hand_out(at.store, query, who)
    if what == "team" and not shared_list.photos_of(at.store, query, who):
        _grid.hand_out(at, house, query)
    about: dict[str, Any] = {"store": at.store.name(), "in_a_row": IN_A_ROW, "size": auditing.SIZE}
    about["listed"] = len(at.store.candidates(query))
    return page(request, "annotate_label.html", who=who, wanted=wanted, what=what, **about)


for part in (_grid, _disputing, _leading, _flagging):
    router.include_router(part.router)
