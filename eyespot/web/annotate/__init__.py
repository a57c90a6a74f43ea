"""The annotators' pages: queries and how they stand, a grid to label by keyboard, audits, and what is disputed."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Depends, Form, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, Json
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import agreement, auditing
from eyespot.curate.annotate.annotation_store import mark_of
from eyespot.curate.annotate.progress import standing
from eyespot.curate.annotate.stopping import IN_A_ROW
from eyespot.web._items import thumbnail_address
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._settings import Role
from eyespot.web._state import Served
from eyespot.web.annotate._lists import grow_list, list_all, mask_of_a_label, query_of_words
from eyespot.web.annotate._photos import photos_shown
from eyespot.web.annotate._session import AnnotationSession, annotator, new_router, session_of
from eyespot.web.annotate._taking import zipped
from eyespot.web.found.facets import facets_of

router = new_router("/annotate")
LINKS = (Link("Annotate", "/annotate", Role.ANNOTATOR),)
Session = Annotated[AnnotationSession, Depends(session_of)]
Words = Annotated[str, Form(min_length=1, max_length=300)]
Short = Annotated[str, Form(max_length=300)]
LONGEST_ID = 1000  # a file of queries may have longer ones than the form takes
Id = Annotated[str, Query(max_length=LONGEST_ID)]
What = Literal["list", "audit", "likely"]
MOST = 500  # marks or photos at once


class Marks(BaseModel):
    """What somebody says of photos: y, n, d for doubt, null to take it back.

    `opened`, with the first marks of a page, is how many seconds ago the page was opened.
    """

    marks: dict[str, Literal["y", "n", "d"] | None] = Field(max_length=MOST)
    opened: float | None = Field(None, ge=0, le=1e9, allow_inf_nan=False)


# -- pages ----------------------------------------------------------------------------------------------------------


@router.get("", dependencies=[Depends(annotator)])
def overview(request: Request, at: Session, house: Served) -> Response:
    """All queries, how each stands, and a form for another one."""
    labels = [f"{one.column}={value}" for one in facets_of(house.snapshot()).labels for value, _ in one.values]
    return page(request, "annotate.html", who=at.who, rows=at.overview.rows(), labels=labels)


@router.post("/queries")
def take_in(at: Session, house: Served, text: Words, label: Short = "") -> Response:
    """Take a query in and list the nearest photos to its words, or all of a label."""
    at.annotator_name()
    snapshot = house.snapshot()
    mask = mask_of_a_label(snapshot, label) if label.strip() else None  # a wrong one leaves no query behind
    query = query_of_words(at, house, text)
    if mask is not None:
        list_all(at, query, snapshot, mask)
    elif not at.store.candidates(query):
        grow_list(at, house, query)
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
        told: dict[str, str] = self.model_dump(exclude={"query", "before"}, exclude_unset=self.before is None)
        before = self.before or {}
        return {name: value for name, value in told.items() if value != before.get(name)}


@router.post("/about")
def describe(at: Session, about: Annotated[QueryFacts, Form()]) -> Response:
    """Keep what somebody tells of a query; what they leave as it was stays as others may have changed it."""
    at.annotator_name()
    at.store.describe(about.query, about.changed())
    return RedirectResponse("/annotate", 303)


@router.post("/remove")
def remove(at: Session, query: Annotated[str, Form(max_length=LONGEST_ID)]) -> Response:
    """Forget a query that nobody has marked a photo for."""
    at.annotator_name()
    at.store.remove(query)
    return RedirectResponse("/annotate", 303)


@router.get("/set.zip")
def take_away(at: Session) -> Response:
    """All that is labelled, as `eyespot annotate export` writes it."""
    how = {"Content-Disposition": 'attachment; filename="labelled.zip"'}
    return Response(zipped(at.store), media_type="application/zip", headers=how)


@router.get("/label")
def label(request: Request, at: Session, query: Id, what: What = "list") -> Response:
    """The grid: photos of the list, of the audit, or the likely ones first."""
    if not at.who:
        return RedirectResponse("/annotate", 303)
    who, wanted = at.who, at.store.query(query)
    if what == "audit" and auditing.share_of(at.store, query, who) == []:  # drawn in a terminal
        auditing.hand_out(at.store, query, who)
    about: dict[str, Any] = {"store": at.store.name(), "in_a_row": IN_A_ROW, "size": auditing.SIZE}
    return page(request, "annotate_label.html", who=who, wanted=wanted, what=what, **about)


@router.get("/disputes")
def disputes(request: Request, at: Session, query: Id) -> Response:
    """The photos on which annotators differ, each with what they said, to be settled."""
    at.annotator_name()
    wanted = at.store.query(query)
    said = agreement.everybody(at.store, query)
    found = agreement.differences(at.store, query, said)
    figures: dict[str, Any] = {"overlaps": agreement.overlaps(said), "beyond": agreement.coefficients(said)}
    shown: dict[str, Any] = {"who": at.who, "wanted": wanted, "found": found, "thumbnail": thumbnail_address}
    return page(request, "annotate_disputes.html", **shown, **figures)


class LastWord(BaseModel):
    """What settles a dispute; `back` takes one's own word back."""

    query: str = Field(max_length=LONGEST_ID)
    image: str = Field(max_length=1000)
    mark: Literal["y", "n", "d", "back"]


@router.post("/settle")
def settle(request: Request, at: Session, word: Annotated[LastWord, Form()]) -> Response:
    """The last word on a photo. A script gets the photo anew, whoever has none is led back to where they were."""
    _check(at, word.query, [word.image])
    who = at.annotator_name()
    agreement.settle(at.store, word.query, who, word.image, None if word.mark == "back" else word.mark)
    found = agreement.differences(at.store, word.query)
    number = next((place for place, one in enumerate(found, 1) if one.image == word.image), 0)
    if not number or not request.headers.get("hx-request"):
        return RedirectResponse(f"/annotate/disputes?{urlencode({'query': word.query})}#photo-{number}", 303)
    shown: dict[str, Any] = {"each": found[number - 1], "number": number, "thumbnail": thumbnail_address}
    wanted, left = at.store.query(word.query), sum(one.word is None for one in found)
    return page(request, "dispute.html", who=who, wanted=wanted, left=left, **shown)


# -- what the grid asks ---------------------------------------------------------------------------------------------


class Stretch(BaseModel):
    """Which photos of a query are asked for."""

    query: str = Field(max_length=LONGEST_ID)
    what: What = "list"
    first: int = Field(0, ge=0, le=10**9)
    count: int = Field(120, ge=1, le=MOST)


@router.get("/photos")
def photos(at: Session, house: Served, asked: Annotated[Stretch, Query()]) -> Response:
    """A stretch of the photos to label, with what was said of them, and how many there are."""
    said = at.store.last_judgements(asked.query, at.annotator_name())
    listed = photos_shown(at, house, asked.query, asked.what)
    fields = []
    for image in (photo.image for photo in listed[asked.first : asked.first + asked.count]):
        places = {"thumbnail": thumbnail_address(image), "large": thumbnail_address(image, 1600)}
        fields.append({"image": image, **places, "mark": mark_of(said[image]) if image in said else None})
    # An audit may have photos that nobody was handed
    grows = asked.what == "audit" or (asked.what == "list" and at.store.grows(asked.query))
    return JSONResponse({"photos": fields, "first": asked.first, "total": len(listed), "grows": grows})


@router.post("/marks")
def mark(at: Session, query: Id, given: Marks) -> Response:
    """Keep marks; they are on the disk when the answer comes, which says how the query stands."""
    _check(at, query, given.marks)
    if given.opened is not None:
        at.store.open_page(query, at.annotator_name(), given.opened)
    changed = at.store.mark(query, at.annotator_name(), given.marks)
    return JSONResponse({"changed": changed, **_stands(at, query)})


@router.get("/standing")
def stands(at: Session, query: Id) -> Response:
    """How the query stands for whoever asks."""
    return JSONResponse(_stands(at, query))


@router.post("/grow")
def grow(at: Session, house: Served, query: Id, what: What = "list") -> Response:
    """Let the list of a search go on, or hand out further photos of an audit."""
    who = at.annotator_name()
    if what == "audit":
        return JSONResponse({"new": auditing.hand_out(at.store, query, who)})
    return JSONResponse({"new": grow_list(at, house, query) if at.store.grows(query) else 0})


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


def _stands(at: AnnotationSession, query: str) -> dict[str, Any]:
    who = at.annotator_name()
    found, running = standing(at.store, query, who), auditing.under_way(at.store, query)
    number = at.store.audit_number(query)
    people = [] if number is None else at.store.auditors(number)
    joinable = None
    if running is not None and who not in people:
        joinable = {"people": people, "size": running.size, "done": running.done}
    return {**found.as_json(), "in_a_row": IN_A_ROW, "joinable": joinable}


def _check(at: AnnotationSession, query: str, images: Any) -> None:
    strange = set(images).difference(at.store.photos(query))
    if strange:
        raise Problem(409, f"{len(strange)} of these photos are on no list of this query; load the page again")
