"""Contact sheets of search results: each run a panel of thumbnails with rank, score and title.

A sheet carries no position and no owner's name unless their columns are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.places import read_again
from eyespot.photos.videos.addresses import title_of
from eyespot.search.contact_sheet import SheetPanel, Tile, as_html, as_png
from eyespot.types import EyespotError, Run

SIDE = 320  # of a thumbnail's longer side, in pixels


def write_html(place: Path, runs: Sequence[Run], title: str = "eyespot", captions: Sequence[str] = ()) -> None:
    """One self-contained page; `captions` are the columns shown under each title (author, licence, …)."""
    write_page(place, as_html(title, panels(runs, captions)))


def write_png(place: Path, runs: Sequence[Run], title: str = "eyespot", captions: Sequence[str] = ()) -> None:
    """The same sheet as a picture."""
    _write(place, as_png(title, panels(runs, captions)))


def write_page(place: Path, page: str) -> None:
    """A page that is made already."""
    _write(place, page.encode())


def panels(runs: Sequence[Run], captions: Sequence[str] = ()) -> list[SheetPanel]:
    """One panel for each run, headed by what was searched."""
    sheet_panels = []
    for run in runs:
        (query,) = run
        tiles = []
        for rank, hit in enumerate(run[query], 1):
            facts = run.facts[hit.image]
            title = facts.get("title") or (title_of(facts["path"]) if facts["path"] else facts["id"])
            more = [f"+{facts['others']}"] if facts.get("others") else []  # of its group
            caption = " · ".join([*more, *(str(facts[name]) for name in captions if facts.get(name))])
            score = None if run.header.get("by_date") else hit.score
            tiles.append(Tile(thumbnail_of(facts["path"]), rank, score, str(title), caption))
        heading = run.header.get("heading", run.header["query"])
        pictures = run.header["pictures"]
        picture = thumbnail_of(pictures[0]) if pictures else None
        sheet_panels.append(SheetPanel(heading, " ".join(run.notes), tiles, picture))
    return sheet_panels


def thumbnail_of(path: str | None, side: int = SIDE) -> bytes | None:
    """A picture of a gallery as a small JPEG; None if there is no path or what lies there is no picture."""
    try:
        return thumbnail(read_again(path), side) if path else None
    except (OSError, BadPicture):
        return None


def _write(place: Path, data: bytes) -> None:
    try:
        place.write_bytes(data)
    except OSError as error:
        raise EyespotError(f"cannot write {place}: {(error.strerror or str(error)).lower()}") from error
