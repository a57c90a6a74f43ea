"""Lists to take along: as photos, tables and training pairs, as an album on this disk, and as a query to annotate."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from eyespot.curate.annotate.candidates import list_rows
from eyespot.formats.albums import album_folder, copy_hits, link_hits
from eyespot.formats.exporting import tells_too_much
from eyespot.ledger.photo_lists import PhotoList
from eyespot.storage.tables import csv_bytes
from eyespot.types import UsageError
from eyespot.web._judging import majority
from eyespot.web._search_params import query_of
from eyespot.web._security import needs
from eyespot.web._settings import Role, User
from eyespot.web._state import AppState, State
from eyespot.web.annotate._grid import grow_list, query_of_words
from eyespot.web.annotate._session import AnnotationSession, session_of
from eyespot.web.downloads import PhotoFormat, attachment, photos_response
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.lists.api import Annotator, Id, params_of, stretch_of

router = APIRouter(prefix="/v1/lists", tags=["lists"], dependencies=[Depends(needs(Role.ANNOTATOR))])
Owner = Annotated[User, Depends(needs(Role.OWNER))]
ListFormat = Literal[PhotoFormat, "csv", "json", "pairs", "captions"]
FORMATS = {
    "zip": "Photos, at most 1,600 pixels (zip)",
    "originals": "Original files (zip)",
    "sheet": "Contact sheet (HTML)",
    "csv": "CSV (a spreadsheet)",
    "json": "JSON",
    "pairs": "Training set: pairs for eyespot train (npz)",
    "captions": "Training set: captions (CSV)",
}
MOST, MOST_PAIRS = 200_000, 100_000  # photos of a list, and pairs of a photo and words: each is a vector in memory


class ListDownload(BaseModel):
    """How a list is to be written."""

    format: ListFormat = "zip"
    verdict: Literal["yes", "no", "doubt"] | None = None
    all_columns: bool = False


@router.get("/{id}/download", response_class=Response)
def download(state: State, person: Annotator, id: Id, wanted: Annotated[ListDownload, Query()]) -> Response:
    """The list as a file; with `verdict` only the photos of which most people said so."""
    one, snapshot = state.ledger.readable.lists.find(id), state.snapshots.current()
    items = with_verdict(stretch_of(state, one.id, 0, MOST).items, wanted.verdict)
    if wanted.format == "pairs" or wanted.format == "captions":
        return _training_set(state, one, snapshot, [item["id"] for item in items], wanted.format)
    shown = []
    for item in items:
        fields = {name: value for name, value in item.items() if wanted.all_columns or not tells_too_much(name)}
        said = "; ".join(f"{name}: {verdict}" for name, verdict in item["verdicts"].items())
        shown.append(fields | {"verdicts": said})
    name = f"eyespot-list-{one.id[:8]}"
    if wanted.format == "csv":
        columns = list(dict.fromkeys(column for item in shown for column in item if column != "thumbnail"))
        return attachment(csv_bytes(columns or ["id"], shown), "text/csv; charset=utf-8", f"{name}.csv")
    if wanted.format == "json":
        data = json.dumps({"name": one.name, "items": items if wanted.all_columns else shown}, ensure_ascii=False)
        return attachment(data.encode("utf-8", "backslashreplace"), "application/json", f"{name}.json")
    return photos_response(state, snapshot, shown, person, kind=wanted.format, name=name, heading=one.name)


def with_verdict(items: Sequence[dict[str, Any]], verdict: str | None) -> list[dict[str, Any]]:
    """The photos of which more people said this than anything else; all where no verdict is given."""
    return [item for item in items if verdict is None or majority(item["verdicts"].values()) == verdict]


def _training_set(state: AppState, one: PhotoList, snapshot: Snapshot, images: Sequence[str], format: str) -> Response:
    """Each photo with the words of each of the list's queries, as vectors or as captions."""
    searches = [params_of(query.address) for query in state.ledger.readable.lists.queries(one.id)]
    worded = [params for params in searches if params.q]
    found = snapshot.rows_by_id(images)
    rows = found[found >= 0].tolist()
    if not worded or not rows:
        raise UsageError(f"a training set needs photos and words; {one.name!r} has no photo, or comes from no words")
    if (pairs_in_all := len(worded) * len(rows)) > MOST_PAIRS:
        raise UsageError(
            f"a training set holds at most {MOST_PAIRS:,} pairs, and {len(rows):,} photos with the words of "
            f"{len(worded):,} searches are {pairs_in_all:,}; take the photos with a yes alone, or make several lists"
        )
    if format == "captions":
        pairs = [{"id": id, "caption": params.q} for params in worded for id in images]
        return attachment(
            csv_bytes(["id", "caption"], pairs), "text/csv; charset=utf-8", f"eyespot-captions-{one.id[:8]}.csv"
        )
    vectors = np.stack([snapshot.vector(row) for row in rows])  # (photos, dim)
    queries = [query for params in worded if (query := query_of(params, state.cache.uploads)) is not None]
    texts = np.concatenate([snapshot.embedded(query) for query in queries])  # (queries, dim)
    of = np.tile(np.arange(len(rows)), len(queries))  # (pairs,)
    packed = io.BytesIO()
    arrays = {
        "images": vectors,
        "texts": np.repeat(texts, len(rows), axis=0),
        "of": of,
        "ids": np.array(list(images), str),
    }
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    return attachment(packed.getvalue(), "application/octet-stream", f"eyespot-pairs-{one.id[:8]}.npz")


# -- on this machine ------------------------------------------------------------------------------------------------


class Album(BaseModel):
    """How the files of an album stand for the photos."""

    kind: Literal["links", "copies"] = "links"


@router.post("/{id}/album", status_code=201)
def album(state: State, _: Owner, id: Id, wanted: Album) -> Response:
    """Put links to the originals, or copies, into the gallery's folder `albums`, under the name of the list.

    For the owner alone. No request names a folder. What is there stays, and the same list again changes nothing.
    """
    one, snapshot = state.ledger.readable.lists.find(id), state.snapshots.current()
    hits: list[dict[str, Any]] = []
    for image in state.ledger.readable.lists.photos(one.id):
        row = snapshot.row_of(image)
        places = [] if row is None else [placed.place for placed in snapshot.places(row)]
        hits.append({"id": image, "path": next((place for place in places if "://" not in place), None)})
    folder = album_folder(state.settings.gallery, one.name)
    report = (link_hits if wanted.kind == "links" else copy_hits)(hits, folder)
    failures = [{"item": failure.id, "reason": failure.reason} for failure in report.failed]
    return JSONResponse(
        {"folder": str(FilePath(folder).absolute()), "files": len(report.files), "failed": failures}, 201
    )


# -- to the end -------------------------------------------------------------------------------------------------------


@router.post("/{id}/annotate", status_code=201)
def annotate(state: State, at: Annotated[AnnotationSession, Depends(session_of)], id: Id) -> Response:
    """Make the list a query to annotate to the end: the nearest photos of its words, and its own photos among them."""
    at.annotator_name()
    return JSONResponse({"page": to_annotate(state, at, id)}, 201)


def to_annotate(state: AppState, at: AnnotationSession, id: str) -> str:
    """The page on which a list's query is labelled."""
    one, snapshot = state.ledger.readable.lists.find(id), state.snapshots.current()
    words = [
        params.q for query in state.ledger.readable.lists.queries(one.id) if (params := params_of(query.address)).q
    ]
    query = query_of_words(at, state.settings.refused, words[0] or one.name if words else one.name)
    if not at.store.candidates(query):
        grow_list(at, state.snapshots, query)
    there = {candidate.image for candidate in at.store.candidates(query)}
    images = [image for image in state.ledger.readable.lists.photos(one.id) if image not in there]
    if rows := [row for image in images if (row := snapshot.row_of(image)) is not None]:
        at.store.narrow(query)  # these were chosen and not ranked, which an audit has to know
        list_rows(at.store, query, snapshot.view, rows)
    return f"/annotate/label?{urlencode({'query': query})}"
