"""The API's flags, `/v1/flags`: what should keep a photo out of a collection, who saw it, and when."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from eyespot.curate.annotate.flags import LONGEST_REASON, Flag
from eyespot.curate.annotate.team_store import LONGEST_NAME
from eyespot.ledger.judgements import PERSON
from eyespot.web._items import existing_row
from eyespot.web._judging import judge_of
from eyespot.web._problems import Problem
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import State
from eyespot.web.annotate._session import Session

router = APIRouter(prefix="/v1/flags", tags=["flags"])
Annotator = Annotated[User, Depends(needs(Role.ANNOTATOR))]


class FlagKey(BaseModel):
    """An item, what is flagged on it, and by whom."""

    item: str = Field(max_length=500)
    kind: Literal["face", "personal", "not-photo", "other"]
    by: str | None = Field(None, max_length=LONGEST_NAME, description="Who says so, where no token does.")

    def person(self, person: User) -> str:
        """The name under which it is kept."""
        return judge_of(person, self.by).removeprefix(PERSON)


class FlagRequest(FlagKey):
    """A flag to raise; another reason needs words."""

    reason: str = Field("", max_length=LONGEST_REASON)


@router.get("")
def flags(at: Session) -> Response:
    """All flags that stand, the earliest first."""
    return JSONResponse({"flags": [_fields(one) for one in at.store.team.flags.all()]})


@router.post("", status_code=201)
def raise_flag(state: State, at: Session, person: Annotator, body: FlagRequest) -> Response:
    """Flag an item: a face, personal data, not a photo, or another reason in words."""
    existing_row(state.snapshots.current(), body.item)
    at.store.team.flags.put(body.item, body.kind, body.person(person), body.reason)
    return JSONResponse({"flags": [_fields(one) for one in at.store.team.flags.of([body.item])]}, 201)


@router.delete("")
def take_down(at: Session, person: Annotator, about: Annotated[FlagKey, Query()]) -> Response:
    """Take your flag down. It counts no more; the ledger keeps it as history."""
    if not at.store.team.flags.take_down(about.item, about.kind, about.person(person)):
        raise Problem(404, f"{about.person(person)} has no such flag on this item to take down")
    return JSONResponse({"flags": [_fields(one) for one in at.store.team.flags.of([about.item])]})


def _fields(flag: Flag) -> dict[str, Any]:
    return {"item": flag.image, "kind": flag.kind, "reason": flag.reason, "by": flag.person, "at": flag.at}
