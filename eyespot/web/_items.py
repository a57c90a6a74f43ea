"""Hits as programs read them: rank, id, score, and all that the gallery knows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from eyespot.photos.videos.addresses import frame_of, title_of as title_of_path
from eyespot.search.by_words import as_fields, reasons
from eyespot.types import Query, UsageError
from eyespot.web._problems import Problem
from eyespot.web.found.calibrated import CalibrationSummary
from eyespot.web.found.results import RankedResult, Slice
from eyespot.web.found.snapshot import Snapshot

UNSAID = {"id", "path", "thumbnail", "video", "taken", "taken_from", "position_from", "camera", "title", "author"}
UNSAID |= {"owner", "verdict", "licence", "license", "source", "url"}
RATIOS = (10, 60)  # twentieths; style.css has a class for each


def items_of(result: RankedResult, found: Slice) -> list[dict[str, Any]]:
    """The hits of a stretch of a ranking, best first; those that a judge put elsewhere with what it said of them."""
    rows = found.rows.tolist()
    query = result.query or Query("q", ())
    why = reasons(result.snapshot.collection, query, result.header, rows)
    others = result.snapshot.groups.others(found.rows, result.counted).tolist() if result.grouped else [0] * len(rows)
    hits = zip(rows, result.snapshot.facts(rows), found.scores.tolist(), others, why, strict=True)
    # In a tab, the rank in the whole result
    placed_at = {}
    if result.params.verdict is not None and result.origin is not None:
        deep = found.first + len(rows) + len(result.without) if result.params.verdict == "unjudged" else 0
        result.origin.slice(0, deep)
        placed_at = {row: rank for rank, row in enumerate(result.origin.rows.tolist(), 1)}
    items = []
    for rank, (row, facts, score, more, notes) in enumerate(hits, found.first):
        item: dict[str, Any] = {"rank": rank, "score": round(score, 6), "others": more}
        item |= {"why": as_fields(notes)} if notes else {}
        item |= {"first_rank": placed_at[row]} if row in placed_at else {}
        if (placed := result.judged.get(row)) is not None:
            item |= {"first_rank": placed.rank, "judge_says": _rounded(placed.probability)}
        items.append(item | item_of(facts))
    return items


def items_by_id(result: RankedResult, wanted: list[str]) -> list[dict[str, Any]]:
    """These hits, with the rank at which each was found."""
    if not wanted:
        return []
    rows = {row for id in wanted if (row := result.snapshot.row_of(id)) is not None}
    whole = result.slice(0, 1000)
    ranks = [at for at, row in enumerate(whole.rows.tolist()) if row in rows]
    picked = Slice(1, whole.rows[ranks], whole.scores[ranks], False)
    return [{**item, "rank": at + 1, "verdict": None} for item, at in zip(items_of(result, picked), ranks, strict=True)]


def with_probability(items: list[dict[str, Any]], known: CalibrationSummary | None) -> list[dict[str, Any]]:
    """The hits with how probable each is, where verdicts tell it."""
    if known is None:
        return items
    known_of = {id: {"probability": _rounded(share)} for id, share in known.calibration.probability.items()}
    return [item | known_of.get(item["id"], {}) for item in items]


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)


def item_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """One picture; a label that has the name of something promised does not replace it."""
    promised = {"id": facts["id"], "path": facts["path"], "thumbnail": thumbnail_address(facts["id"])}
    if frame := frame_of(facts["path"] or ""):
        promised["video"] = f"/v1/videos/{quote(facts['id'], safe='')}#t={frame.ms / 1000:g}"
    reserved = {*promised, "video", "rank", "score", "others", "why", "first_rank", "judge_says", "probability"}
    reserved |= {"verdict", "verdicts"}  # people's, where they are told
    return promised | {name: value for name, value in facts.items() if name not in reserved}


def thumbnail_address(id: str, size: int = 320) -> str:
    """Where a small picture of an item is."""
    return f"/v1/thumbnails/{size}/{quote(id, safe='')}"


def title_of(item: Mapping[str, Any]) -> str:
    """What an item is called: its title, else its file's name."""
    return str(item.get("title") or title_of_path(item["path"] or "") or item["id"])


def known_words(item: Mapping[str, Any], title: str) -> str:
    """What is known of a photo, for whoever does not see it; nothing of its file, its owner and its licence."""
    words = [title, *filter(None, [str(item.get("taken") or "")[:10]])]
    if item.get("latitude") is not None and item.get("longitude") is not None:
        words.append(f"at {item['latitude']:.2f}, {item['longitude']:.2f}")
    labels = ((name, value) for name, value in item.items() if name not in UNSAID and isinstance(value, str))
    words += islice((f"{name.replace('_', ' ')}: {value}" for name, value in labels if 0 < len(value) < 60), 4)
    return ", ".join(words)


def ratio_class(item: Mapping[str, Any]) -> str:
    """The class of a photo's shape, width by height in twentieths: rows of the grid are as high as they are full."""
    width, height = item.get("width") or 4, item.get("height") or 3
    narrowest, widest = RATIOS
    return f"r{min(max(round(20 * width / height), narrowest), widest)}"


def cursor_of(result: RankedResult, found: Slice) -> str | None:
    """What brings the next stretch of the same frozen result; None at its end."""
    return f"{result.id}.{found.first - 1 + len(found.rows)}" if found.more else None


def read_cursor(cursor: str) -> tuple[str, int]:
    """The result and how many of its ranks were seen; `UsageError` for what is not a cursor."""
    id, _, seen = cursor.partition(".")
    if not (id.isalnum() and seen.isascii() and seen.isdigit() and len(seen) < 10):
        raise UsageError("this is not a cursor; give what `next` held, or leave it out to begin anew")
    return id, int(seen)


def existing_row(snapshot: Snapshot, id: str) -> int:
    """The row of an item; `Problem` where nothing has this id, or its picture is gone."""
    row = snapshot.row_of(id)
    if row is None:
        raise Problem(404, "no item has this id, or its picture is gone")
    return row
