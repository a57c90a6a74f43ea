"""What moves a search: clicks on its photos, which are kept by query, and the record of those who judged."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import Field

from eyespot.ledger.judgements import PERSON
from eyespot.web._items import no_such_item
from eyespot.web._judging import judge_of, own_of
from eyespot.web._search_params import SearchParams
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, Served
from eyespot.web.api import About, Annotator
from eyespot.web.found.results import RankedResult

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])


class ClickRequest(About):
    """More like an item, or not it, for words, a picture, or both; null takes it back."""

    like: bool | None = Field(description="true: more like it; false: not it; null: takes the click back.")


@router.post("/clicks", tags=["judgements"])
def click(house: Served, person: Annotator, body: ClickRequest) -> Any:
    """Remember that a search should go towards an item or away from it; it counts where `feedback` moves a search.

    A click is no verdict: no judgement, qrels or estimate is made of it.
    """
    query = body.query(house)
    if house.snapshot().row_of(body.item) is None:
        raise no_such_item(body.item)
    digest = house.judgements.enter([query])[query]
    house.clicks.record(digest, judge_of(person, body.by), [body.item], body.like)
    return JSONResponse({"query": digest, "item": body.item, "like": body.like})


class MovesShown(NamedTuple):
    """What the page says of the record of a query: how many yes and no there are, and what moved this ranking."""

    yes: int
    no: int
    whose: str | None  # whose record moves the ranking, for people; None where none does
    sentence: str


def moves_of(house: AppState, given: SearchParams, frozen: RankedResult | None, person: User) -> MovesShown | None:
    """What could move a search, or did; None where nobody can judge, or nothing is searched by look."""
    own = own_of(person)
    if own is None or frozen is None or frozen.query is None or frozen.options.by == "words":
        return None
    known = house.recorded(frozen.query, own[0], own[0])
    whose = None if given.feedback is None else {"mine": "your", "everybody": "everybody’s"}.get(given.feedback)
    whose = whose if given.feedback is None or whose else f"{given.feedback.removeprefix(PERSON)}’s"
    return MovesShown(len(known.yes), len(known.no), whose, str(frozen.moved.note) if frozen.moved else "")
