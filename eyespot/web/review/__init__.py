"""The pages for what a pipeline must ask a person: queues decided case by case, and audits that are answered blind.

Decisions are appended to the file that `eyespot build review` writes too, by any number of people at once. Queues come
from whoever starts the server; no request names a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from eyespot.curate.rmir.audit import LAST, agreed, compared
from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.sources import read_again
from eyespot.pipelines.human_review import Overtaken
from eyespot.types import UsageError
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web.review._queues import Shelf, Shelved
from eyespot.web.review._telling import case_fields, case_question, counts, decision_fields

annotator = needs(Role.ANNOTATOR)
router = APIRouter(prefix="/review", include_in_schema=False, dependencies=[Depends(annotator)])
SIDES = (640, 1600)  # pixels of the longer side
LONGEST = 20_000  # characters of an edited text


def install(app: FastAPI, queues: Iterable[Path]) -> None:
    """Put queues on the pages, with a link in the bar if there are any; `UsageError` for what is no queue."""
    app.state.shelf = Shelf(queues)
    if list(app.state.shelf):
        app.state.links.append(Link("Review", "/review", Role.ANNOTATOR))


def shelf_of(request: Request) -> Shelf:
    """All queues of this server, as a dependency."""
    shelf: Shelf = request.app.state.shelf
    return shelf


def shelved_of(request: Request, key: str) -> Shelved:
    """The queue of an address, as a dependency."""
    return shelf_of(request)[key]


def reviewer_name(request: Request) -> str:
    """Who decides, as a dependency; `Problem` if nobody knows."""
    if not (who := person_of(request).name):
        raise Problem(422, "nobody knows who you are here; say your name on the page /review first")
    return who


Shelves = Annotated[Shelf, Depends(shelf_of)]
Chosen = Annotated[Shelved, Depends(shelved_of)]
Who = Annotated[str, Depends(reviewer_name)]


# -- pages ----------------------------------------------------------------------------------------------------------


@router.get("")
def overview(request: Request, shelf: Shelves) -> Response:
    """All queues, and how far each is."""
    rows = [(one, counts(one, one.queue.standing())) for one in shelf]
    return page(request, "review.html", who=person_of(request).name, rows=rows)


@router.get("/{key}")
def work(request: Request, shelved: Chosen) -> Response:
    """The page on which one case after the other is decided; the way to where one says one's name first."""
    if not (who := person_of(request).name):
        return RedirectResponse("/review", 303)
    return page(request, "review_case.html", shelved=shelved, who=who, blind=shelved.panel is not None)


@router.get("/{key}/agreement")
def agreement(request: Request, shelved: Chosen) -> Response:
    """What person and panel agree on; `Problem` while a case is open, for it would lead whoever answers it."""
    if shelved.panel is None:
        raise Problem(404, "nobody judged these cases before; only an audit has an agreement")
    standing = shelved.queue.standing()
    if left := counts(shelved, standing)["open"]:
        raise Problem(409, f"{left} cases are still to be answered; what the panel said is shown when all are")
    answers = {id: one.choice != "drop" for id, one in standing.items()}
    panel, is_last = shelved.panel, shelved.queue.path.name == LAST
    groups = compared(panel, answers) if is_last else None
    # The cases on which person and panel differ, with what each judge gave as its reason
    differing = [
        {"case": case, "sealed": panel[case.id], "said": answers[case.id], "why": case_question(shelved, case)}
        for case in shelved.cases
        if case.id in panel and panel[case.id].answers is not answers[case.id]
    ]
    content: dict[str, Any] = {"rows": agreed(panel, answers), "groups": groups, "differing": differing}
    return page(request, "review_agreement.html", shelved=shelved, is_last=is_last, **content)


# -- what the page asks ---------------------------------------------------------------------------------------------


class Wish(BaseModel):
    """Which case is asked for: one by its place, else the next open one behind a place."""

    place: int | None = Field(None, ge=1, le=10**9)
    after: int = Field(0, ge=0, le=10**9)


@router.get("/{key}/case")
def case(shelf: Shelves, shelved: Chosen, who: Who, wish: Annotated[Wish, Query()]) -> Response:
    """A case, or none where all are decided, and how far the queue is."""
    standing = shelved.queue.standing()
    if wish.place is None or not shelved.cases:
        chosen = shelf.next_open(shelved, standing, wish.after, who)
    else:
        chosen = shelved.cases[min(wish.place, len(shelved.cases)) - 1]
    shown = None if chosen is None else case_fields(shelved, chosen, standing.get(chosen.id), who)
    return _json({**counts(shelved, standing), "case": shown})


class DecisionRequest(BaseModel):
    """What somebody chose for a case: its digest, the decision that they saw stand, texts that they edited."""

    case: str = Field(max_length=32)
    choice: Literal["accept", "mend", "drop", "withdraw"]
    seen: str | None = Field(None, max_length=32)
    texts: dict[str, Annotated[str, Field(max_length=LONGEST)]] = Field(default_factory=dict, max_length=50)
    note: str = Field("", max_length=1000)


@router.post("/{key}/decisions")
def decide(shelf: Shelves, shelved: Chosen, who: Who, body: DecisionRequest) -> Response:
    """Keep a decision, or withdraw one; it is on the disk when the answer comes, which brings the next open case."""
    case = shelved.case(body.case)
    try:
        if body.choice == "withdraw":
            if body.seen is None:
                raise UsageError("say which decision is withdrawn; load the page again")
            shelved.queue.withdraw_seeing(body.seen, case, who)
            seen = None
        else:
            if shelved.panel is not None and body.choice == "mend":
                raise UsageError("an audit is answered with yes or no; accept or drop the case")
            more = {"texts": body.texts, "note": body.note}
            seen = shelved.queue.decide_seeing(body.seen, case, body.choice, who, **more).digest
    except Overtaken as error:
        blind = "this case was answered or opened again since you saw it; look again and answer again"
        stands = None if error.stands is None else decision_fields(shelved, error.stands, who)
        overtaken = {"detail": str(error) if shelved.panel is None else blind, "stands": stands}
        return _json(overtaken, 409)
    standing = shelved.queue.standing()
    upcoming = shelf.next_open(shelved, standing, shelved.places[case.digest] + 1, who)
    shown = None if upcoming is None else case_fields(shelved, upcoming, None, who)
    return _json({**counts(shelved, standing), "seen": seen, "next": shown})


@router.get("/{key}/pictures/{digest}/{at}")
def picture(shelved: Chosen, digest: str, at: int, side: Annotated[int, Query()] = SIDES[0]) -> Response:
    """A picture of a case, as a JPEG at most so many pixels wide and high."""
    pictures = shelved.case(digest).pictures
    if not 0 <= at < len(pictures) or side not in SIDES:
        raise Problem(404, "this case has no such picture, or not in this size")
    for place in (pictures[at], str(shelved.queue.path.parent / pictures[at])):  # from here, or from the queue's folder
        with suppress(OSError, BadPicture):
            return Response(thumbnail(read_again(place), side), media_type="image/jpeg")
    raise Problem(404, "the picture is gone or cannot be read; its owner finds it in the queue")


def _json(value: Any, status: int = 200) -> Response:
    """Written in ASCII: an id may hold halves of characters, which no UTF-8 has."""
    return Response(json.dumps(value).encode(), status, media_type="application/json")
