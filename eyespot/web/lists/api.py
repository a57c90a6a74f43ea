"""`/v1/lists`: named lists of photos for programs and for the scripts of the pages, also to take along as files."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from eyespot.ledger.judgements import PERSON, query_digest
from eyespot.ledger.photo_lists import ListQuery, PhotoList
from eyespot.types import Judgement, NothingFound, Query as Asking, UsageError
from eyespot.web._items import item_of
from eyespot.web._judging import NOBODY, PROMPT, judge_of, majority, verdicts_by
from eyespot.web._ledgers import ServedLedger
from eyespot.web._problems import Problem, leads_to
from eyespot.web._search_params import Name, SearchParams, is_text, query_of
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.downloads import (
    FORMATS as RUN_FORMATS,
    PhotoFormat,
    csv_file,
    file_name,
    json_file,
    photos_response,
    readable_fields,
)
from eyespot.web.found.derived import verdict_of

router = APIRouter(prefix="/v1/lists", tags=["lists"], dependencies=[Depends(needs(Role.ANNOTATOR))])
Annotator = Annotated[User, Depends(needs(Role.ANNOTATOR))]
Text = Annotated[str, AfterValidator(is_text)]
Id = Annotated[str, Path(max_length=200, description="The list's id, or its name.")]
Ids = Annotated[list[Annotated[Text, Field(max_length=500)]], Field(max_length=20_000)]
Verdict = Literal["yes", "no", "doubt"]
ListFormat = Literal[PhotoFormat, "csv", "json"]
FORMATS = {name: words for name, words in RUN_FORMATS.items() if name != "trec"}
MOST = 200_000  # photos of a list
SEVERAL = ("like", "unlike", "label")  # parameters that may be repeated
Address = Annotated[Text, Field(max_length=8000)]


class Photos(BaseModel, extra="forbid"):
    """Photos by id, and those with a verdict on a search, which is given as the part of its address behind the `?`."""

    items: Ids = Field(default_factory=list, description="Ids of items, in their order.")
    query: Address | None = Field(None, description="The search that they come from, such as `q=heron`.")
    verdict: Verdict | None = Field(None, description="Also the photos with this verdict on the words of `query`.")
    everybody: bool = Field(False, description="By the verdicts of all people, and not by yours alone.")


class NewList(Photos):
    """A list to be made."""

    name: Text = Field(max_length=300)


class ListChange(Photos):
    """What changes: each part may be left out."""

    name: Text | None = Field(None, max_length=300)
    remove: Ids = Field(default_factory=list, description="Ids of items that come off the list.")
    update: bool = Field(False, description="Also take off photos that do not have this `verdict` any more; own lists.")


@router.get("")
def lists(
    state: State, part: Annotated[Name, Query(description="Only those with this in name or words.")] = None
) -> Response:
    """All lists, the latest first."""
    found = state.ledger.readable.lists.all(part or "")
    return JSONResponse({"lists": [fields_of(state.ledger, one) for one in found]})


@router.post("", status_code=201, responses=leads_to(201, "/v1/lists/{id}", id="list"))
def make(state: State, person: Annotator, wanted: NewList) -> Response:
    """Make a list of photos by id, by verdict, or both; ids that the gallery has not are named in `unknown`."""
    photos, unknown, queries = gathered(state, person, wanted)
    if not photos:
        raise Problem(422, "there is no photo to put on a list; choose some, or judge some first")
    made = state.ledger.writable.lists.make(wanted.name, maker_of(person), photos, queries)
    return JSONResponse(fields_of(state.ledger, made) | {"unknown": unknown}, 201)


@router.get("/{id}")
def list_(
    state: State,
    id: Id,
    first: Annotated[int, Query(ge=0, le=10**6, description="Photos to pass over.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="How many.")] = 100,
) -> Response:
    """A list with a stretch of its photos and what everybody said of them."""
    one = state.ledger.readable.lists.find(id)
    items, _, following = stretch_of(state, one.id, first, limit)
    return JSONResponse(fields_of(state.ledger, one) | {"items": items, "next": following})


@router.patch("/{id}")
def change(state: State, person: Annotator, id: Id, wanted: ListChange) -> Response:
    """Rename a list, add photos to it, take photos off it.

    An update is for whoever made the list: it answers 409 for the list of somebody else.
    """
    store = state.ledger.writable.lists
    one = store.find(id)
    if wanted.update and one.maker != maker_of(person):
        raise Problem(409, f"the list {one.name!r} is {one.maker}'s; choose another name for yours")
    photos, unknown, queries = gathered(state, person, wanted)
    remove = list(wanted.remove)
    if wanted.update:  # what was judged and has not the wanted verdict any more
        query = query_of(params_of(wanted.query), state.cache.uploads) if wanted.query else None
        if query is None or wanted.verdict is None:
            raise UsageError("an update goes by verdicts; give the search in `query`, such as q=heron, and a `verdict`")
        whose, listed = None if wanted.everybody else person, state.ledger.readable.lists.photos(one.id)
        remove += judged_otherwise(state.ledger, query, whose, wanted.verdict, listed)
    if wanted.name is not None:
        one = store.set_name(one.id, wanted.name)
    if photos or queries:
        one = store.add(one.id, photos, queries)
    full = one.photos
    if remove:
        one = store.remove(one.id, remove)
    return JSONResponse(fields_of(state.ledger, one) | {"unknown": unknown, "removed": full - one.photos})


@router.delete("/{id}", status_code=204, response_class=Response)
def delete(state: State, person: Annotator, id: Id) -> Response:
    """Forget a list and its link, for whoever made it and for the owner; photos and verdicts stay."""
    state.ledger.writable.lists.delete(list_to_manage(state, person, id).id)
    return Response(status_code=204)


class LinkTerms(BaseModel, frozen=True, extra="forbid"):
    """What a link to a list shows besides the photos, and for whom; positions and owners stay unless it says so."""

    verdicts: bool = Field(default=False, description="Everybody's verdicts.")
    facts: bool = Field(default=False, description="Dates, cameras and labels, and a timeline.")
    places: bool = Field(default=False, description="Where the photos were taken, and a map.")
    download: bool = Field(default=False, description="A zip of the photos, at most 1,600 pixels, without EXIF.")
    days: int | None = Field(default=None, ge=1, le=3650, description="How long it leads there; for good if left out.")
    password: str = Field(default="", max_length=200, description="What whoever opens it has to type.")

    def link(self, state: AppState, id: str) -> str:
        """The address of a new link to a list under these terms."""
        lists = state.ledger.writable.lists
        token = lists.link(id)
        terms = self.model_dump(exclude={"days", "password"})
        terms["until"] = self.days and time.time() + self.days * 86_400
        terms["password"] = self.password and hashed(self.password, token)
        lists.set_terms(token, json.dumps(terms))
        return f"/shared/{token}"


def hashed(password: str, token: str) -> str:
    """What is stored of a password: slow to try, and another one for each link, whose token is its salt."""
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=token.encode(), n=1 << 14, r=8, p=1).hex()


USUAL = LinkTerms(verdicts=True)


@router.post("/{id}/link", status_code=201)
def link(state: State, person: Annotator, id: Id, terms: LinkTerms = USUAL) -> Response:
    """A link for reading without a token; the one before it ends. It is told this once, only its digest is kept."""
    one = list_to_manage(state, person, id)
    return JSONResponse({"link": terms.link(state, one.id)}, 201)


@router.delete("/{id}/link", status_code=204, response_class=Response)
def unlink(state: State, person: Annotator, id: Id) -> Response:
    """Take the link back: it leads nowhere from now on."""
    state.ledger.writable.lists.unlink(list_to_manage(state, person, id).id)
    return Response(status_code=204)


class ListDownload(BaseModel):
    """How a list is to be written."""

    format: ListFormat = "zip"
    verdict: Verdict | None = None
    all_columns: bool = False


@router.get("/{id}/download", response_class=Response)
def download(
    request: Request, state: State, person: Annotator, id: Id, *, wanted: Annotated[ListDownload, Query()]
) -> Response:
    """The list as a file; with `verdict` only the photos of which most people said so."""
    one = state.ledger.readable.lists.find(id)
    every, _, _ = stretch_of(state, one.id, 0, MOST)
    items = [item for item in every if wanted.verdict in (None, majority(item["verdicts"].values()))]
    spelled = ["; ".join(f"{name}: {verdict}" for name, verdict in item["verdicts"].items()) for item in items]
    every = [readable_fields(item, wanted.all_columns) for item in items]
    shown = [fields | {"verdicts": verdicts} for fields, verdicts in zip(every, spelled, strict=True)]
    name = file_name(one.name)
    if wanted.format == "csv":
        return csv_file(shown, name)
    if wanted.format == "json":
        return json_file({"name": one.name, "items": items if wanted.all_columns else shown}, name)
    how: dict[str, Any] = {"name": name, "heading": one.name, "head": request.headers, "kind": wanted.format}
    return photos_response(state, state.snapshots.current(), shown, person, **how)


# -- what both the API and the pages do -----------------------------------------------------------------------------


def maker_of(person: User) -> str:
    """Under which name somebody makes lists."""
    return judge_of(person).partition(":")[2]


def list_to_manage(state: AppState, person: User, id: str) -> PhotoList:
    """A list that somebody may delete or show to others: their own, or any for the owner."""
    one = state.ledger.writable.lists.find(id)
    if person.role < Role.OWNER and one.maker != maker_of(person):
        raise Problem(403, f"this list is {one.maker}'s; ask them, or the gallery's owner")
    return one


def gathered(state: AppState, person: User, wanted: Photos) -> tuple[list[str], list[str], list[ListQuery]]:
    """The photos that are wanted, the ids that the gallery has not, and the queries that they come from."""
    params = params_of(wanted.query) if wanted.query else None
    query = None if params is None else query_of(params, state.cache.uploads)
    ids = list(wanted.items)
    if wanted.verdict is not None:
        if query is None:
            raise UsageError("verdicts are on words or a picture; give the search in `query`, such as q=heron")
        everybody = "everybody" if wanted.everybody else None
        last = verdicts_by(state.ledger.readable.judgements, query, (judge_of(person), PROMPT), everybody)
        judged = [one for one in last.values() if verdict_of(one) == wanted.verdict]
        judged.sort(key=lambda one: (math.inf if one.rank is None else one.rank, one.at))  # as they were seen
        if not judged and not ids and not getattr(wanted, "update", False):
            raise NothingFound(f"nobody said {wanted.verdict} here yet; judge some photos first")
        ids += [one.image for one in judged]
    ids = list(dict.fromkeys(ids))
    here = (state.snapshots.current().rows_by_id(ids) >= 0).tolist()
    there = [id for id, known in zip(ids, here, strict=True) if known]
    unknown = [id for id, known in zip(ids, here, strict=True) if not known]
    if params is None or query is None:
        return there, unknown, []
    # As a list keeps them, known to the ledger
    digest = state.ledger.writable.judgements.enter([query])[query]
    return there, unknown, [ListQuery(digest, params.q or "a picture", params.plain.address())]


def params_of(address: str) -> SearchParams:
    """The search that an address, or the part of it behind the question mark, asks for; `UsageError` for none."""
    # A "?" within the search itself is part of its words
    search = address.partition("?")[2] if address.startswith(("/", "http:", "https:")) else address.removeprefix("?")
    try:
        given = parse_qs(search, max_num_fields=500).items()
        return SearchParams.model_validate({name: every if name in SEVERAL else every[-1] for name, every in given})
    except (ValidationError, ValueError):
        raise UsageError("`query` is not a search; give what stands behind the ? in a search's address") from None


def judged_otherwise(
    ledger: ServedLedger, query: Asking, person: User | None, verdict: str, images: Sequence[str]
) -> list[str]:
    """Those of these photos that somebody judged for a query, and that have not this verdict any more; None: everybody.

    What nobody judged for the query is not among them: it came onto a list by another way.
    """
    judgements, judge_key = ledger.readable.judgements, (NOBODY if person is None else judge_of(person), PROMPT)
    last = verdicts_by(judgements, query, judge_key, "everybody" if person is None else None)
    ever = judgements.judged_images(query_digest(query), PROMPT)
    judged = set[str]().union(*(images for judge, images in ever.items() if person is None or judge == judge_key[0]))
    standing = {image for image, one in last.items() if verdict_of(one) == verdict}
    return [image for image in images if image in judged and image not in standing]


def verdicts_of(ledger: ServedLedger, id: str, images: Sequence[str]) -> dict[str, dict[str, str]]:
    """What everybody last said of these photos on a list's queries: image → name → yes, no or doubt."""
    lists = ledger.readable.lists
    words: list[tuple[float, str, Judgement]] = []
    for query in lists.queries(id):
        for judge, verdicts in ledger.readable.judgements.people(query.digest, PROMPT, images).items():
            words += [(one.at, judge.removeprefix(PERSON), one) for one in verdicts.values()]
    found: dict[str, dict[str, str]] = {}
    for _, name, one in sorted(words, key=lambda word: word[0]):
        found.setdefault(one.image, {})[name] = str(verdict_of(one))
    return found


def fields_of(ledger: ServedLedger, one: PhotoList) -> dict[str, Any]:
    """A list as programs read it, without its photos."""
    queries = [{"words": query.words, "link": f"/?{query.address}"} for query in ledger.readable.lists.queries(one.id)]
    facts = {"list": one.id, "name": one.name, "photos": one.photos, "by": one.maker, "at": one.at}
    return facts | {"linked": one.linked, "queries": queries, "page": f"/lists/{one.id}", "search": f"/?list={one.id}"}


def stretch_of(
    state: AppState, id: str, first: int, count: int
) -> tuple[list[dict[str, Any]], dict[str, int], int | None]:
    """At most `count` photos of a list with everybody's verdicts, their places by id, and what to pass over next.

    Photos that left the gallery are left out, so that a stretch may be shorter, and even empty, before the end.
    """
    snapshot = state.snapshots.current()
    listed = state.ledger.readable.lists.places(id, first, count + 1)
    following = first + count if len(listed) > count else None
    places = {one.image: one.place for one in listed[:count]}
    rows = snapshot.rows_by_id(list(places))
    facts = [item_of(one) for one in snapshot.facts(rows[rows >= 0].tolist())] if (rows >= 0).any() else []
    verdicts = verdicts_of(state.ledger, id, list(places))
    return [one | {"verdicts": verdicts.get(one["id"], {})} for one in facts], places, following
