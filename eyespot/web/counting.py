"""Count by group: photos of a search are drawn and judged blind, and their verdicts give shares with intervals."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query as Parameter, Request, Response
from pydantic import BaseModel

from eyespot.search.estimates.charts import cells
from eyespot.search.estimates.frame import DATES
from eyespot.search.estimates.study import CollectionEstimate, estimate_of_verdicts
from eyespot.search.estimates.wording import advice, few_looks, group_note, pair_sentence
from eyespot.settings.estimate import EstimateSettings
from eyespot.settings.search import FilterSettings
from eyespot.types import Query, UsageError
from eyespot.web._items import existing_row, item_of
from eyespot.web._judging import PROMPT, judge_of, verdicts_on
from eyespot.web._pages import page
from eyespot.web._search_params import Given, Name, SearchParams, query_of
from eyespot.web._security import needs, person_of
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State
from eyespot.web.downloads import file_name, zip_file
from eyespot.web.found.derived import verdict_of
from eyespot.web.found.facets import facets_of

router = APIRouter(include_in_schema=False, dependencies=[Depends(needs(Role.ANNOTATOR))])
SHOWN = 24  # photos on a page
BEHIND = 60  # photos behind a bar
UNCOUNTED = ("picture", "like", "unlike", "list", "region", "feedback", "rerank")  # by these no photos are drawn


class CountParams(BaseModel):
    """By what photos are counted, all as one group without it, and how many are looked at; None: nothing is drawn."""

    group: Name = None
    looks: Literal["60", "120", "240"] | None = None

    @property
    def address(self) -> str:
        """The parameters behind those of a search."""
        return f"&group={self.group or ''}&looks={self.looks}"


Counted = Annotated[CountParams, Parameter()]


@router.get("/count")
def count(request: Request, state: State, given: Given, counted: Counted) -> Response:
    """What to count by; then the next photos to judge, and the answer of each round that is whole."""
    _query(state, given)
    about: dict[str, Any] = {"params": given, "counted": counted, "items": (), "made": None}
    facets = facets_of(state.snapshots.current(given.encoder))
    about["columns"] = [*(DATES if facets.first else ()), *(["cell"] if facets.map else ()), *facets.coded]
    if counted.looks is not None:
        about |= _answer_of(_estimate(state, given, counted, judge_of(person_of(request))), int(counted.looks))
    return page(request, "count.html", **about, note=group_note)


@router.get("/count/photo/{id:path}")
def blind_photo(request: Request, state: State, given: Given, id: str) -> Response:
    """A photo large, without its name, date, place and rank."""
    snapshot, query = state.snapshots.current(given.encoder), _query(state, given)
    item = item_of(snapshot.facts([existing_row(snapshot, id)])[0])
    known = verdicts_on(state.ledger.readable.judgements, query, [id], judge_of(person_of(request)))
    return page(request, "count_photo.html", item=item, verdict=verdict_of(known.get(id)))


@router.get("/count/answer.zip")
def answer(request: Request, state: State, given: Given, counted: Counted) -> Response:
    """The table, the figure, the page, the methods, and the files that the same answer is made of again."""
    made = _estimate(state, given, counted, judge_of(person_of(request)))
    name = file_name(f"{given.q} by {counted.group or 'photos'}")
    with TemporaryDirectory(prefix="eyespot-") as folder:
        made.write_table(Path(folder) / "answer.csv")
        made.write_html(Path(folder) / "answer.html")
        made.write_figure(Path(folder) / "answer.svg")
        with suppress(UsageError):  # no font for the letters of a group
            made.write_figure(Path(folder) / "answer.png")
        (Path(folder) / "methods.txt").write_text(made.methods, "utf-8")
        return zip_file(Path(folder), name)


def can_count(given: SearchParams) -> bool:
    """Whether photos of a search can be drawn: it is of words alone, in the order of its scores."""
    return bool(given.q) and not any(getattr(given, name) for name in UNCOUNTED)


def _query(state: AppState, given: SearchParams) -> Query:
    query = query_of(given, state.cache.uploads)
    if query is None or not can_count(given):
        raise UsageError("photos are counted by words and filters alone; take pictures, lists and re-ranking out")
    return query


def _estimate(state: AppState, given: SearchParams, counted: CountParams, judge: str) -> CollectionEstimate:
    snapshot, query = state.snapshots.current(given.encoder), _query(state, given)
    filters = given.model_dump(include=set(FilterSettings.model_fields))
    settings = EstimateSettings(by=counted.group, looks=int(counted.looks or 60), ledger=state.ledger.path, **filters)
    return estimate_of_verdicts(snapshot.collection, query, settings, state.ledger.readable.judgements, (judge, PROMPT))


def _answer_of(made: CollectionEstimate, looks: int) -> dict[str, Any]:
    """What the page shows of an estimate: photos to judge, how far they are, bars, and the photos behind each bar."""
    plan, ids = made.plan, made.frame.ids
    planned, seen = min(looks, len(ids)), len(plan.units)
    behind: dict[Any, list[str]] = {label: [] for label in made.groups}
    for at, verdict in zip(plan.units.tolist(), made.verdicts.tolist(), strict=True):
        if verdict == 1:
            behind[plan.labels[plan.group[at]]].append(ids[at])
    return {
        "items": made.waiting[:SHOWN],
        "few": few_looks(plan, planned) if made.waiting else "",
        "planned": planned,
        "judged": planned - len(made.waiting),
        "next_round": next((end for end in (60, 120, 240) if seen < end < planned), planned),
        "made": made if seen else None,
        "map": cells(made) if seen else None,
        "behind": {label: several[:BEHIND] for label, several in behind.items()},
        "advice": (*made.notes, *advice(made)),
        "claims": [sentence for pair in made.pairs if (sentence := pair_sentence(made, pair))],
    }
