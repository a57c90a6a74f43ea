"""Two rankings of one query side by side: encoders, an adapter on and off, before and after a judge's re-ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from eyespot.ledger.judgements import PERSON, Judgements
from eyespot.metrics import Compared, Resampling, compare, evaluate
from eyespot.search.query_language import format_query
from eyespot.types import EyespotError, Judgement, Qrels, Run, UsageError
from eyespot.types import Query as Asking
from eyespot.web._items import items_of
from eyespot.web._judges import refuse_misfit
from eyespot.web._judging import PROMPT, combined, own_of
from eyespot.web._pages import page
from eyespot.web._problems import Problem
from eyespot.web._search_params import By, Flag, Given, Name, SearchParams
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.found.derived import verdict_of
from eyespot.web.found.results import RankedResult
from eyespot.web.searching import helpers, judged_items

router = APIRouter(dependencies=[Depends(needs(Role.READER))])
DEPTH = 50  # hits that are compared
SHOWN = 24  # of each side
DEEP = 2000  # hits in which judged photos are looked for
WAYS = ("encoder", "adapt", "rerank", "by")
CUTS = (10, DEPTH)
MEASURES = ("AP", "nDCG@10")
SAMPLES = 2000  # of the bootstrap and the test
FEWEST = 2  # queries: one has no interval
MOST = 60  # queries that are searched again on both sides


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
    result: RankedResult
    items: list[dict[str, Any]]
    note: str


@router.get("/sides", include_in_schema=False)
def sides_page(request: Request, state: State, given: Given, sides: Sides, measure: Flag = None) -> Response:
    """The page: what to compare, both rankings, what moved, and on demand the measures by people's verdicts."""
    sides = sides if sides.chosen else _usual(state, given)
    shown: dict[str, Any] = {"wrong": None, "pair": None, "two": None, "pairs": None, "judged": 0, "cuts": CUTS}
    status, person = 200, person_of(request)
    try:
        pair = _pair(state, given, sides, person)
        shown |= {"pair": pair, "two": _two(pair)}
        may = person.role >= Role.ANNOTATOR and state.settings.ledger.exists()  # who may not judge sees no verdicts
        judged = state.ledger.readable.judgements.measurable(PROMPT) if may else 0
        shown["judged"] = min(judged, MOST)
        if measure and judged >= FEWEST:  # reads the whole ledger
            shown["pairs"] = _measured(state, pair, judged_queries(state.ledger.readable.judgements))
    except (EyespotError, Problem) as error:
        shown["wrong"], status = str(error), error.status if isinstance(error, Problem) else 422
    choices = {"encoder": state.snapshots.encoders, "adapt": [*state.adapters], "rerank": [*state.judges.named]}
    here = {name: value for name, value in sides.model_dump().items() if value}
    shown |= {"choices": choices, "sides": sides, "shown": SHOWN, "depth": DEPTH, "plain": _base(given)}
    shown |= {"measure_at": f"/sides?{_base(given).address()}&{urlencode(here | {'measure': 'true'})}#measures"}
    return page(request, "sides.html", status, asked=given, **shown, **helpers(given))


@router.get("/v1/sides", tags=["search"])
def sides(request: Request, state: State, given: Given, sides: Sides) -> Response:
    """Two rankings of one query: how much they share, their rank correlation, and the rank of each hit in both."""
    pair = _pair(state, given, sides if sides.chosen else _usual(state, given), person_of(request))
    two = _two(pair)
    ids = list(dict.fromkeys([*two.left, *two.right]))
    rank = [{id: at for at, id in enumerate(side, 1)} for side in two]
    answer = {
        "left": {"name": pair[0].name, "run": pair[0].result.id},
        "right": {"name": pair[1].name, "run": pair[1].result.id},
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


def _usual(state: AppState, given: SearchParams) -> SideParams:
    """What to compare where nothing was chosen: the judge, the adapter, another encoder, a judge, or ways to search."""
    encoder = given.encoder or state.snapshots.encoders[0]
    ways: dict[str, str | None] = {"left_encoder": encoder, "right_encoder": encoder}
    others = [one for one in state.snapshots.encoders if one != encoder]
    if given.rerank:
        ways |= {"right_rerank": given.rerank, "left_adapt": given.adapt, "right_adapt": given.adapt}
    elif adapter := given.adapt or next((name for name in state.adapters if _fits(state, name, encoder)), None):
        ways |= {"right_adapt": adapter}
    elif others:
        ways |= {"right_encoder": others[0]}
    elif state.judges.named:
        ways |= {"right_rerank": next(iter(state.judges.named))}
    else:
        ways |= {"left_by": "look", "right_by": "both"}
    return SideParams.model_validate(ways)


def _fits(state: AppState, adapter: str, encoder: str) -> bool:
    """Whether an adapter is made for the space of an encoder."""
    with suppress(Problem):
        refuse_misfit(adapter, state.adapters[adapter], state.snapshots.current(encoder).view.space)
        return True
    return False


def _pair(state: AppState, given: SearchParams, sides: SideParams, person: User) -> tuple[ComparedSide, ComparedSide]:
    if not given.something:
        raise UsageError("there is nothing to compare yet; write words, or begin with a search")
    return _side(state, given, sides.of("left"), person), _side(state, given, sides.of("right"), person)


def _side(state: AppState, given: SearchParams, ways: dict[str, str | None], person: User) -> ComparedSide:
    params = _base(given).model_copy(update=ways)
    result = state.searches.run(params, own_of(person))
    items = judged_items(state, given, items_of(result, result.slice(0, DEPTH)), person)
    parts = [ways["encoder"] or state.snapshots.encoders[0], f"through {ways['adapt']}" if ways["adapt"] else ""]
    parts += [{"look": "by look", "words": "by words", "both": "by words and look"}.get(ways["by"] or "", "")]
    parts += [f"in the order of {ways['rerank']}" if ways["rerank"] else ""]
    silent = ways["rerank"] and all(place.probability is None for place in result.judged.values())
    note = f"{ways['rerank']} has not looked at these photos yet, so nothing moved" if silent else ""
    return ComparedSide(", ".join(filter(None, parts)), params, result, items, note)


def _two(pair: tuple[ComparedSide, ComparedSide]) -> TwoRankings:
    left, right = ([str(item["id"]) for item in side.items] for side in pair)
    return TwoRankings(left, right)


def _measured(
    state: AppState, pair: tuple[ComparedSide, ComparedSide], queries: Sequence[tuple[Asking, dict[str, int]]]
) -> Any:
    """Both sides by the verdicts of people; queries that a side cannot search are ranked as empty."""

    def ranked(side: ComparedSide) -> Any:
        def order(query: Asking) -> list[str]:
            with suppress(EyespotError, Problem):
                words = side.params.model_copy(update={"q": format_query(query), "picture": None, "like": ()})
                # Verdicts that moved a ranking cannot measure it
                result = state.searches.run(words.model_copy(update={"unlike": (), "feedback": None, "grouped": False}))
                found = result.slice(0, DEEP)
                return [id for id, _ in result.snapshot.pictures(found.rows.tolist())]
            return []

        return order

    worded = [one for one in queries if all(term.text is not None for term in one[0].terms)]
    return measured(worded, ranked(pair[0]), ranked(pair[1]))


class TwoRankings(NamedTuple):
    """The ids of the first hits of two rankings, best first."""

    left: Sequence[str]
    right: Sequence[str]

    def overlap(self, k: int) -> float:
        """The share of the first k that both have."""
        first, second = self.left[:k], self.right[:k]
        return len({*first} & {*second}) / max(1, min(k, max(len(first), len(second))))

    @property
    def shared(self) -> list[str]:
        """What both have, in the order of the left one."""
        there = {*self.right}
        return [id for id in self.left if id in there]

    @property
    def tau(self) -> float | None:
        """Kendall's rank correlation of what both have; None for fewer than two."""
        place = {id: at for at, id in enumerate(self.right)}
        ranks = [place[id] for id in self.shared]
        pairs = len(ranks) * (len(ranks) - 1) // 2
        agreeing = sum(later > rank for at, rank in enumerate(ranks) for later in ranks[at + 1 :])
        return (2 * agreeing - pairs) / pairs if pairs else None

    def change(self, id: str) -> str:
        """What the right one did to a hit of the left one: `▲ 3`, `▼ 2`, `=`, or that only one has it."""
        if id not in self.left or id not in self.right:
            return "only left" if id in self.left else "only right"
        up = self.left.index(id) - self.right.index(id)
        return f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "="


def judged_queries(ledger: Judgements) -> list[tuple[Asking, dict[str, int]]]:
    """The queries on which people judged, and the verdicts of most: at least one photo relevant and one not."""
    queries = ledger.queries()
    last: dict[str, dict[str, dict[str, Judgement]]] = {}  # query, judge, image
    for row in ledger.rows():
        one = row.judgement
        if not one.judge.startswith(PERSON) or one.prompt != PROMPT:
            continue
        own = last.setdefault(one.query, {}).setdefault(one.judge, {})
        own.pop(one.image, None)  # a verdict that its judge withdrew counts no more
        if one.verdict is not None and one.verdict.grade is not None:
            own[one.image] = one
    grades = {
        query: {image: int(verdict_of(one) == "yes") for image, one in combined(people).items()}
        for query, people in last.items()
    }
    found = ((queries.get(digest), its) for digest, its in grades.items())
    return [(query, its) for query, its in found if query is not None and {0, 1} <= {*its.values()}][:MOST]


def measured(
    queries: Iterable[tuple[Asking, Mapping[str, int]]],
    left: Callable[[Asking], Sequence[str]],
    right: Callable[[Asking], Sequence[str]],
) -> list[Compared]:
    """Both sides by the verdicts, with the paired difference of each measure; nothing for fewer than two queries.

    Only photos that somebody judged count, in the order of each side (condensed lists, Sakai 2007): so neither side
    loses by photos that nobody saw.
    """
    grades: dict[str, dict[str, int]] = {}
    orders: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for number, (query, its) in enumerate(queries):
        name = str(number)
        grades[name] = dict(its)
        for side, ranked in zip(orders, (left, right), strict=True):
            side[name] = [id for id in ranked(query) if id in its]
    if len(grades) < FEWEST:
        return []
    scores = [evaluate(Run.from_orders(side), Qrels(grades), list(MEASURES)) for side in orders]
    return list(compare({"left": scores[0], "right": scores[1]}, Resampling(SAMPLES)).pairs)
