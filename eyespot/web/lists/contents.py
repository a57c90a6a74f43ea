"""What lists are made of and what they show: photos, the queries that they came from, everybody's verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from pydantic import ValidationError

from eyespot.ledger.judgements import PERSON, query_digest
from eyespot.ledger.photo_lists import ListQuery, PhotoList
from eyespot.types import Judgement, Query, UsageError
from eyespot.web._items import item_of
from eyespot.web._judging import NOBODY, PROMPT, judge_of, verdicts_by
from eyespot.web._search_params import SearchParams, query_of
from eyespot.web._settings import User
from eyespot.web._state import AppState
from eyespot.web.found.derived import verdict_of

SEVERAL = ("like", "unlike", "label")  # parameters that may be repeated


def params_of(address: str) -> SearchParams:
    """The search that an address, or the part of it behind the question mark, asks for; `UsageError` for none."""
    # A "?" within the search itself is part of its words
    search = address.partition("?")[2] if address.startswith(("/", "http:", "https:")) else address.removeprefix("?")
    given = parse_qs(search, max_num_fields=500)
    try:
        return SearchParams.model_validate(
            {name: values if name in SEVERAL else values[-1] for name, values in given.items()}
        )
    except (ValidationError, ValueError):
        raise UsageError("`query` is no search; give what stands behind the ? in a search's address") from None


def list_query(state: AppState, params: SearchParams) -> ListQuery | None:
    """The words and the picture of a search as a list keeps them, known to the ledger; None for neither."""
    query = query_of(params, state.cache.uploads)
    if query is None:
        return None
    digest = state.ledger.writable.judgements.enter([query])[query]
    return ListQuery(digest, params.q or "a picture", params.plain.address())


def sort_out(state: AppState, ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Ids that the gallery has, and those that it has not."""
    wanted = list(dict.fromkeys(ids))
    here = (state.snapshots.current().rows_by_id(wanted) >= 0).tolist()
    there = [id for id, known in zip(wanted, here, strict=True) if known]
    return there, [id for id, known in zip(wanted, here, strict=True) if not known]


# -- verdicts -----------------------------------------------------------------------------------------------------


def judged_as(state: AppState, query: Query, person: User | None, verdict: str) -> list[str]:
    """The photos with this verdict of somebody on a query, by the rank at which they were seen; None: everybody."""
    own = (NOBODY if person is None else judge_of(person), PROMPT)
    verdicts = verdicts_by(state.ledger.readable.judgements, query, own, "everybody" if person is None else None)
    found = [one for one in verdicts.values() if verdict_of(one) == verdict]
    return [one.image for one in sorted(found, key=lambda one: (math.inf if one.rank is None else one.rank, one.at))]


def judged_otherwise(
    state: AppState, query: Query, person: User | None, verdict: str, images: Sequence[str]
) -> list[str]:
    """Those of these photos that somebody judged for a query, and that have not this verdict any more; None: everybody.

    What nobody judged for the query is not among them: it came onto a list by another way.
    """
    ledger = state.ledger.readable.judgements
    own = (NOBODY if person is None else judge_of(person), PROMPT)
    last = verdicts_by(ledger, query, own, "everybody" if person is None else None)
    ever = ledger.judged_images(query_digest(query), PROMPT)
    judged = set[str]().union(*(images for judge, images in ever.items() if person is None or judge == own[0]))
    standing = {image for image, one in last.items() if verdict_of(one) == verdict}
    return [image for image in images if image in judged and image not in standing]


def verdicts_of(state: AppState, id: str, images: Sequence[str]) -> dict[str, dict[str, str]]:
    """What everybody last said of these photos on a list's queries: image → name → yes, no or doubt."""
    lists = state.ledger.readable.lists
    words: list[tuple[float, str, Judgement]] = []
    for query in lists.queries(id):
        for judge, verdicts in state.ledger.readable.judgements.people(query.digest, PROMPT, images).items():
            words += [(one.at, judge.removeprefix(PERSON), one) for one in verdicts.values()]
    found: dict[str, dict[str, str]] = {}
    for _, name, one in sorted(words, key=lambda word: word[0]):
        found.setdefault(one.image, {})[name] = str(verdict_of(one))
    return found


# -- what is shown ------------------------------------------------------------------------------------------------


def fields_of(state: AppState, one: PhotoList) -> dict[str, Any]:
    """A list as programs read it, without its photos."""
    queries = [
        {"words": query.words, "link": f"/?{query.address}"} for query in state.ledger.readable.lists.queries(one.id)
    ]
    facts = {"list": one.id, "name": one.name, "photos": one.photos, "by": one.maker, "at": one.at}
    return facts | {"linked": one.linked, "queries": queries, "page": f"/lists/{one.id}", "search": f"/?list={one.id}"}


class ListStretch(NamedTuple):
    """A stretch of a list's photos, their places by id, and what to pass over for the next one; None at the end."""

    items: list[dict[str, Any]]
    places: dict[str, int]
    next: int | None


def stretch_of(state: AppState, id: str, first: int, count: int) -> ListStretch:
    """At most `count` photos of a list with everybody's verdicts.

    Photos that left the gallery are left out, so that a stretch may be shorter, and even empty, before the end.
    """
    snapshot = state.snapshots.current()
    listed = state.ledger.readable.lists.places(id, first, count + 1)
    following = first + count if len(listed) > count else None
    places = {one.image: one.place for one in listed[:count]}
    rows = snapshot.rows_by_id(list(places))
    facts = [item_of(one) for one in snapshot.facts(rows[rows >= 0].tolist())] if (rows >= 0).any() else []
    verdicts = verdicts_of(state, id, list(places))
    return ListStretch([one | {"verdicts": verdicts.get(one["id"], {})} for one in facts], places, following)
