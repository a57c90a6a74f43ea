"""Flags on the annotators' pages: raised with one key or a form, listed, and taken along as a file."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse

from eyespot.curate.annotate import flags
from eyespot.curate.annotate.team_store import name_of
from eyespot.types import NothingFound
from eyespot.web._items import no_such_item, thumbnail_address
from eyespot.web._pages import TEMPLATES, page
from eyespot.web._state import AppState, Served
from eyespot.web.annotate._disputing import moment
from eyespot.web.annotate._session import Session

router = APIRouter(include_in_schema=False)
TEMPLATES.globals["flag_kinds"] = flags.KINDS


class Flagging(BaseModel):
    """A flag to put on a photo or to take down; `next` is where a form leads back to."""

    image: str = Field(max_length=1000)
    kind: Literal["face", "personal", "not-photo", "other"]
    reason: str = Field("", max_length=flags.LONGEST_REASON)
    act: Literal["put", "take"] = "put"


@router.post("/flags")
def flag(request: Request, at: Session, house: Served, given: Annotated[Flagging, Form()]) -> Response:
    """Put a flag on a photo or take one's own down; a script gets the flags of the photo, a form the list of all."""
    who = name_of(at.annotator_name())
    if given.act == "take":
        at.store.team.flags.take_down(given.image, given.kind, who)
    elif house.snapshot().row_of(given.image) is None:
        raise no_such_item(given.image)
    else:
        at.store.team.flags.put(given.image, given.kind, who, given.reason)
    if request.headers.get("hx-request"):
        return JSONResponse({"flags": [one.words for one in at.store.team.flags.of([given.image])]})
    return RedirectResponse("/annotate/flagged", 303)


@router.get("/flagged")
def flagged(request: Request, at: Session) -> Response:
    """All photos with flags, who saw what on them, and when."""
    who = at.annotator_name()
    found: dict[str, list[flags.Flag]] = {}
    for one in at.store.team.flags.all():
        found.setdefault(one.image, []).append(one)
    shown: dict[str, Any] = {"found": found, "me": name_of(who), "thumbnail": thumbnail_address, "moment": moment}
    return page(request, "annotate_flagged.html", **shown)


@router.get("/flagged.csv")
def flagged_table(at: Session, house: Served) -> Response:
    """The list of flags as `eyespot build inat --flagged` takes it; `NothingFound` where there is none."""
    found = at.store.team.flags.all()
    if not found:
        raise NothingFound("no photo is flagged; press f on a photo while you label")
    names = paths_of(house, [one.image for one in found])
    with TemporaryDirectory(prefix="eyespot-flags-") as folder:
        file = Path(folder) / "flagged.csv"
        flags.write_flags(file, found, lambda image: names.get(image, ""))
        data = file.read_bytes()
    how = {"Content-Disposition": 'attachment; filename="flagged.csv"'}
    return Response(data, media_type="text/csv; charset=utf-8", headers=how)


def paths_of(house: AppState, images: list[str]) -> dict[str, str]:
    """The path of each photo within its root, by id; those that are not in the gallery any more are left out."""
    snapshot = house.snapshot()
    rows = [row for image in dict.fromkeys(images) if (row := snapshot.row_of(image)) is not None]
    return {facts["id"]: facts["path"] or "" for facts in snapshot.facts(rows)}
