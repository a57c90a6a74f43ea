"""Flags on photos and disputes about them: raised, listed, settled, and taken along as a file."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import agreement, shared_list, team_store
from eyespot.curate.annotate.team_store import LONGEST_NOTE, OWN_DISPUTES, name_of
from eyespot.types import NothingFound
from eyespot.web._items import existing_row
from eyespot.web._pages import TEMPLATES, page
from eyespot.web._snapshots import Snapshots
from eyespot.web._state import State
from eyespot.web.annotate._session import LONGEST_ID, AnnotationSession, Id, Session, check_listed, units
from eyespot.web.downloads import attachment

router = APIRouter(include_in_schema=False)
TEMPLATES.globals["flag_kinds"] = team_store.FLAG_KINDS


class Flagging(BaseModel):
    """A flag to put on a photo or to take down; `next` is where a form leads back to."""

    image: str = Field(max_length=1000)
    kind: Literal["face", "personal", "not-photo", "other"]
    reason: str = Field("", max_length=team_store.LONGEST_REASON)
    act: Literal["put", "take"] = "put"


@router.post("/flags")
def flag(request: Request, at: Session, state: State, given: Annotated[Flagging, Form()]) -> Response:
    """Put a flag on a photo or take one's own down; a script gets the flags of the photo, a form the list of all."""
    who = name_of(at.annotator_name())
    if given.act == "take":
        at.store.team.flags.take_down(given.image, given.kind, who)
    else:
        existing_row(state.snapshots.current(), given.image)
        at.store.team.flags.put(given.image, given.kind, who, given.reason)
    if request.headers.get("hx-request"):
        return JSONResponse({"flags": [one.words for one in at.store.team.flags.of([given.image])]})
    return RedirectResponse("/annotate/flagged", 303)


@router.get("/flagged")
def flagged(request: Request, at: Session) -> Response:
    """All photos with flags, who saw what on them, and when."""
    who = at.annotator_name()
    return page(request, "annotate_flagged.html", found=at.store.team.flags.all(), me=name_of(who), moment=moment)


@router.get("/flagged.csv")
def flagged_table(at: Session, state: State) -> Response:
    """The list of flags as `eyespot build inat --flagged` takes it; `NothingFound` where there is none."""
    found = at.store.team.flags.all()
    if not found:
        raise NothingFound("no photo is flagged; press f on a photo while you label")
    snapshot = state.snapshots.current()
    rows = [row for image in {one.image for one in found} if (row := snapshot.row_of(image)) is not None]
    names = {facts["id"]: facts["path"] or "" for facts in snapshot.facts(rows)}
    with TemporaryDirectory(prefix="eyespot-flags-") as folder:
        file = Path(folder) / "flagged.csv"
        team_store.write_flags(file, found, lambda image: names.get(image, ""))
        data = file.read_bytes()
    return attachment(data, "text/csv; charset=utf-8", "flagged.csv")


@router.get("/disputes")
def disputes(request: Request, at: Session, state: State, query: Id) -> Response:
    """The photos on which annotators differ, each with what they said, to be settled."""
    who = at.annotator_name()
    wanted = at.store.query(query)
    by_person = agreement.everybody(at.store, query)
    found = agreement.differences(at.store, query, by_person)
    figures = agreement_figures(at, state.snapshots, query, by_person)
    shown: dict[str, Any] = {"who": who, "wanted": wanted, "found": found, "longest": LONGEST_NOTE}
    return page(request, "annotate_disputes.html", **shown, **figures, **_card_facts(at))


def agreement_figures(
    at: AnnotationSession, snapshots: Snapshots, query: str, by_person: agreement.MarksByPerson
) -> dict[str, Any]:
    """How far people agree, and how the tenth that two people label stands: None for a list that is not shared."""
    twice = None
    if at.store.team.seed(query) is not None:
        listed = at.store.candidates(query)
        groups = units(listed, at.groups_of(query, listed, snapshots.current()))
        twice = shared_list.labelled_twice(at.store, query, by_person, groups)
    beyond = agreement.coefficients(by_person)
    return {"overlaps": agreement.overlaps(by_person), "beyond": beyond, "twice": twice}


def _card_facts(at: AnnotationSession) -> dict[str, Any]:
    raised: dict[str, list[team_store.Flag]] = {}
    for flag in at.store.team.flags.all():
        raised.setdefault(flag.image, []).append(flag)
    allowed, me = at.store.team.allows(OWN_DISPUTES), name_of(at.annotator_name())
    return {"moment": moment, "raised": raised, "allowed": allowed, "me": me}


def moment(at: float) -> str:
    """A moment as people read it."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))


class LastWord(BaseModel):
    """What settles a dispute; `back` takes one's own word back, `note` keeps only what is written."""

    query: str = Field(max_length=LONGEST_ID)
    image: str = Field(max_length=1000)
    mark: Literal["y", "n", "d", "back", "note"]
    note: str = Field("", max_length=2 * LONGEST_NOTE)


@router.post("/settle")
def settle(request: Request, at: Session, word: Annotated[LastWord, Form()]) -> Response:
    """The last word on a photo. A script gets the photo anew, whoever has none is led back to where they were."""
    check_listed(at, word.query, [word.image])
    who = at.annotator_name()
    if word.mark in "ynd":
        agreement.check_settling(at.store, word.query, who, word.image)
    at.store.team.write_note(word.query, word.image, name_of(who), word.note)
    if word.mark != "note":
        agreement.settle(at.store, word.query, who, word.image, None if word.mark == "back" else word.mark)
    found = agreement.differences(at.store, word.query)
    number = next((place for place, one in enumerate(found, 1) if one.image == word.image), 0)
    if not number or not request.headers.get("hx-request"):
        return RedirectResponse(f"/annotate/disputes?{urlencode({'query': word.query})}#photo-{number}", 303)
    shown: dict[str, Any] = {"each": found[number - 1], "number": number}
    wanted, left = at.store.query(word.query), sum(one.word is None for one in found)
    return page(request, "dispute.html", who=who, wanted=wanted, left=left, **shown, **_card_facts(at))
