"""What other programs send elsewhere, too: `/v1/embeddings` in OpenAI's shape, `/v1/search` with many queries.

Pictures come in the request, as the clients of vLLM, Jina, Voyage and Cohere send them. No address is ever fetched.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.search.embedding import embed
from eyespot.settings.search import Way
from eyespot.types import Mask, Query, Term, UsageError, Vectors
from eyespot.web._items import item_of
from eyespot.web._problems import Problem
from eyespot.web._search_params import Digest, Name, SearchParams, Words, query_of, refuse
from eyespot.web._security import needs
from eyespot.web._settings import Role
from eyespot.web._state import AppState, State
from eyespot.web.found.results import mask_of, nothing_of
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures import SMALL

router = APIRouter(prefix="/v1", dependencies=[Depends(needs(Role.READER))])
MOST, MOST_PICTURES, MOST_QUERIES = 2048, 128, 500  # inputs and pictures of a request, as OpenAI has it; queries
TOGETHER = 32  # inputs after which others have their turn with the encoder

# -- vectors ------------------------------------------------------------------------------------------------------


class PictureAddress(BaseModel):
    """A picture as a `data:` address."""

    url: str


class InputPart(BaseModel):
    """A text or a picture: `image` as Jina has it, `image_base64` as Voyage, `image_url` as vLLM and Cohere."""

    text: str | None = None
    image: str | None = None
    image_base64: str | None = None
    image_url: PictureAddress | str | None = None

    @property
    def picture(self) -> str | None:
        """The picture in base64, or as a `data:` address."""
        address = self.image_url.url if isinstance(self.image_url, PictureAddress) else self.image_url
        return self.image or self.image_base64 or address

    def term(self, file: Path, most: int) -> Term:
        """What it adds to a query; a picture is written to a file first. `Problem` for what is neither."""
        if self.picture is None:
            if not (self.text or "").strip():
                raise Problem(422, "an input is empty; give a text, or a picture in base64")
            return Term(1.0, text=self.text)
        head, comma, data = self.picture.rpartition(",")
        if not (head.startswith("data:") if comma else "://" not in data[:20]):
            raise Problem(422, "no address is fetched here; send the picture itself, as data:image/jpeg;base64,…")
        if len(data) > most * 4 // 3 + 4:
            raise Problem(413, f"a picture has more than {most >> 20} MiB; send a smaller one")
        try:
            file.write_bytes(base64.b64decode(data, validate=True))
            thumbnail(file.read_bytes(), SMALL)
        except (binascii.Error, ValueError, BadPicture) as error:
            raise Problem(422, f"this is no picture in base64: {getattr(error, 'reason', error)}") from None
        return Term(1.0, image=file)


class SeveralParts(BaseModel):
    """Texts and pictures that get one vector together."""

    content: str | list[InputPart]


Part = str | InputPart
Pictures = Annotated[list[str], Field(max_length=MOST_PICTURES)]


class EmbeddingRequest(BaseModel):
    """Texts and pictures to be embedded, in the shape of any one of those services."""

    input: Part | Annotated[list[Part], Field(max_length=MOST)] = Field(
        [], description="A text, or a list (OpenAI, Jina)."
    )
    messages: list[SeveralParts] = Field([], max_length=MOST, description="Parts of one input (vLLM).")
    inputs: list[SeveralParts] = Field([], max_length=MOST, description="Inputs of several parts (Voyage, Cohere).")
    texts: list[str] = Field([], max_length=MOST, description="Texts (Cohere).")
    images: Pictures = Field([], description="Pictures as data: addresses (Cohere).")
    model: Name = Field(None, description="The encoder, as /v1/columns lists them; else the first of them.")
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, description="Refused where the vectors have another length.")

    def all_inputs(self) -> list[Sequence[InputPart]]:
        """The parts of each input, in their order; `Problem` for none, and for too many."""
        single = self.input if isinstance(self.input, list) else [self.input]
        alone = [*single, *self.texts, *(InputPart(image=one) for one in self.images)]
        together = [[part for one in self.messages for part in _parts(one.content)]] if self.messages else []
        found = [*map(_parts, alone), *together, *(_parts(one.content) for one in self.inputs)]
        pictures = sum(part.picture is not None for parts in found for part in parts)
        if not found or not all(found):
            raise Problem(422, "there is nothing to embed; give `input`, a text or a list of texts and pictures")
        if len(found) > MOST or pictures > MOST_PICTURES:
            raise Problem(413, f"at most {MOST:,} inputs with {MOST_PICTURES} pictures at once; send several requests")
        return found


def _parts(content: Part | list[InputPart]) -> Sequence[InputPart]:
    return content if isinstance(content, list) else [InputPart(text=content) if isinstance(content, str) else content]


@router.post("/embeddings", tags=["search"])
def embeddings(state: State, wanted: EmbeddingRequest) -> Response:
    """Unit vectors of texts and pictures, one for each input, as OpenAI answers; no tokens are counted."""
    if wanted.model is not None and wanted.model not in state.snapshots.encoders:
        raise Problem(404, f"no model {wanted.model!r} here; there are: {', '.join(state.snapshots.encoders)}")
    snapshot, inputs = state.snapshots.current(wanted.model), wanted.all_inputs()
    space = snapshot.view.space
    if wanted.dimensions not in (None, space.dim):
        raise Problem(422, f"vectors of {space.encoder} have {space.dim} dimensions; leave out `dimensions`")
    for part in (part for parts in inputs for part in parts):
        refuse(part.text, state.settings.refused)
    with TemporaryDirectory(prefix="eyespot-embed-") as folder:
        places, most = (Path(folder) / str(at) for at in range(10**9)), state.settings.upload_bytes
        terms = [tuple(part.term(next(places), most) for part in parts) for parts in inputs]
        vectors = _embedded(snapshot, [Query(f"input {at}", one) for at, one in enumerate(terms)])
    rows: list[Any] = vectors.tolist()
    if wanted.encoding_format == "base64":
        rows = [base64.b64encode(row.tobytes()).decode() for row in vectors.astype("<f4")]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    usage = {"prompt_tokens": 0, "total_tokens": 0}  # clients expect both
    return JSONResponse({"object": "list", "data": data, "model": space.encoder, "usage": usage})


def _embedded(snapshot: Snapshot, queries: Sequence[Query]) -> Vectors:
    """The unit vectors of queries, (queries, dim), some at a time: others wait for the encoder meanwhile."""
    some = (queries[at : at + TOGETHER] for at in range(0, len(queries), TOGETHER))
    return np.concatenate([snapshot.ask_encoder(partial(embed, part)) for part in some])


# -- many searches ------------------------------------------------------------------------------------------------


class BatchQuery(BaseModel):
    """Words, a picture that was brought, or both."""

    q: Words = None
    picture: Digest = None


class SearchBatch(BaseModel):
    """Many searches with one filter."""

    queries: list[Annotated[str, Field(max_length=1000)] | BatchQuery] = Field(min_length=1, max_length=MOST_QUERIES)
    limit: int = Field(10, ge=1, le=100, description="Hits of each.")
    where: str | None = Field(None, max_length=2000, description="A SQL condition over the gallery's columns.")
    label: tuple[str, ...] = Field((), max_length=50, description="Only pictures with this label: COLUMN=VALUE.")
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
    for one in wanted.queries:
        asked = BatchQuery(q=one) if isinstance(one, str) else one
        results.append({"query": one if isinstance(one, str) else one.model_dump(exclude_none=True), "hits": []})
        try:
            queries.append(_read(state, snapshot, asked, f"{len(results) - 1}"))
        except (UsageError, Problem) as error:
            results[-1]["error"] = str(error)
    found = _found(snapshot, queries, params, mask, wanted.limit) if queries else {}
    for id, hits in found.items():
        results[int(id)]["hits"] = hits
    encoder, notes = snapshot.view.space.encoder, snapshot.notes(None, None)
    return JSONResponse({"results": results, "encoder": encoder, "by": params.way, "notes": notes})


def _read(state: AppState, snapshot: Snapshot, asked: BatchQuery, id: str) -> Query:
    """A query under an id; `UsageError` or `Problem` for one that cannot be searched."""
    refuse(asked.q, state.settings.refused)
    query = query_of(SearchParams(q=asked.q, picture=asked.picture), state.cache.uploads)
    if query is None:
        raise UsageError("there is nothing to search for; write words, or give a picture")
    if len(query.terms) > 1 or query.terms[0].image is not None:
        snapshot.embedded(query)  # terms may cancel out, and a picture may be damaged
    return Query(id, query.terms)


def _found(
    snapshot: Snapshot, queries: Sequence[Query], params: SearchParams, mask: Mask, limit: int
) -> dict[str, list[dict[str, Any]]]:
    """The hits of each query, by its id, best first."""
    read = [snapshot.reworded(query) for query in queries] if params.way == "both" else queries
    vectors, depth = _embedded(snapshot, read), limit
    shown: dict[str, list[tuple[int, float]]] = {}
    while True:
        run = snapshot.ranked(queries, vectors, params, k=depth, mask=mask, named=True)
        for id, hits in run.items():
            rows = np.array([hit.image for hit in hits], np.int64)
            best = snapshot.groups.first(rows) if params.grouped else np.ones(len(rows), bool)
            originals = snapshot.groups.best(rows, mask) if params.grouped else rows
            scored = zip(originals.tolist(), hits, best.tolist(), strict=True)
            shown[id] = [(row, hit.score) for row, hit, kept in scored if kept][:limit]
        if all(len(shown[id]) == limit or len(run[id]) < depth for id in run):
            break
        depth *= 4  # of copies one is shown
    rows_shown = list({row: None for hits in shown.values() for row, _ in hits})
    items = dict(zip(rows_shown, map(item_of, snapshot.facts(rows_shown)), strict=True))
    return {
        id: [{"rank": at, "score": round(score, 6)} | items[row] for at, (row, score) in enumerate(hits, 1)]
        for id, hits in shown.items()
    }
