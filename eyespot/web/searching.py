"""The search page: one box, a picture dropped in, filters, a grid without an end, and each photo large."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, quote_plus

import numpy as np
from fastapi import APIRouter, Depends, Query, Request, Response

from eyespot.search.nearest import recall_of
from eyespot.types import EyespotError, NothingFound
from eyespot.web._items import cursor_of, existing_row, item_of, items_by_id, items_of, read_cursor, with_probability
from eyespot.web._judging import PROMPT, judge_key_of, judge_of, verdicts_on
from eyespot.web._pages import Link, page
from eyespot.web._problems import Problem
from eyespot.web._search_params import PAGE, Given, SearchParams, query_of
from eyespot.web._security import is_visitor, needs, person_of
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.counting import can_count
from eyespot.web.downloads import FORMATS, formats_for
from eyespot.web.filtering import active_filters, filter_units, to_drop
from eyespot.web.found.calibrated import WANTED, JudgeKey, known_by, to_judge
from eyespot.web.found.derived import counted, verdict_of
from eyespot.web.found.facets import facets_among, facets_of
from eyespot.web.found.results import RankedResult, nothing_of, photos_left
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.summary import places_of, summary_of, timeline_of
from eyespot.web.large import about_photo
from eyespot.web.reranking import judging_of

router = APIRouter(include_in_schema=False, dependencies=[Depends(needs(Role.READER))])
LINKS = (Link("Search", "/"),)
Cursor = Annotated[str | None, Query(max_length=60)]
SUMMED = 500  # hits of the summary
ALIKE = 300  # photos of a group
# What a large view does not list: shown elsewhere on it, or of no use to a reader.
UNLISTED = {"id", "video", "video_id", "path", "thumbnail", "rank", "score", "size", "mtime", "width", "height"}
UNLISTED |= {"title", "verdict", "probability", "others", "why"}


@dataclass(frozen=True)
class PageHits:
    """A stretch of the grid, and the address of the next one."""

    items: list[dict[str, Any]]
    next: str | None
    result: RankedResult | None = None  # None where the gallery is shown in its own order


@router.get("/")
def search_page(request: Request, state: State, given: Given, cursor: Cursor = None) -> Response:
    """The page with its form, and what was found."""
    snapshot, wrong, hits, person = None, None, PageHits([], None), person_of(request)
    more = _about(state, given, None, person)
    try:
        snapshot = state.snapshots.current(given.encoder)
        # The state of the judge in whose order the hits stand; before the hits, so that it is never ahead of them
        judging = None
        if given.rerank is not None and given.something:
            judging = judging_of(state, state.searches.run(given.plain, judge_key_of(person)), given, person)
        hits = _hits(state, given, cursor, person)
        more = _about(state, given, hits.result, person) | {"judging": judging}
    except (EyespotError, Problem) as error:  # the form stays, with what was typed and what is wrong with it
        wrong = error
    known = snapshot or state.snapshots.current()
    status = 200 if wrong is None or isinstance(wrong, NothingFound) else 422
    status = wrong.status if isinstance(wrong, Problem) else status
    about: dict[str, Any] = {"params": given, "hits": hits, "result": hits.result, "columns": known.kinds}
    about["recall"] = recall_of(hits.result.header) if hits.result else None
    about |= {"wrong": wrong and str(wrong), "formats": formats_for(state, person, FORMATS), "listed_as": None}
    with suppress(EyespotError):
        about["listed_as"] = state.ledger.readable.lists.find(given.list).name if given.list is not None else None
    about["unnamed"] = is_visitor(person, state.settings.access) and not given.something
    about |= _filters(state, known, given, wrong, judge_key_of(person))
    about |= {"encoders": state.snapshots.encoders, "adapters": list(state.adapters)}
    return page(request, "search.html", status, **about, **more, **helpers(given))


@router.get("/hits")
def more_hits(request: Request, state: State, given: Given, cursor: Annotated[str, Query(max_length=60)]) -> Response:
    """The next stretch of the grid, without a page around it."""
    hits = _hits(state, given, cursor, person_of(request))
    return page(request, "hits.html", params=given, hits=hits, result=hits.result, **helpers(given))


@router.get("/summary/{id}")
def summary(request: Request, state: State, id: str) -> Response:
    """The first hits in numbers, to be laid into the page or, without scripts, as a page of its own."""
    result = state.searches.results[id]
    found = items_of(result, result.slice(0, SUMMED))
    tallies = summary_of(found, facets_of(result.snapshot).coded)
    known = None if result.judged else state.searches.calibration(result, judge_key_of(person_of(request)))
    context: dict[str, Any] = {"tallies": tallies, "count": len(found), "total": result.total, "known": known}
    context |= {"timeline": timeline_of(found), "places": places_of(found), "params": result.params}
    if request.headers.get("hx-request"):
        return page(request, "summary.html", **context)
    return page(request, "summary_page.html", heading=result.heading, back=f"/?{result.params.address()}", **context)


@router.get("/alike/{id:path}")
def alike(request: Request, state: State, given: Given, id: str) -> Response:
    """The copies of a photo and the frames of its burst that pass the filter, to be laid into the grid."""
    snapshot = state.snapshots.current(given.encoder)
    row = existing_row(snapshot, id)
    numbers, mask = snapshot.groups.numbers, state.searches.mask(given, snapshot)
    rows = [row, *np.flatnonzero(mask & (numbers == numbers[row]) & (numbers >= 0)).tolist()]
    rows = list(dict.fromkeys(rows))[:ALIKE]
    items = judged_items(state, given, [item_of(facts) for facts in snapshot.facts(rows)], person_of(request))
    template = "hits.html" if request.headers.get("hx-request") else "alike.html"
    return page(request, template, params=given, hits=PageHits(items, None), result=None, member=True, **helpers(given))


@router.get("/photo/{id:path}")
def photo(
    request: Request, state: State, given: Given, id: str, rank: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """One photo large, with all that is known of it; as a page of its own or to be laid over the grid."""
    snapshot = state.snapshots.current(given.encoder)
    row = existing_row(snapshot, id)
    (item,) = judged_items(state, given, [item_of(snapshot.facts([row])[0])], person_of(request))
    facts = {name: value for name, value in item.items() if name not in UNLISTED and value is not None}
    template = "photo_inside.html" if request.headers.get("hx-request") else "photo.html"
    who = judge_of(person_of(request)).partition(":")[2]
    about = about_photo(request, state, given, item)
    return page(request, template, params=given, item=item, facts=facts, rank=rank, who=who, **about, **helpers(given))


@router.get("/spread", dependencies=[Depends(needs(Role.ANNOTATOR))])
def spread(request: Request, state: State, given: Given) -> Response:
    """The next photos to judge of a search, from its first ranks to its last."""
    params, person = given.unmoved, person_of(request)
    result = state.searches.run(params)
    ledger, judge_key = state.ledger.readable.judgements, (judge_of(person), PROMPT)
    wanted, verdicts = to_judge(result, ledger, judge_key)
    items = items_by_id(result, wanted)
    about: dict[str, Any] = {"known": known_by(result, ledger, judge_key), "verdicts": verdicts, "wanted": WANTED}
    about |= {"params": params, "back": given, "result": result, "items": items}
    return page(request, "spread.html", **about, **helpers(params))


# -- what is shown ----------------------------------------------------------------------------------------------


def _hits(state: AppState, given: SearchParams, cursor: str | None, person: User) -> PageHits:
    kind, seen = read_cursor(cursor) if cursor else ("", 0)
    if not given.something:
        snapshot = state.snapshots.current(given.encoder)
        mask = state.searches.mask(given, snapshot)
        rows = (seen + np.flatnonzero(mask[seen:])[: PAGE + 1]).tolist()
        if not rows and not seen:
            raise nothing_of(snapshot, given)
        items = [item_of(facts) | {"verdict": None} for facts in snapshot.facts(rows[:PAGE])]
        return PageHits(items, f"items.{rows[PAGE - 1] + 1}" if len(rows) > PAGE else None)
    # The result that is being paged through; searched anew if it is not kept any more
    try:
        result = state.searches.results[kind]
    except Problem:
        result = state.searches.run(given, judge_key_of(person))
    found = result.slice(seen, PAGE)
    known = None if result.judged else state.searches.calibration(result, judge_key_of(person))
    items = with_probability(items_of(result, found), known)
    return PageHits(judged_items(state, given, items, person), cursor_of(result, found), result)


def _filters(
    state: AppState, snapshot: Snapshot, given: SearchParams, wrong: Exception | None, judge_key: JudgeKey | None
) -> dict[str, Any]:
    """What can be ticked, what is on, and where nothing was found what to drop."""
    empty = isinstance(wrong, NothingFound)
    labels = tuple(one for one in given.label if one.partition("=")[0] in facets_of(snapshot).coded)
    read = given if wrong is None or empty else SearchParams(label=labels)  # ticks stay, whatever is wrong
    countable = state.searches.countable(read, judge_key)
    undated = photos_left(snapshot, read.model_copy(update={"undated": True}), countable)[1]
    rows, count = photos_left(snapshot, read, countable)
    if read.near is not None:  # the map shows what another box would find
        rows = photos_left(snapshot, read.without("near"), countable)[0]
    return {
        "empty_gallery": not snapshot.view.live.any(),
        "adding": state.indexer.progress,
        "count": 0 if wrong or given.something else count,
        "facets": facets_among(snapshot, rows, undated),
        "units": filter_units(snapshot, read, countable),
        "active": active_filters(given),
        "drop": to_drop(snapshot, given, countable) if empty else [],
        "cleared": given.unfiltered,
    }


def _about(state: AppState, given: SearchParams, result: RankedResult | None, person: User) -> dict[str, Any]:
    """How many hits are relevant, who could re-rank them, their tabs by verdict, and what could move the search."""
    judge_key = judge_key_of(person)
    about: dict[str, Any] = {"judging": None, "known": None, "can_spread": False, "judges": [], "wanted": WANTED}
    about |= {"tabs": None, "moves": None, "auditable": False, "countable": False}
    if result is None:
        return about
    plain = not result.judged  # a judge's order has no calibration
    about["known"] = state.searches.calibration(result, judge_key) if plain else None
    if result.query is None:
        return about
    about["judges"] = list(state.judges.named) if plain else []
    if judge_key is None:
        return about
    about |= {"can_spread": plain, "countable": plain and can_count(given)}
    whole = result if given.verdict is None else result.origin or result
    about["tabs"] = counted(whole, state.searches.judged_rows(whole, given, judge_key))
    # The same words taken in by the annotators' pages have the same verdicts
    (term, *others) = result.query.terms
    about["auditable"] = not others and term.weight == 1 and term.text == " ".join((given.q or "").split())
    if result.options.by == "words":
        return about
    return about | {"moves": {"whose": given.feedback, "sentence": str(result.moved.note) if result.moved else ""}}


def judged_items(
    state: AppState, given: SearchParams, items: Sequence[dict[str, Any]], person: User
) -> list[dict[str, Any]]:
    """The items with what this person has said of them; who cannot judge sees no verdicts."""
    if person.role < Role.ANNOTATOR or not (given.q or given.picture):
        return [{**item, "verdict": None} for item in items]
    query, ids = query_of(given, state.cache.uploads), [item["id"] for item in items]
    known = verdicts_on(state.ledger.readable.judgements, query, ids, judge_of(person))
    return [{**item, "verdict": verdict_of(known.get(item["id"]))} for item in items]


def helpers(given: SearchParams) -> dict[str, Any]:
    """What templates call."""
    here = given.address()  # once: a page has hundreds of links that differ in their last part
    given = given.plain  # another query has no verdicts yet
    by_look = None if given.by == "words" else given.by  # words know nothing of what is like a photo
    addresses = {"like": given.address(by=by_look), "unlike": given.address()}
    drawn = {*given.like, *given.unlike}

    def drawn_by(id: str, which: str) -> str:
        if id not in drawn:
            return f"/?{addresses[which]}&{which}={quote_plus(id)}"
        both = {"like": _without(given.like, id), "unlike": _without(given.unlike, id)}
        both[which] = (*both[which], id)
        return "/?" + given.address(**both, by=by_look if both["like"] else given.by)

    return {
        "alike_of": lambda id: f"/alike/{quote(id, safe='')}?{here}",
        "photo_of": lambda id, rank: f"/photo/{quote(id, safe='')}?{here}" + (f"&rank={rank}" if rank else ""),
        "with_like": lambda id: drawn_by(id, "like"),
        "with_unlike": lambda id: drawn_by(id, "unlike"),
        "only_like": lambda id: "/?" + given.address(q=None, picture=None, like=(id,), unlike=(), by=by_look),
        "without": lambda name, id=None: (
            "/?" + given.address(**{name: None if id is None else _without(getattr(given, name), id)})
        ),
        "can_judge": bool(given.q or given.picture),
    }


def _without(ids: Sequence[str], id: str) -> tuple[str, ...]:
    return tuple(one for one in ids if one != id)
