"""Two rankings of one query side by side: encoders, an adapter on and off, before and after a judge's re-ranking."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from eyespot.search.query_language import format_query
from eyespot.types import EyespotError, UsageError
from eyespot.types import Query as Asking
from eyespot.web._allowed import refuse_misfit
from eyespot.web._items import items_of
from eyespot.web._judging import PROMPT, judge_of, own_of
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._search_params import By, Flag, Given, Name, SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, Served
from eyespot.web.found.results import RankedResult
from eyespot.web.found.tabs import verdict_of
from eyespot.web.found.two_rankings import FEWEST, MOST, TwoRankings, judged_queries, measured
from eyespot.web.searching import helpers

router = APIRouter(dependencies=[Depends(needs(Role.READER))])
DEPTH = 50  # hits that are compared
SHOWN = 24  # of each side
DEEP = 2000  # hits in which judged photos are looked for
WAYS = ("encoder", "adapt", "rerank", "by")
CUTS = (10, DEPTH)


class SideParams(BaseModel):
    """What each side is ranked by, where it differs from the search."""

    model_config = ConfigDict(frozen=True)

    left_encoder: Name = Field(default=None, description="The encoder of the left side.")
    left_adapt: Name = Field(default=None, description="The adapter of the left side.")
    left_rerank: Name = Field(default=None, description="The judge in whose order the left side stands.")
    left_by: By = Field(default=None, description="How the left side searches: look, words or both.")
    right_encoder: Name = Field(default=None, description="The encoder of the right side.")
    right_adapt: Name = Field(default=None, description="The adapter of the right side.")
    right_rerank: Name = Field(default=None, description="The judge in whose order the right side stands.")
    right_by: By = Field(default=None, description="How the right side searches: look, words or both.")

    def of(self, side: str) -> dict[str, str | None]:
        """The choices of one side."""
        return {way: getattr(self, f"{side}_{way}") for way in WAYS}

    @property
    def chosen(self) -> bool:
        """Whether anything was chosen."""
        return any(self.model_dump().values())


def _side_params(given: Annotated[SideParams, Query()]) -> SideParams:
    return given


Sides = Annotated[SideParams, Depends(_side_params)]


class ComparedSide(NamedTuple):
    """One ranking, what it is called, its address, and its first hits."""

    name: str
    params: SearchParams
    frozen: RankedResult
    items: list[dict[str, Any]]
    note: str


@router.get("/sides", include_in_schema=False)
def sides_page(request: Request, house: Served, given: Given, sides: Sides, measure: Flag = None) -> Response:
    """The page: what to compare, both rankings, what moved, and on demand the measures by people's verdicts."""
    sides = sides if sides.chosen else _usual(house, given)
    shown: dict[str, Any] = {"wrong": None, "pair": None, "two": None, "pairs": None, "judged": 0, "cuts": CUTS}
    status, person = 200, person_of(request)
    try:
        pair = _pair(house, given, sides, person)
        shown |= {"pair": pair, "two": _two(pair)}
        may = person.role >= Role.ANNOTATOR and house.settings.ledger.exists()  # who may not judge sees no verdicts
        judged = house.readable_judgements.measurable(PROMPT) if may else 0
        shown["judged"] = min(judged, MOST)
        if measure and judged >= FEWEST:  # reads the whole ledger
            shown["pairs"] = _measured(house, pair, judged_queries(house.readable_judgements))
    except (EyespotError, Problem) as error:
        shown["wrong"], status = str(error), error.status if isinstance(error, Problem) else 422
    choices = {"encoder": house.encoders, "adapt": [*house.adapters], "rerank": [*house.judges.named]}
    here = {name: value for name, value in sides.model_dump().items() if value}
    shown |= {"choices": choices, "sides": sides, "shown": SHOWN, "depth": DEPTH, "plain": _base(given)}
    shown |= {"measure_at": f"/sides?{_base(given).address()}&{urlencode(here | {'measure': 'true'})}#measures"}
    return page(request, "sides.html", status, asked=given, **shown, **helpers(given))


@router.get("/v1/sides", tags=["search"])
def sides(request: Request, house: Served, given: Given, sides: Sides) -> Response:
    """Two rankings of one query: how much they share, their rank correlation, and the rank of each hit in both."""
    pair = _pair(house, given, sides if sides.chosen else _usual(house, given), person_of(request))
    two = _two(pair)
    ids = list(dict.fromkeys([*two.left, *two.right]))
    rank = [{id: at for at, id in enumerate(side, 1)} for side in two]
    answer = {
        "left": {"name": pair[0].name, "run": pair[0].frozen.id},
        "right": {"name": pair[1].name, "run": pair[1].frozen.id},
        "depth": DEPTH,
        "overlap": {str(k): round(two.overlap(k), 4) for k in CUTS},
        "tau": None if two.tau is None else round(two.tau, 4),
        "items": [{"id": id, "left": rank[0].get(id), "right": rank[1].get(id)} for id in ids],
    }
    return JSONResponse(answer)


# -- both sides -------------------------------------------------------------------------------------------------


def _base(given: SearchParams) -> SearchParams:
    """The search without what the sides choose."""
    return given.plain.model_copy(update={"encoder": None, "adapt": None, "by": None})


def _usual(house: AppState, given: SearchParams) -> SideParams:
    """What to compare where nothing was chosen: the judge, the adapter, another encoder, a judge, or ways to search."""
    encoder = given.encoder or house.encoders[0]
    ways: dict[str, str | None] = {"left_encoder": encoder, "right_encoder": encoder}
    others = [one for one in house.encoders if one != encoder]
    if given.rerank:
        ways |= {"right_rerank": given.rerank, "left_adapt": given.adapt, "right_adapt": given.adapt}
    elif adapter := given.adapt or _fitting(house, encoder):
        ways |= {"right_adapt": adapter}
    elif others:
        ways |= {"right_encoder": others[0]}
    elif house.judges.named:
        ways |= {"right_rerank": next(iter(house.judges.named))}
    else:
        ways |= {"left_by": "look", "right_by": "both"}
    return SideParams.model_validate(ways)


def _fitting(house: AppState, encoder: str) -> str | None:
    """An adapter for the space of an encoder."""
    for name, adapter in house.adapters.items():
        with suppress(Problem):
            refuse_misfit(name, adapter, house.snapshot(encoder).view.space)
            return name
    return None


def _pair(house: AppState, given: SearchParams, sides: SideParams, person: User) -> tuple[ComparedSide, ComparedSide]:
    if not given.something:
        raise UsageError("there is nothing to compare yet; write words, or begin with a search")
    return _side(house, given, sides.of("left"), person), _side(house, given, sides.of("right"), person)


def _side(house: AppState, given: SearchParams, ways: dict[str, str | None], person: User) -> ComparedSide:
    params = _base(given).model_copy(update=ways)
    frozen = house.search(params, own_of(person))
    items = items_of(frozen, frozen.slice(0, DEPTH))
    known = {}
    if person.role >= Role.ANNOTATOR and (given.q or given.picture):
        known = house.verdicts(given, [item["id"] for item in items], judge_of(person))
    items = [{**item, "verdict": verdict_of(known.get(item["id"]))} for item in items]
    parts = [ways["encoder"] or house.encoders[0], f"through {ways['adapt']}" if ways["adapt"] else ""]
    parts += [{"look": "by look", "words": "by words", "both": "by words and look"}.get(ways["by"] or "", "")]
    parts += [f"in the order of {ways['rerank']}" if ways["rerank"] else ""]
    silent = ways["rerank"] and all(place.probability is None for place in frozen.judged.values())
    note = f"{ways['rerank']} has not looked at these photos yet, so nothing moved" if silent else ""
    return ComparedSide(", ".join(filter(None, parts)), params, frozen, items, note)


def _two(pair: tuple[ComparedSide, ComparedSide]) -> TwoRankings:
    left, right = ([str(item["id"]) for item in side.items] for side in pair)
    return TwoRankings(left, right)


def _measured(
    house: AppState, pair: tuple[ComparedSide, ComparedSide], queries: Sequence[tuple[Asking, dict[str, int]]]
) -> Any:
    """Both sides by the verdicts of people; queries that a side cannot search are ranked as empty."""

    def ranked(side: ComparedSide) -> Any:
        def order(query: Asking) -> list[str]:
            with suppress(EyespotError, Problem):
                words = side.params.model_copy(update={"q": format_query(query), "picture": None, "like": ()})
                # Verdicts that moved a ranking cannot measure it
                frozen = house.search(words.model_copy(update={"unlike": (), "feedback": None, "grouped": False}))
                found = frozen.slice(0, DEEP)
                return [id for id, _ in frozen.snapshot.pictures(found.rows.tolist())]
            return []

        return order

    worded = [one for one in queries if all(term.text is not None for term in one[0].terms)]
    return measured(worded, ranked(pair[0]), ranked(pair[1]))
