"""Photos spread over a ranking to judge, so that its hits get probabilities and their number an interval."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from eyespot.types import UsageError
from eyespot.web._items import items_of
from eyespot.web._judging import PROMPT, judge_of, own_of
from eyespot.web._pages import page
from eyespot.web._search_params import Given
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import Served
from eyespot.web.found.calibrated import WANTED, spread_of
from eyespot.web.found.results import RankedResult, Slice
from eyespot.web.searching import helpers

router = APIRouter(dependencies=[Depends(needs(Role.READER))])


@router.get("/spread", include_in_schema=False, dependencies=[Depends(needs(Role.ANNOTATOR))])
def spread(request: Request, house: Served, given: Given) -> Response:
    """The next photos to judge of a search, from its first ranks to its last."""
    params, person = given.unmoved, person_of(request)
    frozen = house.search(params)
    found = spread_of(frozen, house.readable_judgements, (judge_of(person), PROMPT))
    items = _items(frozen, found.wanted)
    about: dict[str, Any] = {"known": found.known, "verdicts": found.verdicts, "wanted": WANTED}
    return page(request, "spread.html", asked=params, frozen=frozen, items=items, **about, **helpers(params))


@router.get("/v1/runs/{id}/calibration", tags=["runs"])
def calibration(request: Request, house: Served, id: str) -> Response:
    """How many of the first hits are relevant by the verdicts there are, and what to judge to know it better."""
    frozen, person = house.results[id], person_of(request)
    frozen = frozen.root
    if frozen.query is None:
        raise UsageError("verdicts are on words or a picture; search for some")
    own = own_of(person)
    known = house.calibration(frozen, own)
    payload: dict[str, Any] = {
        "run": frozen.id,
        "relevant": None,
        "by": None,
        "verdicts": 0,
        "covariate": None,
        "likely": [],
    }
    if known is not None:
        count = known.calibration.count
        payload["relevant"] = {"among": known.hits, **count._asdict(), "expected": round(count.expected, 2)}
        payload |= {"by": known.by, "verdicts": known.verdicts, "covariate": known.covariate}
        payload["likely"] = [{"likely": precision, **cut._asdict()} for precision, cut in known.cuts]
    # The photos to judge next, for whoever may judge
    wanted = [] if own is None else _items(frozen, spread_of(frozen, house.readable_judgements, own).wanted)
    payload["judge_next"] = [{"item": item["id"], "rank": item["rank"]} for item in wanted]
    return JSONResponse(payload)


def _items(frozen: RankedResult, wanted: list[str]) -> list[dict[str, Any]]:
    """These hits, with the rank at which each was found."""
    if not wanted:
        return []
    rows = {row for id in wanted if (row := frozen.snapshot.row_of(id)) is not None}
    whole = frozen.slice(0, 1000)
    ranks = [at for at, row in enumerate(whole.rows.tolist()) if row in rows]
    picked = Slice(1, whole.rows[ranks], whole.scores[ranks], False)
    return [
        {**item, "rank": rank + 1, "verdict": None} for item, rank in zip(items_of(frozen, picked), ranks, strict=True)
    ]
