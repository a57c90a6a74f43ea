"""Hits to take along, with one's verdicts: JSON, CSV, a TREC run, a Camtrap DP archive, or the photos themselves.

Positions and owners are left out unless somebody asks for all columns.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from fastapi import Response
from starlette.responses import StreamingResponse

from eyespot.gallery.albums import file_names
from eyespot.gallery.attribution import attribution_of
from eyespot.gallery.exports.camtrap_dp import TrapPhoto, described, is_placed, package
from eyespot.gallery.formats.exported import tells_too_much
from eyespot.gallery.photos.pictures import BadPicture
from eyespot.search.contact_sheet import Tile, html_pieces
from eyespot.storage.files import csv_bytes
from eyespot.types import NothingFound, UsageError
from eyespot.web._items import items_of, title_of
from eyespot.web._judging import judge_of, verdicts_on
from eyespot.web._problems import Problem
from eyespot.web._settings import User
from eyespot.web._state import AppState
from eyespot.web.found.derived import verdict_of
from eyespot.web.found.results import RankedResult
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.pictures.thumbnails import bytes_of

Format = Literal["zip", "originals", "sheet", "json", "csv", "trec", "camtrap-dp"]
FORMATS: dict[str, str] = {
    "zip": "Photos, at most 1,600 pixels (zip)",
    "originals": "Original files (zip)",
    "sheet": "Contact sheet (HTML)",
    "json": "JSON",
    "csv": "CSV (a spreadsheet)",
    "trec": "TREC run",
    "camtrap-dp": "Camtrap DP (needs positions)",
}


class HitsToTake(NamedTuple):
    """The first `depth` hits of a result; positions and owners only with all columns."""

    result: RankedResult
    depth: int
    all_columns: bool = False


class DownloadFormat(NamedTuple):
    """How hits are written: the kind of file, the end of its name, and the writing."""

    media: str
    suffix: str
    write: Callable[[RankedResult, list[dict[str, Any]]], bytes]


def download(state: AppState, wanted: HitsToTake, person: User, format: Format) -> Response:
    """The first hits of a result as a file."""
    result, depth, all_columns = wanted
    items = items_of(result, result.slice(0, depth))
    verdicts = verdicts_on(
        state.ledger.readable.judgements, result.query, [item["id"] for item in items], judge_of(person)
    )
    hits = []
    for item in items:
        fields = {name: value for name, value in item.items() if all_columns or not tells_too_much(name)}
        verdict = verdict_of(verdicts.get(item["id"]))
        hits.append({"rank": fields.pop("rank"), "id": fields.pop("id"), "verdict": verdict, **fields})
    if format in ("zip", "originals", "sheet"):
        bundle = Bundle(f"eyespot-{result.id[:8]}", result.heading, result.snapshot, hits)
        return photos_response(state, bundle, format, person)
    form = WRITERS[format]
    headers = {"Content-Disposition": f'attachment; filename="eyespot-{result.id[:8]}.{form.suffix}"'}
    return Response(form.write(result, hits), media_type=form.media, headers=headers)


def _json(result: RankedResult, items: list[dict[str, Any]]) -> bytes:
    about = {
        "query": result.heading,
        "asked": result.params.model_dump(exclude_defaults=True),
        "encoder": result.snapshot.view.space.encoder,
        "space": result.snapshot.view.space.digest,
        "exact": result.exact,
        "total": result.total,
        "notes": result.notes,
        "items": items,
    }
    return json.dumps(about, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _csv(_: RankedResult, items: list[dict[str, Any]]) -> bytes:
    names = list(dict.fromkeys(name for item in items for name in item if name != "thumbnail"))
    return csv_bytes(names, items)


def _trec(result: RankedResult, items: list[dict[str, Any]]) -> bytes:
    # What reads a run sorts it by score, and a judge's order is not that of the scores.
    scores = [-one["rank"] if result.judged else one["score"] for one in items]
    words = ["_".join(one["id"].split()) or "_" for one in items]  # a space would end the column
    hits = zip(words, items, scores, strict=True)
    lines = [f"{result.id} Q0 {word} {one['rank']} {score} eyespot\n" for word, one, score in hits]
    return "".join(lines).encode("utf-8", "backslashreplace")


def archive(result: RankedResult, items: Sequence[Mapping[str, Any]]) -> bytes:
    """The zip. Raises `NothingFound` if no hit has both a time and a position, `UsageError` if they were left out."""
    if items and "latitude" not in items[0]:
        raise UsageError("a Camtrap DP archive holds positions; ask for it with all columns, or choose CSV")
    placed = [_photo(result, one) for one in items if is_placed(one)]
    if not placed:
        raise NothingFound("no hit has both a time and a position, which Camtrap DP needs; choose CSV or JSON")
    lost = len(items) - len(placed)
    description = f"{len(placed)} of {len(items)} hits; {lost} without a time or a position are left out."
    title = f"Hits of a search for: {result.heading}"
    about = described(placed, f"eyespot-{result.id[:8]}", title, description)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in package(placed, about).items():
            archive.writestr(name, data)
    return packed.getvalue()


def _photo(result: RankedResult, item: Mapping[str, Any]) -> TrapPhoto:
    path = str(item["path"] or "")
    file = path if re.fullmatch(r"(?!.*\.\.)[^./~].*", path) else item["id"]
    tags = f"verdict:{item['verdict'] or 'none'} | rank:{item['rank']} | score:{item['score']}"
    comments = f"found by searching for: {result.heading}"
    rights = {name: value for name, value in attribution_of(item)._asdict().items() if value}
    return TrapPhoto({**item, **rights}, file, f"{result.id[:8]}-{item['rank']}", tags, comments)


WRITERS = {
    "json": DownloadFormat("application/json", "json", _json),
    "csv": DownloadFormat("text/csv; charset=utf-8", "csv", _csv),
    "trec": DownloadFormat("text/plain; charset=utf-8", "run.txt", _trec),
    "camtrap-dp": DownloadFormat("application/zip", "camtrap-dp.zip", archive),
}


Kind = Literal["zip", "originals", "sheet"]
SIDE, SHEET_SIDE = 1600, 320  # pixels of the longer side
MOST, MOST_ON_SHEET = 10_000, 1_000  # photos
LEFT_OUT, TABLE = "left_out.txt", "photos.csv"


class Bundle(NamedTuple):
    """Photos to take along: what they are called together, and what is known of each, without what nobody asked for."""

    name: str  # of the file, safe
    heading: str
    snapshot: Snapshot
    items: Sequence[Mapping[str, Any]]


def formats_for(state: AppState, person: User, formats: Mapping[str, str]) -> dict[str, str]:
    """The formats that somebody may take photos along in, with their names."""
    may = person.role >= state.settings.originals
    return {format: name for format, name in formats.items() if may or format != "originals"}


def photos_response(state: AppState, bundle: Bundle, kind: Kind, person: User) -> Response:
    """The photos as a file. `Problem` for originals where somebody may not have them, `UsageError` for too many."""
    if kind == "originals" and person.role < (needed := state.settings.originals):
        raise Problem(403, f"original files are for the role {needed.name.lower()}; take the pictures of 1,600 pixels")
    most = MOST_ON_SHEET if kind == "sheet" else MOST
    if len(bundle.items) > most:
        raise UsageError(f"this holds at most {most:,} photos at a time; ask for fewer, or for those with a yes")
    if kind == "sheet":
        headers = {"Content-Disposition": f'attachment; filename="{bundle.name}.html"'}
        pages = html_pieces(bundle.heading, _tiles(state, bundle))
        sheet = (piece.encode("utf-8", "backslashreplace") for piece in pages)
        return StreamingResponse(sheet, media_type="text/html; charset=utf-8", headers=headers)
    headers = {"Content-Disposition": f'attachment; filename="{bundle.name}.zip"'}
    pieces = zipped(_files(state, bundle, kind == "originals"))
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)


# -- zip ----------------------------------------------------------------------------------------------------------


class _Sink:
    """Where a zip is written piece by piece; it cannot go back, and so it never holds more than the last piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken, self._pieces = b"".join(self._pieces), []
        return taken


def zipped(files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """A zip of files by their names, one file at a time."""
    sink, now = _Sink(), time.localtime()[:6]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name, now), data)
            yield sink.take()
    yield sink.take()


def _files(state: AppState, bundle: Bundle, originals: bool) -> Iterator[tuple[str, bytes]]:
    """The pictures under names of their own, a table of them, and what is left out and why."""
    paths = [str(item["path"] or item["id"]) for item in bundle.items]
    rows, failures = [], []
    for item, name in zip(bundle.items, file_names(paths, "" if originals else ".jpg"), strict=True):
        try:
            data = _original(bundle.snapshot, item["id"]) if originals else _small(state, bundle.snapshot, item["id"])
        except (OSError, BadPicture, Problem) as error:
            failures.append(f"{item['path'] or item['id']}: {error}\n")
            continue
        rows.append({"file": name, **{key: value for key, value in item.items() if key not in ("file", "thumbnail")}})
        yield f"photos/{name}", data
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["file"]
    yield TABLE, csv_bytes(columns, rows)
    if failures:
        yield LEFT_OUT, "".join(failures).encode("utf-8", "backslashreplace")


def _small(state: AppState, snapshot: Snapshot, id: str) -> bytes:
    return state.cache.thumbnails.jpeg(snapshot, id, SIDE)


def _original(snapshot: Snapshot, id: str) -> bytes:
    """The bytes that were indexed; OSError if they are gone or others by now."""
    row = snapshot.row_of(id)
    for placed in snapshot.places(row) if row is not None else []:
        with suppress(OSError, BadPicture):
            return bytes_of(id, placed)
    raise OSError("the picture is gone, or has changed since it was indexed")


# -- contact sheet --------------------------------------------------------------------------------------------------


def _tiles(state: AppState, bundle: Bundle) -> Iterator[Tile]:
    """The photos of a sheet, each made small when its turn comes."""
    for number, item in enumerate(bundle.items, 1):
        picture = None
        with suppress(Problem, OSError):
            picture = state.cache.thumbnails.jpeg(bundle.snapshot, item["id"], SHEET_SIDE)
        caption = str(item.get("verdict") or item.get("verdicts") or "")
        yield Tile(picture, int(item.get("rank", number)), item.get("score"), title_of(item), caption)
