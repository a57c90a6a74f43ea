"""The annotators' pages: a table of queries, a grid to label by keyboard, audits, disputes, and flagged photos."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Form, Query, Request, Response
from pydantic import BaseModel, Field, Json
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import agreement, auditing, shared_list
from eyespot.curate.annotate.annotation_store import AnnotationStore as AnnotationStore
from eyespot.curate.annotate.export import every, without_photos, write
from eyespot.curate.annotate.progress import IN_A_ROW
from eyespot.curate.annotate.team_store import OWN_DISPUTES, name_of
from eyespot.gallery import filters
from eyespot.types import Mask, NothingFound, UsageError
from eyespot.web._pages import Link, page
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State
from eyespot.web.annotate import _disputes, _grid
from eyespot.web.annotate._disputes import agreement_figures
from eyespot.web.annotate._grid import What, grow_list, list_all, query_of_words
from eyespot.web.annotate._overview import TableRequest, next_of, people_of
from eyespot.web.annotate._session import LONGEST_ID, AnnotationSession, Id, Session, annotator, new_router
from eyespot.web.downloads import zip_file
from eyespot.web.found.facets import facets_of
from eyespot.web.found.snapshot import Snapshot

router = new_router("/annotate")
LINKS = (Link("Annotate", "/annotate", Role.ANNOTATOR),)
Words = Annotated[str, Form(min_length=1, max_length=300)]
Short = Annotated[str, Form(max_length=300)]
QueryId = Annotated[str, Field(max_length=LONGEST_ID)]
lead = Depends(needs(Role.OWNER))


@router.get("", dependencies=[Depends(annotator)])
def overview(request: Request, at: Session, state: State, params: Annotated[TableRequest, Query()]) -> Response:
    """All queries as a table, how each stands, who labels what, and a form for another one."""
    every, assigned = at.overview.rows(), at.store.team.assigned()
    people = people_of(every, assigned)
    labels = facets_of(state.snapshots.current()).labels
    shown: dict[str, Any] = {
        "rows": params.rows(every, assigned),
        "all": len(every),
        "labels": [f"{one.column}={value}" for one in labels for value, _ in one.values],
        "groupings": sorted({text for row in every for text in row.groupings}, key=str.casefold),
        "assigned": assigned,
        "people": people,
        "own_allowed": at.store.team.allows(OWN_DISPUTES),
        "names": _names(at, state),
        "flagged": len(at.store.team.flags.images()),
    }
    return page(request, "annotate.html", who=at.who, params=params, **shown)


@router.post("/queries")
def take_in(
    at: Session, state: State, text: Words, label: Short = "", audit: Annotated[int, Form(ge=0, le=100_000)] = 0
) -> Response:
    """Take a query in and list the nearest photos to its words, or all of a label; with `audit` to draw so many."""
    at.annotator_name()
    labelled = _labelled(state, label)  # a wrong one leaves no query behind
    query = query_of_words(at, state.settings.refused, text)
    _fill(at, state, query, labelled)
    if audit and auditing.under_way(at.store, query) is None:
        _grid.draw_audit(at, state, query, audit)
        return _to_grid(query, "audit")
    return _to_grid(query)


@router.post("/fill")
def fill(
    at: Session,
    state: State,
    query: Annotated[str, Form(max_length=LONGEST_ID)],
    label: Short = "",
    what: Annotated[What, Form()] = "list",
) -> Response:
    """List photos for a query that came without any: the nearest ones to its words, or all of a label."""
    at.annotator_name()
    wanted = at.store.query(query).id
    _fill(at, state, wanted, _labelled(state, label))
    return _to_grid(wanted, what)


def _labelled(state: AppState, label: str) -> tuple[Snapshot, Mask] | None:
    """The photos of COLUMN=VALUE, as rows of the gallery as it is now; None without a label."""
    if not label.strip():
        return None
    snapshot = state.snapshots.current()
    column, sign, value = label.partition("=")
    if not sign or not column.strip():
        raise UsageError(f"a label is COLUMN=VALUE, such as category=fishes, not {label!r}")
    condition = filters.label(column.strip(), value.strip())
    mask = snapshot.mask(filters.checked(condition.sql, list(snapshot.kinds)))
    if not mask.any():
        raise NothingFound(f"no photo has {label}; choose one of the labels that the form offers")
    return snapshot, mask


def _fill(at: AnnotationSession, state: AppState, query: str, labelled: tuple[Snapshot, Mask] | None) -> None:
    if labelled is not None:
        list_all(at, query, *labelled)
    elif not at.store.candidates(query):
        grow_list(at, state.snapshots, query)


def _to_grid(query: str, what: What = "list") -> RedirectResponse:
    return RedirectResponse(f"/annotate/label?{urlencode({'query': query, 'what': what})}", 303)


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
    """All that is labelled, as `eyespot annotate export` writes it; `NothingFound` if nothing is."""
    left_out = at.store.team.flags.images() if without_flagged else set[str]()
    with TemporaryDirectory(prefix="eyespot-set-") as folder:
        out = Path(folder) / "labelled"
        write(at.store, without_photos(every(at.store), left_out), out)
        return zip_file(out, out.name, f"{out.name}/")


@router.get("/label")
def label(request: Request, at: Session, state: State, query: Id, what: What = "list", *, first: int = 0) -> Response:
    """The grid from `first` on: photos of the list, a share of it, of the audit, the likely or telling ones first."""
    if not at.who:
        return RedirectResponse("/annotate", 303)
    who, wanted = at.who, at.store.query(query)
    if what == "audit" and auditing.share_of(at.store, query, who) == []:  # drawn in a terminal
        auditing.hand_out(at.store, query, who)
    if what == "team" and not shared_list.photos_of(at.store, query, who):
        _grid.hand_out(at, state.snapshots, query)
    about: dict[str, Any] = {"store": at.store.name(), "in_a_row": IN_A_ROW, "size": auditing.SIZE}
    about["listed"] = len(at.store.candidates(query))
    return page(request, "annotate_label.html", who=who, wanted=wanted, what=what, **about)


class Assignment(BaseModel):
    """Queries that somebody is to label, is not to label any more, or whose photos are listed.

    `back` is what the table's address said; `new` that a name which nobody has is meant.
    """

    query: list[QueryId] = Field(default_factory=list, max_length=5000)
    person: str = Field("", max_length=200)
    act: Literal["give", "take", "list"] = "give"
    back: str = Field("", max_length=2000)
    new: bool = False


@router.post("/assign", dependencies=[lead])
def assign(request: Request, at: Session, state: State, given: Annotated[Assignment, Form()]) -> Response:
    """Give queries to somebody, take them away, or list the photos of all; a name that nobody has is asked about."""
    who = at.annotator_name()
    queries = [at.store.query(query).id for query in given.query]
    if given.act == "list":
        for query in queries:
            _fill(at, state, query, None)
        return RedirectResponse(_table(given.back, did="list", many=len(queries)), 303)
    person, names = name_of(given.person), _names(at, state)
    if given.act == "give" and person not in names and not given.new:
        return page(request, "annotate_assign.html", given=given, whom=person, names=names, back=_table(given.back))
    if given.act == "give":
        at.store.team.assign(queries, person, name_of(who))
    else:
        at.store.team.unassign(queries, person)
    return RedirectResponse(_table(given.back, did=given.act, many=len(queries), whom=person), 303)


def _names(at: AnnotationSession, state: AppState) -> list[str]:
    """Everybody who labels, is to label, or has a token for it, in the order of the alphabet."""
    annotators = [one.name for one in state.settings.access if one.role >= Role.ANNOTATOR and not one.internal]
    people = people_of(at.overview.rows(), at.store.team.assigned())
    return sorted({*(one["name"] for one in people), *annotators, at.who} - {""}, key=str.casefold)


@router.post("/rules", dependencies=[lead])
def rule(
    at: Session, own_disputes: Annotated[Literal["yes", "no"], Form()], back: Annotated[str, Form(max_length=2000)] = ""
) -> Response:
    """Whether people may settle disputes in which they have marks themselves."""
    at.store.team.let(OWN_DISPUTES, own_disputes == "yes", name_of(at.annotator_name()))
    return RedirectResponse(_table(back), 303)


def _table(address: str, **more: object) -> str:
    pairs = {**dict(parse_qsl(address)), **more}
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
    shared = at.store.team.seed(id) is not None or len(several) > 1
    about = {"query": id, "what": "team"} if shared else {"query": id}
    return RedirectResponse(f"/annotate/label?{urlencode(about)}", 303)


@router.get("/query")
def one_query(request: Request, at: Session, state: State, query: Id) -> Response:
    """One query: how everybody stands, how far they agree, what is told of it, and what is to be fixed."""
    (row,) = at.overview.rows(query)
    by_person = agreement.everybody(at.store, query)
    figures = agreement_figures(at, state.snapshots, query, by_person)
    given = at.store.team.assigned().get(query, [])
    return page(request, "annotate_query.html", who=at.who, one=row, given=given, **figures)


for part in (_grid, _disputes):
    router.include_router(part.router)
