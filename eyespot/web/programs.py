"""What other programs send elsewhere, too: `/v1/embeddings` in OpenAI's shape, `/v1/rerank` in Jina's and Cohere's,
`/v1/search` with many queries.

Pictures come in the request, as the clients of vLLM, Jina, Voyage and Cohere send them. No address is ever fetched.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.search.embedding import embed
from eyespot.settings.search import Way
from eyespot.types import Mask, Query, Term, UsageError, Vectors
from eyespot.web._items import item_of
from eyespot.web._problems import Problem, faults_text
from eyespot.web._search_params import Digest, Name, SearchParams, Words, is_text, query_of, refuse
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State
from eyespot.web.found.results import mask_of, nothing_of
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures import SMALL

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])
MOST, MOST_PICTURES, MOST_QUERIES = 2048, 128, 500  # inputs and pictures of a request, as OpenAI has it; queries
Text = Annotated[str, Field(max_length=1000), AfterValidator(is_text)]
TOGETHER = 32  # inputs after which others have their turn with the encoder

# -- vectors ------------------------------------------------------------------------------------------------------


class EmbeddingRequest(BaseModel):
    """Texts and pictures to be embedded, in the shape of any one of those services."""

    input: str | list[Any] = Field([], description="A text, or texts and pictures (OpenAI, Jina).")
    messages: list[Any] = Field([], description="Messages that get one vector together (vLLM).")
    inputs: list[Any] = Field([], description="Inputs of several parts (Voyage, Cohere).")
    texts: list[str] = Field([], description="Texts (Cohere).")
    images: list[str] = Field([], description="Pictures as data: addresses (Cohere).")
    model: Name = Field(None, description="The encoder, as /v1/columns lists them; else the first of them.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="Refused where the vectors have another length.")

    def queries(self, folder: Path, most: int) -> list[Query]:
        """A query for each input, its pictures written to a folder; `Problem` for none, too many, and what is none."""
        single = self.input if isinstance(self.input, list) else [self.input]
        alone = [*single, *self.texts, *({"image": one} for one in self.images), *self.inputs]
        parts = [list(_parts(one)) for one in (*alone, *([self.messages] if self.messages else []))]
        pictures = sum(is_picture for several in parts for is_picture, _ in several)
        if len(parts) > MOST or pictures > MOST_PICTURES:
            raise Problem(413, f"at most {MOST:,} inputs with {MOST_PICTURES} pictures at once; send several requests")
        if not parts or not all(several and all(data.strip() for _, data in several) for several in parts):
            raise Problem(422, "there is nothing to embed, or an input is empty; give texts, or pictures in base64")
        places = (folder / str(at) for at in range(pictures))

        def term_of(is_picture: bool, data: str) -> Term:
            return Term(1.0, image=_picture_file(data, next(places), most)) if is_picture else Term(1.0, text=data)

        return [Query(f"input {at}", tuple(starmap(term_of, several))) for at, several in enumerate(parts)]


def _parts(content: Any, depth: int = 0) -> Iterator[tuple[bool, str]]:
    """The texts and pictures (True) of an input, however a service nests them."""
    match content:
        case str(text) | {"text": str(text)}:
            yield False, text
        case {"image": str(data)} | {"image_base64": str(data)} | {"image_url": str(data) | {"url": str(data)}}:
            yield True, data
        case {"content": list() | str() as inside}:
            yield from _parts(inside, depth + 1)
        case list() if depth < 4:
            for one in content:
                yield from _parts(one, depth + 1)
        case _:
            raise Problem(422, "an input is neither a text nor a picture; give texts, {text: …} or {image: base64}")


def _picture_file(picture: str, file: Path, most: int) -> Path:
    """The file of a picture in base64 or as a `data:` address; `Problem` for what is too large or no picture."""
    head, comma, data = picture.rpartition(",")
    if not (head.startswith("data:") if comma else "://" not in data[:20]):
        raise Problem(422, "no address is fetched here; send the picture itself, as data:image/jpeg;base64,…")
    if len(data) > most * 4 // 3 + 4:
        raise Problem(413, f"a picture has more than {most >> 20} MiB; send a smaller one")
    try:
        file.write_bytes(base64.b64decode(data, validate=True))
        thumbnail(file.read_bytes(), SMALL)
    except (ValueError, BadPicture) as error:
        raise Problem(422, f"this is not a picture in base64: {getattr(error, 'reason', error)}") from None
    return file


@router.post("/embeddings", tags=["search"])
def embeddings(state: State, wanted: EmbeddingRequest) -> Response:
    """Unit vectors of texts and pictures, one for each input, as OpenAI answers; pictures have no number of tokens."""
    encoder, vectors, usage = _embedded(state, wanted)
    rows: list[Any] = vectors.tolist()
    if wanted.encoding_format == "base64":
        rows = [base64.b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return JSONResponse({"object": "list", "data": data, "model": encoder, "usage": usage})


def _embedded(state: AppState, wanted: EmbeddingRequest) -> tuple[str, Vectors, dict[str, int]]:
    """The encoder's name, the unit vector of each input, (inputs, dim), and the tokens that were read."""
    if wanted.model is not None and wanted.model not in state.snapshots.encoders:
        raise Problem(404, f"no model {wanted.model!r} here; there are: {', '.join(state.snapshots.encoders)}")
    snapshot = state.snapshots.current(wanted.model)
    space = snapshot.view.space
    if wanted.dimensions not in (None, space.dim):
        raise Problem(422, f"vectors of {space.encoder} have {space.dim} dimensions; leave out `dimensions`")
    with TemporaryDirectory(prefix="eyespot-embed-") as folder:
        queries = wanted.queries(Path(folder), state.settings.upload_bytes)
        texts = [term.text for query in queries for term in query.terms]  # None for a picture
        for text in texts:
            refuse(text, state.settings.refused)
        vectors = _vectors(snapshot, queries)
    counts = snapshot.ask_encoder(lambda encoder: [None if one is None else encoder.tokens_in(one) for one in texts])
    usage = dict.fromkeys(("prompt_tokens", "total_tokens"), sum(filter(None, counts)))  # clients expect both
    usage |= {"uncounted": counts.count(None)} if None in counts else {}
    return space.encoder, vectors, usage


class DocumentsRequest(BaseModel):
    """Texts and pictures to be ranked for a query, as Jina and Cohere have it."""

    query: str | dict[str, Any] = Field(description="A text, or a picture: {image: base64}.")
    documents: list[Any] = Field(min_length=1, description="Texts, or pictures: {image: base64}.")
    top_n: int | None = Field(None, ge=1, description="Only so many of the best.")
    model: Name = Field(None, description="The encoder, as /v1/columns lists them; else the first of them.")


@router.post("/rerank", tags=["search"])
def rerank(state: State, wanted: DocumentsRequest) -> Response:
    """The documents by their cosine to the query, best first; of equals the earlier one."""
    inputs = EmbeddingRequest.model_validate({"input": [wanted.query, *wanted.documents], "model": wanted.model})
    encoder, vectors, usage = _embedded(state, inputs)
    scores = np.clip(vectors[1:] @ vectors[0], -1, 1)  # (documents,)
    best = np.argsort(-scores, kind="stable")[: wanted.top_n].tolist()
    results = [{"index": at, "relevance_score": float(scores[at])} for at in best]
    return JSONResponse({"model": encoder, "results": results, "usage": usage})


def _vectors(snapshot: Snapshot, queries: Sequence[Query]) -> Vectors:
    """The unit vectors of queries, (queries, dim), some at a time: others wait for the encoder meanwhile."""
    some = (queries[at : at + TOGETHER] for at in range(0, len(queries), TOGETHER))
    return np.concatenate([snapshot.ask_encoder(partial(embed, part)) for part in some])


# -- many searches ------------------------------------------------------------------------------------------------


class BatchQuery(BaseModel, extra="forbid"):
    """Words, a picture that was brought, or both."""

    q: Words = None
    picture: Digest = None


class SearchBatch(BaseModel, extra="forbid", strict=True):
    """Many searches with one filter."""

    queries: list[str | dict[str, str | None]] = Field(
        min_length=1, max_length=MOST_QUERIES, description="Words, or {q: words, picture: the digest of one brought}."
    )
    limit: int = Field(10, ge=1, le=100, description="Hits of each.")
    where: Text | None = Field(None, description="A SQL condition over the gallery's columns.")
    label: list[Text] = Field([], max_length=50, description="Only pictures with this label: COLUMN=VALUE.")
    by: Way | None = Field(None, description="By look, by words, or both.")
    grouped: bool = Field(True, description="Only the best of each group of copies or burst frames.")
    encoder: Name = Field(None, description="Search this encoder's space.")


@router.post("/search", tags=["search"])
def search_all(state: State, wanted: SearchBatch) -> Response:
    """The best pictures for each of many queries, by one scan; a query that cannot be searched has an `error`."""
    params = SearchParams(**wanted.model_dump(exclude={"queries", "limit"}))
    snapshot = state.snapshots.current(params.encoder)
    mask = mask_of(snapshot, params)
    if not mask.any():
        raise nothing_of(snapshot, params)
    results: list[dict[str, Any]] = []
    queries: list[Query] = []
    for at, one in enumerate(wanted.queries):
        results.append({"query": one, "hits": []})
        try:
            given = BatchQuery.model_validate({"q": one} if isinstance(one, str) else one)
            queries.append(_query(state, snapshot, given, f"{at}"))
        except ValidationError as error:
            results[-1]["error"] = faults_text(error.errors())
        except (UsageError, Problem) as error:
            results[-1]["error"] = str(error)
    found = _hits(snapshot, queries, params, mask, wanted.limit) if queries else {}
    for id, hits in found.items():
        results[int(id)]["hits"] = hits
    encoder, notes = snapshot.view.space.encoder, snapshot.notes(None, None, answered=False)
    return JSONResponse({"results": results, "encoder": encoder, "by": params.way, "notes": notes})


def _query(state: AppState, snapshot: Snapshot, given: BatchQuery, id: str) -> Query:
    """A query under an id; `UsageError` or `Problem` for one that cannot be searched."""
    refuse(given.q, state.settings.refused)
    query = query_of(SearchParams(q=given.q, picture=given.picture), state.cache.uploads)
    if query is None:
        raise UsageError("there is nothing to search for; write words, or give a picture")
    if len(query.terms) > 1 or query.terms[0].image is not None:
        snapshot.embedded(query)  # terms may cancel out, and a picture may be damaged
    return Query(id, query.terms)


def _hits(
    snapshot: Snapshot, queries: Sequence[Query], params: SearchParams, mask: Mask, limit: int
) -> dict[str, list[dict[str, Any]]]:
    """The hits of each query, by its id, best first."""
    read = [snapshot.reworded(query) for query in queries] if params.way == "both" else queries
    vectors, depth = _vectors(snapshot, read), limit
    shown: dict[str, list[tuple[int, float]]] = {}
    while True:
        run = snapshot.ranked(queries, vectors, params, k=depth, mask=mask, named=True)
        for id, hits in run.items():
            rows = np.array([hit.image for hit in hits], np.int64)
            best = snapshot.groups.first(rows) if params.grouped else np.ones(len(rows), bool)
            originals = snapshot.groups.best(rows, mask) if params.grouped else rows
            scored = zip(originals.tolist(), hits, best.tolist(), strict=True)
            shown[id] = [(row, hit.score) for row, hit, is_first in scored if is_first][:limit]
        if all(len(shown[id]) == limit or len(run[id]) < depth for id in run):
            break
        depth *= 4  # of copies one is shown
    rows_shown = list({row: None for hits in shown.values() for row, _ in hits})
    items = dict(zip(rows_shown, map(item_of, snapshot.facts(rows_shown)), strict=True))
    return {
        id: [{"rank": at, "score": round(score, 6)} | items[row] for at, (row, score) in enumerate(hits, 1)]
        for id, hits in shown.items()
    }
