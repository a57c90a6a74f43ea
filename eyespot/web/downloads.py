"""Hits to take along, with one's verdicts: JSON, CSV, a TREC run, or the photos themselves.

Positions and owners are left out unless somebody asks for all columns. Photos come as a zip of originals or of pictures
of 1,600 pixels, or as a contact sheet in one HTML file. Both are sent while they are written: memory holds one photo,
and nobody waits for all before the first byte. What cannot be read, or has changed since it was indexed, is listed with
the reason in `left_out.txt` inside a zip. A zip that was cut goes on where it was cut.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from fastapi import Response
from starlette.responses import StreamingResponse

from eyespot.formats.albums import file_names
from eyespot.formats.exporting import tells_too_much
from eyespot.ledger.judgements import query_digest
from eyespot.photos.names import real_name
from eyespot.search.contact_sheet import Tile, html_pieces
from eyespot.storage.tables import csv_bytes
from eyespot.types import UsageError
from eyespot.web._items import items_of, title_of
from eyespot.web._judging import judge_of, verdicts_on
from eyespot.web._problems import Problem
from eyespot.web._settings import User
from eyespot.web._state import AppState
from eyespot.web.found.derived import verdict_of
from eyespot.web.found.results import RankedResult
from eyespot.web.found.snapshot import PicturePlace, Snapshot
from eyespot.web.pictures import read_original

PhotoFormat = Literal["zip", "originals", "sheet"]
Format = Literal[PhotoFormat, "json", "csv", "trec"]
FORMATS: dict[str, str] = {
    "zip": "Photos, at most 1,600 pixels (zip)",
    "originals": "Original files (zip)",
    "sheet": "Contact sheet (HTML)",
    "json": "JSON",
    "csv": "CSV (a spreadsheet)",
    "trec": "Ranking for trec_eval (TREC run)",
}
SIDE, SHEET_SIDE = 1600, 320  # pixels of the longer side
MOST, MOST_ON_SHEET = 10_000, 1_000  # photos
LEFT_OUT, TABLE = "left_out.txt", "photos.csv"
ZIP_PIECE = 1 << 20  # bytes sent at once, at least


def formats_for(state: AppState, person: User, formats: Mapping[str, str]) -> dict[str, str]:
    """The formats that somebody may take photos along in, with their names."""
    may = person.role >= state.settings.originals
    return {format: name for format, name in formats.items() if may or format != "originals"}


def file_name(text: str) -> str:
    """The name of a file without its suffix, after a query or a list."""
    return re.sub(r"[^A-Za-z0-9]+", "-", unicodedata.normalize("NFKD", text)).strip("-")[:60] or "photos"


def readable_fields(item: Mapping[str, Any], all_columns: bool) -> dict[str, Any]:
    """What a file tells of a photo: positions and owners with all columns alone, and no time in nanoseconds."""
    return {key: value for key, value in item.items() if key != "mtime" and (all_columns or not tells_too_much(key))}


def attachment(data: bytes, media: str, name: str) -> Response:
    """A file to keep under a name."""
    return Response(data, media_type=media, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def csv_file(items: Sequence[Mapping[str, Any]], name: str) -> Response:
    """A table of photos, with a column for each field that one of them has."""
    columns = list(dict.fromkeys(column for item in items for column in item if column != "thumbnail"))
    return attachment(csv_bytes(columns or ["id"], items), "text/csv; charset=utf-8", f"{name}.csv")


def json_file(value: Any, name: str, indent: int | None = None) -> Response:
    """A JSON document, in which a byte of a path that is not UTF-8 is an escape."""
    data = json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")
    return attachment(data, "application/json", f"{name}.json")


def zip_file(folder: Path, name: str, prefix: str = "") -> Response:
    """The files of a folder, packed; `prefix` stands before their names."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{prefix}{file.name}")
    return attachment(packed.getvalue(), "application/zip", f"{name}.zip")


def download(
    state: AppState,
    result: RankedResult,
    person: User,
    head: Mapping[str, str],
    *,
    format: Format,
    depth: int,
    all_columns: bool,
) -> Response:
    """The first `depth` hits of a result as a file; positions and owners only with all columns."""
    items = items_of(result, result.slice(0, depth))
    judgements, ids = state.ledger.readable.judgements, [item["id"] for item in items]
    verdicts = verdicts_on(judgements, result.query, ids, judge_of(person))
    hits = []
    for item in items:
        fields = readable_fields(item, all_columns)
        if format != "json" and "why" in fields:
            fields["why"] = ", ".join(one["code"] for one in fields["why"])
        verdict = verdict_of(verdicts.get(item["id"]))
        hits.append({"rank": fields.pop("rank"), "id": fields.pop("id"), "verdict": verdict, **fields})
    name = "-".join([file_name(result.heading), *filter(None, [result.params.verdict])])
    if format == "json":
        about = {
            "query": result.heading,
            "asked": result.params.model_dump(exclude_defaults=True),
            "encoder": result.snapshot.view.space.encoder,
            "space": result.snapshot.view.space.digest,
            "exact": result.exact,
            "total": result.total,
            "notes": result.notes,
            "items": hits,
        }
        return json_file(about, name, indent=1)
    if format == "csv":
        return csv_file(hits, name)
    if format == "trec":
        lines, topic = [], query_digest(result.query) if result.query else result.id  # the query as verdicts name it
        for one in hits:
            # What reads a run sorts it by score, and a judge's order is not that of the scores.
            score = -one["rank"] if result.judged else one["score"]
            word = "_".join(one["id"].split()) or "_"  # a space would end the column
            lines.append(f"{topic} Q0 {word} {one['rank']} {score} eyespot\n")
        data = "".join(lines).encode("utf-8", "backslashreplace")
        return attachment(data, "text/plain; charset=utf-8", f"{name}.run.txt")
    snapshot, heading = result.snapshot, result.heading
    return photos_response(state, snapshot, hits, person, kind=format, name=name, heading=heading, head=head)


def photos_response(
    state: AppState,
    snapshot: Snapshot,
    items: Sequence[Mapping[str, Any]],
    person: User,
    *,
    kind: PhotoFormat,
    name: str,
    heading: str,
    head: Mapping[str, str],
) -> Response:
    """The photos as a file of this name, with what is known of each; of a zip the range that a request (`head`) names.

    `Problem` for originals where somebody may not have them, `UsageError` for too many.
    """
    if kind == "originals" and person.role < (needed := state.settings.originals):
        raise Problem(403, f"original files are for the role {needed.name.lower()}; take the pictures of 1,600 pixels")
    most = MOST_ON_SHEET if kind == "sheet" else MOST
    if len(items) > most:
        raise UsageError(f"this holds at most {most:,} photos at a time; ask for fewer, or for those with a yes")
    if kind == "sheet":
        pages = html_pieces(heading, _tiles(state, snapshot, items))
        pieces = (page.encode("utf-8", "backslashreplace") for page in pages)
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
        return StreamingResponse(pieces, media_type="text/html; charset=utf-8", headers=headers)
    # Of all at once: looking up one by one takes longer than reading the pictures
    rows = snapshot.rows_by_id([item["id"] for item in items])
    places = dict(snapshot.pictures(rows[rows >= 0].tolist()))
    readers: dict[str, Callable[[str, int], bytes]] = {
        "originals": lambda id, _: read_original(id, places.get(id, []))[1],
        "zip": lambda id, row: state.cache.thumbnails.jpeg(snapshot, id, SIDE, row=row),
    }
    files = partial(_files, items, rows.tolist(), readers[kind], "" if kind == "originals" else ".jpg")
    name = f"{name}-originals" if kind == "originals" else name
    return _zip_response(state, files, tag=_tag(places, items, kind), head=head, name=name)


def _tiles(state: AppState, snapshot: Snapshot, items: Sequence[Mapping[str, Any]]) -> Iterator[Tile]:
    """Each photo made small when its turn comes."""
    for number, item in enumerate(items, 1):
        picture = None
        with suppress(Problem, OSError):
            picture = state.cache.thumbnails.jpeg(snapshot, item["id"], SHEET_SIDE)
        caption = str(item.get("verdict") or item.get("verdicts") or "")
        yield Tile(picture, int(item.get("rank", number)), item.get("score"), title_of(item), caption)


class _Sink(bytearray):
    """Where a zip is written piece by piece; it cannot go back, and so it never holds more than the last piece."""

    def write(self, data: bytes) -> int:
        self.extend(data)
        return len(data)

    def flush(self) -> None:
        pass


def zipped(files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """A zip of files by their names, the same bytes each time.

    They come a megabyte or more at once: each piece waits behind other people's searches.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # type: ignore[call-overload]
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data)
            if len(sink) >= ZIP_PIECE:
                yield bytes(sink)
                sink.clear()
    yield bytes(sink)


def after(pieces: Iterator[bytes], start: int) -> Iterator[bytes]:
    """The bytes of these pieces from `start` on."""
    for piece in pieces:
        if start < len(piece):
            yield piece[start:]
        start = max(0, start - len(piece))


def _zip_response(
    state: AppState, files: Callable[[], Iterator[tuple[str, bytes]]], *, tag: str, head: Mapping[str, str], name: str
) -> Response:
    """The zip that `tag` names; where the headers of a request ask for it (RFC 9110, 14), from a byte on to its end.

    All photos are read once more for the length of the whole, which is remembered.
    """
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"', "ETag": tag, "Accept-Ranges": "bytes"}
    found = re.fullmatch(r"bytes=([0-9]{1,18})-", head.get("range", ""))
    start = int(found[1]) if found and head.get("if-range", tag) == tag else 0
    if not start:
        return StreamingResponse(zipped(files()), 200, headers, "application/zip")
    length = state.cache.lengths.get(tag, lambda: sum(map(len, zipped(files()))))
    if start >= length:
        raise Problem(416, f"this file has {length} bytes; load it anew", {"Content-Range": f"bytes */{length}"})
    headers |= {"Content-Range": f"bytes {start}-{length - 1}/{length}", "Content-Length": str(length - start)}
    return StreamingResponse(after(zipped(files()), start), 206, headers, "application/zip")


def _tag(places: Mapping[str, Sequence[PicturePlace]], items: Sequence[Mapping[str, Any]], kind: str) -> str:
    """What names the bytes of a zip: another file at a photo's place, or none, is another zip."""
    stamps = []
    for place in (one.place for several in places.values() for one in several):
        with suppress(OSError, ValueError):
            found = os.stat(real_name(place))
            stamps.append((place, found.st_size, found.st_mtime_ns))
    made_of = json.dumps([kind, [*map(dict, items)], stamps], default=str)
    return f'"{hashlib.sha256(made_of.encode("utf-8", "backslashreplace")).hexdigest()}"'


def _files(
    items: Sequence[Mapping[str, Any]], found: Sequence[int], read: Callable[[str, int], bytes], suffix: str
) -> Iterator[tuple[str, bytes]]:
    """The pictures under names of their own, a table of them, and what is left out and why."""
    names = file_names([str(item["path"] or item["id"]) for item in items], suffix)
    rows, failures = [], []
    for item, name, row in zip(items, names, found, strict=True):
        try:
            data = read(item["id"], row)
        except (OSError, Problem) as error:
            failures.append(f"{item['path'] or item['id']}: {error}\n")
            continue
        rows.append({"file": name, **{key: value for key, value in item.items() if key not in ("file", "thumbnail")}})
        yield f"photos/{name}", data
    columns = list(dict.fromkeys(column for row in rows for column in row)) or ["file"]
    yield TABLE, csv_bytes(columns, rows)
    if failures:
        yield LEFT_OUT, "".join(failures).encode("utf-8", "backslashreplace")
