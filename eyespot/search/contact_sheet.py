"""Contact sheets: what a search found, as thumbnails in one HTML file.

The file needs nothing beside it: no script, no font, no address. It follows the reader's light or dark mode and the
width of the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from eyespot.html import environment, render
from eyespot.photos.places import read_again

NOTHING = "No picture matched."
UNREADABLE = "unreadable"
WORDS = {"nothing": NOTHING, "unreadable": UNREADABLE, "footer": ""}  # of the templates
SIDE = 320  # of a thumbnail's longer side, in pixels
PARTS = 500  # of a page that are sent at once: some thirty thumbnails


@dataclass(frozen=True)
class Tile:
    """One picture of a ranking; without a thumbnail a box says that the file could not be read."""

    thumbnail: bytes | None  # JPEG
    rank: int
    score: float | None
    title: str
    caption: str = ""  # author, licence, …: only what was asked for


@dataclass(frozen=True)
class SheetPanel:
    """One ranking: what was searched, what to know about the answer, and the pictures, best first."""

    heading: str
    note: str = ""
    tiles: Iterable[Tile] = ()
    query_picture: bytes | None = None  # JPEG


def as_html(title: str, panels: Sequence[SheetPanel]) -> str:
    """One self-contained page."""
    return render("contact_sheet.html", title=title, panels=panels, **WORDS)


def html_pieces(title: str, tiles: Iterable[Tile]) -> Iterator[str]:
    """The page of one ranking in pieces, as its tiles are made: for those who cannot wait for all."""
    content = {"title": title, "panels": [SheetPanel("", tiles=tiles)], **WORDS}
    made = environment().get_template("contact_sheet.html").generate(content)
    while piece := "".join(islice(made, PARTS)):
        yield piece


def thumbnail_of(path: str | None, side: int = SIDE) -> bytes | None:
    """A picture of a gallery as a small JPEG; None if there is no path or what lies there is no picture."""
    from eyespot.photos.pictures import BadPicture, thumbnail  # with all that reads pictures, which words do not need

    try:
        return thumbnail(read_again(path), side) if path else None
    except (OSError, BadPicture):
        return None
