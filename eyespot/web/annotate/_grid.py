"""What the grid of photos asks for and sends: photos, marks, how the query stands, and audits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from eyespot.curate.annotate import agreement, auditing, shared_list
from eyespot.curate.annotate.annotation_store import Candidate, mark_of
from eyespot.curate.annotate.progress import IN_A_ROW, standing, team_standing
from eyespot.curate.annotate.team_store import name_of
from eyespot.web._items import thumbnail_address
from eyespot.web._state import AppState, Served
from eyespot.web.annotate._groups import units
from eyespot.web.annotate._lists import grow_list
from eyespot.web.annotate._photos import photos_shown
from eyespot.web.annotate._session import LONGEST_ID, AnnotationSession, Id, Session, check_listed

router = APIRouter(include_in_schema=False)
What = Literal["list", "team", "audit", "likely", "telling"]
MOST = 500  # marks or photos at once
BACK = 24  # marked photos that are shown before the first one that is not


class Marks(BaseModel):
    """What somebody says of photos: y, n, d for doubt, null to take it back.

    `opened`, with the first marks of a page, is how many seconds ago the page was opened. `by_group` are the photos
    among them that were marked as members of a group.
    """

    marks: dict[str, Literal["y", "n", "d"] | None] = Field(max_length=MOST)
    opened: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)
    by_group: list[str] = Field(default_factory=list, max_length=MOST)
    what: What = "list"


class Stretch(BaseModel):
    """Which photos of a query are asked for; `unmarked` are those alone that one has no mark on."""

    query: str = Field(max_length=LONGEST_ID)
    what: What = "list"
    first: int = Field(0, ge=0, le=10**9)
    count: int = Field(120, ge=1, le=MOST)
    unmarked: bool = False
    resume: bool = False  # begin shortly before the first photo without a mark


@router.get("/photos")
def photos(at: Session, house: Served, stretch: Annotated[Stretch, Query()]) -> Response:
    """A stretch of the photos to label, with what was said of them, and how many there are."""
    verdicts = at.store.last_judgements(stretch.query, at.annotator_name())
    listed = photos_shown(at, house, stretch.query, stretch.what)
    if stretch.unmarked:
        listed = [photo for photo in listed if photo.image not in verdicts]
    first = stretch.first
    if stretch.resume:
        open_photos = (place for place, photo in enumerate(listed) if photo.image not in verdicts)
        first = max(0, next(open_photos, len(listed)) - BACK)
    fields = _fields(at, house, stretch, listed[first : first + stretch.count])
    # An audit or a shared list may have photos that nobody was handed
    grows = stretch.what in ("audit", "team") or (stretch.what == "list" and at.store.grows(stretch.query))
    return JSONResponse({"photos": fields, "first": first, "total": len(listed), "grows": grows})


def _fields(at: AnnotationSession, house: AppState, stretch: Stretch, some: list[Candidate]) -> list[dict[str, Any]]:
    who = at.annotator_name()
    verdicts = at.store.last_judgements(stretch.query, who)
    by_group = at.store.team.marked_by_group(stretch.query, name_of(who), verdicts)
    # Photos of an audit were drawn one by one, and are looked at one by one
    groups = (
        {}
        if stretch.what == "audit"
        else at.groups.of(stretch.query, at.store.candidates(stretch.query), house.snapshot())
    )
    flags: dict[str, list[str]] = {}
    for flag in at.store.team.flags.all():
        flags.setdefault(flag.image, []).append(flag.words)
    fields = []
    for image in (photo.image for photo in some):
        places = {"thumbnail": thumbnail_address(image), "large": thumbnail_address(image, 1600)}
        mark = mark_of(verdicts[image]) if image in verdicts else None
        more = {"group": groups.get(image), "by_group": image in by_group, "flags": flags.get(image, [])}
        fields.append({"image": image, **places, "mark": mark, **more})
    return fields


@router.post("/marks")
def mark(at: Session, house: Served, query: Id, given: Marks) -> Response:
    """Keep marks; they are on the disk when the answer comes, which says how the query stands."""
    check_listed(at, query, given.marks)
    who = at.annotator_name()
    if given.opened is not None:
        at.store.open_page(query, who, given.opened)
    at.store.team.note_marks(query, name_of(who), given.marks, set(given.by_group) & given.marks.keys())
    changed = at.store.mark(query, who, given.marks)
    shared_list.renew(at.store, query, who, at.store.last_judgements(query, who))
    return JSONResponse({"changed": changed, **_stands(at, house, query, given.what)})


@router.get("/standing")
def stands(at: Session, house: Served, query: Id, what: What = "list") -> Response:
    """How the query stands for whoever asks, or on a shared list for all."""
    return JSONResponse(_stands(at, house, query, what))


@router.post("/grow")
def grow(at: Session, house: Served, query: Id, what: What = "list") -> Response:
    """Let the list of a search go on, or hand out further photos of an audit or a shared list."""
    who = at.annotator_name()
    if what == "audit":
        return JSONResponse({"new": auditing.hand_out(at.store, query, who)})
    if what == "team":
        return JSONResponse({"new": hand_out(at, house, query)})
    return JSONResponse({"new": grow_list(at, house, query) if at.store.grows(query) else 0})


def hand_out(at: AnnotationSession, house: AppState, query: str) -> int:
    """Hand somebody the next photos of a shared list, which goes on where it is a search."""
    who = at.annotator_name()
    while True:
        listed = at.store.candidates(query)
        groups = units(listed, at.groups.of(query, listed, house.snapshot()))
        handed = shared_list.hand_out(at.store, query, who, groups)
        verdicts = agreement.everybody(at.store, query)
        stopped = team_standing(at.store, query, verdicts, agreement.labels(at.store, query, verdicts)).stopped
        if handed or stopped:
            return handed
        if at.store.goes_on(query):
            grow_list(at, house, query)
        # Two people may come to the end at the same moment: then the list grew for both, whoever let it grow
        if len(at.store.candidates(query)) == len(listed):
            return 0


@router.post("/audit")
def audit(
    at: Session,
    house: Served,
    query: Id,
    size: Annotated[int, Query(ge=1, le=100_000, description="Photos to draw.")] = auditing.SIZE,
    twice: Annotated[float, Query(ge=0, le=1, description="The share of them that two people label.")] = 0.0,
) -> Response:
    """Draw an audit of the rest."""
    who = at.annotator_name()
    collection = house.snapshot().collection if at.store.grows(query) else None
    drawn = auditing.draw(at.store, query, who, collection, auditing.Plan(size, twice=twice))
    auditing.hand_out(at.store, query, who)
    return JSONResponse({"drawn": len(drawn.photos), "rest": drawn.rest}, 201)


@router.post("/audit/join")
def join(at: Session, query: Id) -> Response:
    """Work at the audit that somebody else drew: its photos are shared out, and it ends for all at once."""
    who = at.annotator_name()
    drawn = auditing.join(at.store, query, who)
    auditing.hand_out(at.store, query, who)
    return JSONResponse({"drawn": len(drawn.photos), "rest": drawn.rest})


@router.post("/audit/release")
def release(at: Session, query: Id) -> Response:
    """Wait no longer for the labels of a second person: the audit ends with one label on each photo."""
    return JSONResponse({"released": auditing.release(at.store, query, at.annotator_name())})


def _stands(at: AnnotationSession, house: AppState, query: str, what: str) -> dict[str, Any]:
    who, store = at.annotator_name(), at.store
    shared = store.team.leases.seed(query) is not None
    verdicts = agreement.everybody(store, query) if shared else {}
    found = standing(store, query, who)
    if what == "team":
        found = team_standing(store, query, verdicts, agreement.labels(store, query, verdicts))
    seen = set(store.last_judgements(query, who)).union(*verdicts.values())
    every = int(house.snapshot().view.live.sum()) if store.grows(query) else found.listed
    more = {"in_a_row": IN_A_ROW, "joinable": _joinable(at, query, who), "rest": max(every - len(seen), 0)}
    return {**found.as_json(), **more}


def _joinable(at: AnnotationSession, query: str, who: str) -> dict[str, Any] | None:
    """An audit that is under way without this person."""
    running, number = auditing.under_way(at.store, query), at.store.audit_number(query)
    people = [] if number is None else at.store.auditors(number)
    if running is None or who in people:
        return None
    return {"people": people, "size": running.size, "done": running.done}
