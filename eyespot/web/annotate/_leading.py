"""What a lead does, and what leads people on: queries given to them, rules of the team, one query, the next one."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import agreement
from eyespot.curate.annotate.team_store import OWN_DISPUTES, name_of
from eyespot.web._pages import page
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import Served
from eyespot.web.annotate._disputing import tenth_of
from eyespot.web.annotate._session import LONGEST_ID, Id, Session
from eyespot.web.annotate._table import next_of

router = APIRouter(include_in_schema=False)
lead = Depends(needs(Role.OWNER))
QueryId = Annotated[str, Field(max_length=LONGEST_ID)]


class Assignment(BaseModel):
    """Queries that somebody is to label, or is not to label any more; `back` is what the table's address said."""

    query: list[QueryId] = Field(default_factory=list, max_length=5000)
    person: str = Field(max_length=200)
    act: Literal["give", "take"] = "give"
    back: str = Field("", max_length=2000)


@router.post("/assign", dependencies=[lead])
def assign(at: Session, given: Annotated[Assignment, Form()]) -> Response:
    """Give queries to somebody, or take them away."""
    who, person = at.annotator_name(), name_of(given.person)
    queries = [at.store.query(query).id for query in given.query]
    if given.act == "give":
        at.store.team.assign(queries, person, name_of(who))
    else:
        at.store.team.unassign(queries, person)
    return RedirectResponse(_table(given.back), 303)


@router.post("/rules", dependencies=[lead])
def rule(
    at: Session,
    own_disputes: Annotated[Literal["yes", "no"], Form()],
    back: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    """Whether people may settle disputes in which they have marks themselves."""
    at.store.team.let(OWN_DISPUTES, own_disputes == "yes", name_of(at.annotator_name()))
    return RedirectResponse(_table(back), 303)


def _table(address: str) -> str:
    pairs = parse_qsl(address)
    return f"/annotate?{urlencode(pairs)}" if pairs else "/annotate"


@router.get("/next")
def go_on(at: Session, after: Annotated[str, Query(max_length=LONGEST_ID)] = "") -> Response:
    """To the query that somebody had better label next: one of their own, then the least done."""
    who = name_of(at.annotator_name())
    assigned = at.store.team.assigned()
    found = next_of(at.overview.rows(), assigned, who, after)
    if found is None:
        return RedirectResponse("/annotate?nothing=1", 303)
    id = found.wanted.id
    several = {*assigned.get(id, ()), *found.people, who}
    shared = at.store.team.leases.seed(id) is not None or len(several) > 1
    about = {"query": id, "what": "team"} if shared else {"query": id}
    return RedirectResponse(f"/annotate/label?{urlencode(about)}", 303)


@router.get("/query")
def one_query(request: Request, at: Session, house: Served, query: Id) -> Response:
    """One query: how everybody stands, how far they agree, what is told of it, and what is to be fixed."""
    (row,) = at.overview.rows(query)
    by_person = agreement.everybody(at.store, query)
    figures: dict[str, Any] = {"overlaps": agreement.overlaps(by_person), "beyond": agreement.coefficients(by_person)}
    figures["twice"] = tenth_of(at, house, query, by_person)
    given = at.store.team.assigned().get(query, [])
    return page(request, "annotate_query.html", who=at.who, one=row, given=given, **figures)
