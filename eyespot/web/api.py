"""The API for programs, `/v1`: search, items, thumbnails, pictures to search with, judgements, runs."""

from __future__ import annotations

import time
from itertools import islice
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, File, Header, Path, Query, Request, Response, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from eyespot.ledger.judgements import PERSON, query_digest
from eyespot.search.nearest import recall_of
from eyespot.types import Judgement, Query as Asking, UsageError
from eyespot.web._items import cursor_of, existing_row, item_of, items_by_id, items_of, read_cursor, with_probability
from eyespot.web._judging import Mark, judge_key_of, judge_of, judged_now, judged_together, take_back
from eyespot.web._problems import Problem, leads_to
from eyespot.web._search_params import PAGE, Digest, Filters, Given, Name, SearchParams, Tab, Words, allowed, query_of
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.downloads import Format, download
from eyespot.web.found.calibrated import to_judge
from eyespot.web.found.facets import filters_of
from eyespot.web.pictures import is_digest, keep, upload_jpeg, video_response

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])
Limit = Annotated[int, Query(ge=1, le=500, description="How many.")]
Cursor = Annotated[str | None, Query(max_length=60, description="What “next” held; leave it out to begin.")]
Reader = Annotated[User, Depends(needs(Role.READER))]
Annotator = Annotated[User, Depends(needs(Role.ANNOTATOR))]
ThumbnailSize = Literal["128", "200", "320", "640", "1600"]
FOR_EVER = "private, max-age=31536000, immutable"
WEEK = "private, max-age=604800"


@router.get("/search", tags=["search"], responses=leads_to(200, "/v1/runs/{id}", id="run"))
def search(state: State, person: Reader, given: Given, cursor: Cursor = None, limit: Limit = PAGE) -> Response:
    """The best pictures for words, a picture, both, or items like some others; a cursor goes on in the same ranking."""
    begun = time.perf_counter()
    id, seen = read_cursor(cursor) if cursor else ("", 0)
    result = state.searches.results[id] if cursor else state.searches.run(given, judge_key_of(person))
    found = result.slice(seen, limit)
    known = None if result.judged else state.searches.calibration(result, judge_key_of(person))
    payload = {
        "query": result.heading,
        "encoder": result.snapshot.view.space.encoder,
        "by": result.options.by,
        "exact": result.exact,
        "recall": recall_of(result.header),
        "moved": result.moved and result.moved.fields,
        "total": result.total,
        "notes": result.notes,
        "run": result.id,
        "link": f"/?{result.params.address()}",
        "likely_above": None if result.origin else result.likely_above,
        "relevant": known and {"among": known.hits, **known.calibration.count._asdict()},
        "covariate": known and known.covariate,
        "took_ms": round((time.perf_counter() - begun) * 1000, 1),
        "items": with_probability(items_of(result, found), known),
        "next": cursor_of(result, found),
    }
    return JSONResponse(payload)


# -- items ------------------------------------------------------------------------------------------------------


@router.get("/items", tags=["items"])
def items(
    request: Request, state: State, given: Annotated[Filters, Query()], cursor: Cursor = None, limit: Limit = PAGE
) -> Response:
    """The gallery's items in its own order, under a filter."""
    params = allowed(request, SearchParams.model_validate(given.model_dump()))
    snapshot = state.snapshots.current(params.encoder)
    _, seen = read_cursor(cursor) if cursor else ("", 0)
    rows = (seen + np.flatnonzero(state.searches.mask(params, snapshot)[seen:])[: limit + 1]).tolist()
    found = [item_of(one) for one in snapshot.facts(rows[:limit])]
    return JSONResponse({"items": found, "next": f"items.{rows[limit - 1] + 1}" if len(rows) > limit else None})


@router.get("/items/{id:path}", tags=["items"])
def item(state: State, id: str) -> Response:
    """All that is known of an item."""
    snapshot = state.snapshots.current()
    return JSONResponse(item_of(snapshot.facts([existing_row(snapshot, id)])[0]))


@router.get("/columns", tags=["items"])
def columns(state: State, encoder: Annotated[str | None, Query(max_length=300)] = None) -> Response:
    """What the gallery can be filtered by: labels with counts, the span of dates, where pictures were taken."""
    snapshot = state.snapshots.current(encoder or None)
    payload = {"columns": list(snapshot.kinds), **filters_of(snapshot), "encoders": state.snapshots.encoders}
    payload |= {"adapters": list(state.adapters)}
    payload |= {"judges": [{"name": one.name, "paid": one.paid} for one in state.judges.named.values()]}
    return JSONResponse(payload)


@router.get("/thumbnails/{size}/{id:path}", tags=["items"], response_class=Response)
def thumbnail(state: State, size: ThumbnailSize, id: str, if_none_match: Annotated[str, Header()] = "") -> Response:
    """A small JPEG of an item, at most so many pixels wide and high, without EXIF; made once."""
    tag = f'"{state.cache.thumbnails.place(id, int(size)).stem}-{size}"'
    # The id is the digest of the picture, so what it names never changes; other ids may come to mean another picture.
    headers = {"ETag": tag, "Cache-Control": FOR_EVER if is_digest(id) else WEEK}
    if (
        tag in (one.strip().removeprefix("W/") for one in if_none_match.split(","))
        and state.snapshots.current().row_of(id) is not None
    ):
        return Response(status_code=304, headers=headers)
    return Response(
        state.cache.thumbnails.jpeg(state.snapshots.current(), id, int(size)), media_type="image/jpeg", headers=headers
    )


@router.get("/videos/{id}", tags=["items"], response_class=Response)
def video(state: State, person: Reader, id: Annotated[str, Path(max_length=100)]) -> Response:
    """The video of a frame, as its file is, with ranges, for whoever may open originals; `#t=` opens it at a time."""
    if person.role < (needed := state.settings.originals):
        raise Problem(403, f"videos are original files, for the role {needed.name.lower()}; ask the owner")
    snapshot = state.snapshots.current()
    return video_response(id, snapshot.places(existing_row(snapshot, id)))


@router.post(
    "/pictures", status_code=201, tags=["search"], responses=leads_to(201, "/v1/pictures/{digest}", digest="picture")
)
def upload(state: State, picture: Annotated[UploadFile, File()]) -> Response:
    """Bring a picture to search with; the answer's `picture` is the parameter of that name in a search."""
    digest = keep(state.cache.uploads, picture.file.read(state.settings.upload_bytes + 1), state.settings.upload_bytes)
    return JSONResponse({"picture": digest, "thumbnail": f"/v1/pictures/{digest}"}, 201)


@router.get("/pictures/{digest}", tags=["search"], response_class=Response)
def picture(state: State, digest: str) -> Response:
    """A picture that was brought, small."""
    return Response(
        upload_jpeg(state.cache.uploads, digest), media_type="image/jpeg", headers={"Cache-Control": FOR_EVER}
    )


# -- runs -------------------------------------------------------------------------------------------------------


class DownloadRequest(BaseModel):
    """How hits are to be written."""

    format: Format = "json"
    depth: int = Field(default=500, ge=1, le=100_000, description="How many hits.")
    verdict: Tab = Field(default=None, description="Only the hits with this verdict of yours, or with none.")
    all_columns: bool = Field(default=False, description="With positions and owners, which are left out unasked.")


@router.get("/runs/{id}", tags=["runs"], response_class=Response)
def run(
    request: Request, state: State, person: Reader, id: str, *, wanted: Annotated[DownloadRequest, Query()]
) -> Response:
    """The hits of a frozen result with your verdicts: a table, a run, an archive, or the photos themselves."""
    result = state.searches.results[id]
    if wanted.verdict is not None:
        result = state.searches.tab(result, wanted.verdict, judge_key_of(person))
    options = wanted.model_dump(exclude={"verdict"})
    return download(state, result, person, request.headers, **options)


@router.get("/runs/{id}/calibration", tags=["runs"])
def calibration(state: State, person: Reader, id: str) -> Response:
    """How many of the first hits are relevant by the verdicts there are, and what to judge to know it better."""
    result = state.searches.results[id].root
    if result.query is None:
        raise UsageError("verdicts are on words or a picture; search for some")
    judge_key = judge_key_of(person)
    known = state.searches.calibration(result, judge_key)
    payload: dict[str, Any] = {"run": result.id, "relevant": None, "by": None, "verdicts": 0}
    payload |= {"covariate": None, "likely": []}
    if known is not None:
        count = known.calibration.count
        payload["relevant"] = {"among": known.hits, **count._asdict(), "expected": round(count.expected, 2)}
        payload |= {"by": known.by, "verdicts": known.verdicts, "covariate": known.covariate}
        payload["likely"] = [{"likely": precision, **cut._asdict()} for precision, cut in known.cuts]
    # The photos to judge next, for whoever may judge
    ids = [] if judge_key is None else to_judge(result, state.ledger.readable.judgements, judge_key)[0]
    wanted = items_by_id(result, ids)
    payload["judge_next"] = [{"item": item["id"], "rank": item["rank"]} for item in wanted]
    return JSONResponse(payload)


# -- judgements -------------------------------------------------------------------------------------------------


class QueryTarget(BaseModel):
    """The words, the picture, or both that verdicts are on."""

    q: Words = None
    picture: Digest = None
    by: str | None = Field(None, max_length=80, description="Who says so, where no token does.")

    def query(self, state: AppState) -> Asking:
        """What is judged for; `Problem` where nothing is said."""
        query = query_of(SearchParams(q=self.q, picture=self.picture), state.cache.uploads)
        if query is None:
            raise Problem(422, "say what the picture was judged for, with q or picture")
        return query


class ItemTarget(QueryTarget):
    """An item and what a verdict on it is on."""

    item: str = Field(max_length=500)


class VerdictRequest(ItemTarget, extra="forbid"):
    """A verdict on one picture for words, a picture, or both."""

    verdict: Literal["yes", "no", "doubt"]
    rank: int | None = Field(None, ge=1, le=2**31, strict=True)


@router.post(
    "/judgements",
    status_code=201,
    tags=["judgements"],
    responses=leads_to(201, "/v1/judgements", query="query", by="by"),
)
def judge(state: State, person: Annotator, body: VerdictRequest) -> Response:
    """Say whether a picture is what the words or the picture ask for; it is on the disk when the answer comes."""
    query = body.query(state)
    existing_row(state.snapshots.current(), body.item)
    judge, judgements = judge_of(person, body.by), state.ledger.writable.judgements
    made = judged_now(judgements, query, body.item, body.verdict, rank=body.rank, judge=judge)
    return JSONResponse(_judgement_fields(made), 201)


class SeveralVerdicts(QueryTarget, extra="forbid"):
    """Verdicts on several pictures for words, a picture, or both."""

    marks: list[Mark] = Field(min_length=1, max_length=500)


@router.post("/judgements/several", tags=["judgements"])
def judge_several(state: State, person: Annotator, body: SeveralVerdicts) -> Response:
    """Verdicts on several pictures, kept all or none; a verdict that stands already is not kept a second time."""
    query, snapshot = body.query(state), state.snapshots.current()
    for mark in body.marks:
        existing_row(snapshot, mark.item)
    changed = judged_together(state.ledger.writable.judgements, query, body.marks, judge_of(person, body.by))
    return JSONResponse({"changed": changed})


@router.delete("/judgements", tags=["judgements"])
def withdraw(state: State, person: Annotator, about: Annotated[ItemTarget, Query()]) -> Response:
    """Take your verdict back. It counts no more; the ledger keeps it as history, with this word behind it."""
    judge = judge_of(person, about.by)
    made = take_back(state.ledger.writable.judgements, about.query(state), about.item, judge)
    if made is None:
        raise Problem(404, f"{judge.removeprefix(PERSON)} has no verdict on this item for this query to take back")
    return JSONResponse(_judgement_fields(made))


class JudgementFilter(BaseModel):
    """Which judgements, and from where on."""

    q: Words = Field(default=None, description="Only on these words.")
    picture: Digest = Field(default=None, description="Only on this picture, alone or with the words.")
    query: Name = Field(default=None, description="Only of this query, by its digest.")
    by: Name = Field(default=None, description="Only of this judge, such as person:ada.")
    cursor: Name = Field(default=None, description="What “next” held; leave it out to begin.")
    limit: int = Field(default=100, ge=1, le=500, description="How many.")


@router.get("/judgements", tags=["judgements"], dependencies=[Depends(needs(Role.ANNOTATOR))])
def judgements(state: State, which: Annotated[JudgementFilter, Query()]) -> Response:
    """What was judged, in the order in which it came."""
    _, seen = read_cursor(which.cursor) if which.cursor else ("", 0)
    rows = ((at, row.judgement) for at, row in enumerate(state.ledger.readable.judgements.rows(), 1) if at > seen)
    queries = {which.query} - {None}
    if which.q or which.picture:
        queries.add(query_digest(QueryTarget(q=which.q, picture=which.picture, by=None).query(state)))
    wanted = (one for one in rows if queries <= {one[1].query} and which.by in (None, one[1].judge))
    found = list(islice(wanted, which.limit + 1))
    records = [_judgement_fields(judgement) for _, judgement in found[: which.limit]]
    more = len(found) > which.limit
    return JSONResponse({"judgements": records, "next": f"judged.{found[which.limit - 1][0]}" if more else None})


def _judgement_fields(one: Judgement) -> dict[str, Any]:
    verdict = {name: getattr(one.verdict, name, None) for name in ("grade", "probability", "reason", "confidence")}
    facts = {"query": one.query, "item": one.image, "by": one.judge, "rank": one.rank, "at": one.at}
    return facts | verdict | {"failure": one.failure}


class ClickRequest(ItemTarget, extra="forbid"):
    """More like an item, or not it, for words, a picture, or both; null takes it back."""

    like: bool | None = Field(description="true: more like it; false: not it; null: takes the click back.")


@router.post("/clicks", tags=["judgements"])
def click(state: State, person: Annotator, body: ClickRequest) -> Any:
    """Remember that a search should go towards an item or away from it; it counts where `feedback` moves a search.

    A click is not a verdict: no judgement, qrels or estimate is made of it.
    """
    query = body.query(state)
    existing_row(state.snapshots.current(), body.item)
    digest = state.ledger.writable.judgements.enter([query])[query]
    state.ledger.writable.clicks.record(digest, judge_of(person, body.by), [body.item], body.like)
    return JSONResponse({"query": digest, "item": body.item, "like": body.like})
