"""Hits to take along, with one's verdicts: JSON, CSV, a TREC run, a Camtrap DP archive, or the photos themselves.

Positions and owners are left out unless somebody asks for all columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from fastapi import Response

from eyespot.formats.exported import tells_too_much
from eyespot.storage.tables import csv_bytes
from eyespot.web._items import items_of
from eyespot.web._judging import judge_of, verdicts_on
from eyespot.web._settings import User
from eyespot.web._state import AppState
from eyespot.web.downloads.camtrap import archive
from eyespot.web.downloads.photos import Bundle, photos_response
from eyespot.web.found.results import RankedResult
from eyespot.web.found.tabs import verdict_of

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

    frozen: RankedResult
    depth: int
    all_columns: bool = False


class DownloadFormat(NamedTuple):
    """How hits are written: the kind of file, the end of its name, and the writing."""

    media: str
    suffix: str
    write: Callable[[RankedResult, list[dict[str, Any]]], bytes]


def download(house: AppState, wanted: HitsToTake, person: User, format: Format) -> Response:
    """The first hits of a result as a file."""
    frozen, depth, all_columns = wanted
    items = items_of(frozen, frozen.slice(0, depth))
    verdicts = verdicts_on(house.readable_judgements, frozen.query, [item["id"] for item in items], judge_of(person))
    hits = []
    for item in items:
        fields = {name: value for name, value in item.items() if all_columns or not tells_too_much(name)}
        verdict = verdict_of(verdicts.get(item["id"]))
        hits.append({"rank": fields.pop("rank"), "id": fields.pop("id"), "verdict": verdict, **fields})
    if format in ("zip", "originals", "sheet"):
        bundle = Bundle(f"eyespot-{frozen.id[:8]}", frozen.heading, frozen.snapshot, hits)
        return photos_response(house, bundle, format, person)
    form = WRITERS[format]
    headers = {"Content-Disposition": f'attachment; filename="eyespot-{frozen.id[:8]}.{form.suffix}"'}
    return Response(form.write(frozen, hits), media_type=form.media, headers=headers)


def _json(frozen: RankedResult, items: list[dict[str, Any]]) -> bytes:
    about = {
        "query": frozen.heading,
        "asked": frozen.params.model_dump(exclude_defaults=True),
        "encoder": frozen.snapshot.view.space.encoder,
        "space": frozen.snapshot.view.space.digest,
        "exact": frozen.exact,
        "total": frozen.total,
        "notes": frozen.notes,
        "items": items,
    }
    return json.dumps(about, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")


def _csv(_: RankedResult, items: list[dict[str, Any]]) -> bytes:
    names = list(dict.fromkeys(name for item in items for name in item if name != "thumbnail"))
    return csv_bytes(names, items)


def _trec(frozen: RankedResult, items: list[dict[str, Any]]) -> bytes:
    # What reads a run sorts it by score, and a judge's order is not that of the scores.
    scores = [-one["rank"] if frozen.judged else one["score"] for one in items]
    words = ["_".join(one["id"].split()) or "_" for one in items]  # a space would end the column
    hits = zip(words, items, scores, strict=True)
    lines = [f"{frozen.id} Q0 {word} {one['rank']} {score} eyespot\n" for word, one, score in hits]
    return "".join(lines).encode("utf-8", "backslashreplace")


WRITERS = {
    "json": DownloadFormat("application/json", "json", _json),
    "csv": DownloadFormat("text/csv; charset=utf-8", "csv", _csv),
    "trec": DownloadFormat("text/plain; charset=utf-8", "run.txt", _trec),
    "camtrap-dp": DownloadFormat("application/zip", "camtrap-dp.zip", archive),
}
