"""Contact sheets: what a search found, as thumbnails a person can look at, in one HTML file or one PNG picture.

The HTML file needs nothing beside it: no script, no font, no address. It follows the reader's light or dark mode and
the width of the screen. The PNG draws the same panels one under the other. A sheet of search results carries no
position and no owner's name unless their columns are asked for.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, TypeAlias

from PIL import Image, ImageDraw, ImageFont, ImageOps

from eyespot.html import JOINERS, decoded, environment, render, tidy
from eyespot.photos.pictures import BadPicture, thumbnail
from eyespot.photos.places import read_again
from eyespot.photos.videos.addresses import title_of
from eyespot.types import EyespotError, Run

_Font: TypeAlias = ImageFont.ImageFont | ImageFont.FreeTypeFont

NOTHING = "No picture matched."
UNREADABLE = "unreadable"
SIDE = 320  # of a thumbnail's longer side, in pixels
PIECE = 4096  # characters: what is sent of a page at once, at least


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
    tiles: Sequence[Tile] = ()
    query_picture: bytes | None = None  # JPEG


def as_html(title: str, panels: Sequence[SheetPanel], footer: str = "") -> str:
    """One self-contained page."""
    content = {"title": title, "panels": panels, "footer": footer}
    return render("contact_sheet.html", nothing=NOTHING, unreadable=UNREADABLE, **content)


def html_pieces(title: str, tiles: Iterable[Tile]) -> Iterator[str]:
    """The page of one ranking in pieces, the first before any tile is made: for those who cannot wait for all."""
    panel = {"heading": title, "note": "", "query_picture": None, "tiles": tiles}
    content = {"title": title, "panels": [panel], "footer": "", "nothing": NOTHING, "unreadable": UNREADABLE}
    waiting, size = [], PIECE
    for piece in environment().get_template("contact_sheet.html").generate(content):
        waiting.append(piece)
        size += len(piece)
        if size > PIECE:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


# -- PNG ----------------------------------------------------------------------------------------------------

PAGE, CARD, MAT, INK, SOFT, LINE, MARK = "#f6f5f2", "#ffffff", "#ecebe6", "#1d1c1a", "#66635c", "#dfddd6", "#0b6b57"
MARGIN, GAP, PAD, RADIUS = 48, 20, 14, 12  # pixels
TILE = 260  # pixels: a tile is at least so wide
ASKED = 88  # pixels: the side of the picture searched with


class _Style(NamedTuple):
    """How a block of text looks."""

    size: int  # pixels
    ink: str
    paper: str
    lines: int  # at most; the last one ends in an ellipsis
    weight: float = 0.0  # pixels added around each stroke


_TITLE, _HEADING, _NOTE = _Style(38, INK, PAGE, 3, 0.6), _Style(26, INK, PAGE, 3, 0.5), _Style(18, SOFT, PAGE, 6)
_NAME, _CAPTION = _Style(18, INK, CARD, 2), _Style(15, SOFT, CARD, 3)
_RANK, _SCORE = _Style(16, MARK, CARD, 1, 0.4), _Style(16, SOFT, CARD, 1)
_PLACEHOLDER = _Style(16, SOFT, MAT, 1)


def as_png(title: str, panels: Sequence[SheetPanel], width: int = 1600) -> bytes:
    """The same content as one picture, `width` pixels wide (at least 320)."""
    width = max(width, 320)
    room = width - 2 * MARGIN
    blocks = [_written(title, _TITLE, room), *(block for panel in panels for block in _blocks(panel, room))]
    sheet = Image.new("RGB", (width, 2 * MARGIN + _height(blocks, GAP)), PAGE)
    sheet.paste(_stacked(blocks, GAP, PAGE), (MARGIN, MARGIN))
    png = BytesIO()
    sheet.save(png, "PNG")
    return png.getvalue()


def _blocks(panel: SheetPanel, width: int) -> Iterator[Image.Image]:
    block = Image.new("RGB", (width, 2 * GAP), PAGE)
    block.paste(LINE, (0, GAP, width, GAP + 1))
    yield block
    picture = decoded(panel.query_picture) if panel.query_picture is not None else None
    indent = ASKED + GAP if picture else 0
    texts = [_written(panel.heading, _HEADING, width - indent)]
    texts += [_written(panel.note, _NOTE, width - indent)] if panel.note else []
    text = _stacked(texts, 4, PAGE)
    block = Image.new("RGB", (width, max(text.height, ASKED if picture else 0)), PAGE)
    block.paste(text, (indent, (block.height - text.height) // 2))
    if picture:
        cropped = ImageOps.fit(picture, (ASKED, ASKED))
        block.paste(cropped, (0, (block.height - ASKED) // 2), _rounded(cropped.size))
    yield block
    columns = max(1, (width + GAP) // (TILE + GAP))
    side = (width - (columns - 1) * GAP) // columns
    for start in range(0, len(panel.tiles), columns):
        yield _row([_content(tile, side) for tile in panel.tiles[start : start + columns]], width)
    if not panel.tiles:
        yield _written(NOTHING, _NOTE, width)


def _row(contents: Sequence[Image.Image], width: int) -> Image.Image:
    """Cards of one height, side by side."""
    height = max(content.height for content in contents) + PAD
    row = Image.new("RGB", (width, height), PAGE)
    for column, content in enumerate(contents):
        place = (column * (content.width + GAP), 0)
        card = Image.new("RGB", (content.width, height), CARD)
        card.paste(content)
        row.paste(LINE, (*place, place[0] + card.width, height), _rounded(card.size))
        row.paste(card, place, _rounded(card.size, inset=1))
    return row


def _content(tile: Tile, width: int) -> Image.Image:
    facts_width = width - 2 * PAD
    score = "" if tile.score is None else f"{tile.score:.3f}"
    room = round(_font(0, _SCORE.size).getlength(score)) + 1
    line = _written(str(tile.rank), _RANK, facts_width)
    line.paste(_written(score, _SCORE, room), (facts_width - room, 0))
    texts = [line, _written(tile.title, _NAME, width - 2 * PAD)]
    texts += [_written(tile.caption, _CAPTION, width - 2 * PAD)] if tile.caption else []
    text = _stacked(texts, 3, CARD)
    # The whole picture in the middle of a 4:3 box, or a word in its place
    mat = Image.new("RGB", (width, width * 3 // 4), MAT)
    picture = decoded(tile.thumbnail) if tile.thumbnail is not None else None
    if picture:
        shown = ImageOps.contain(picture, mat.size, Image.Resampling.LANCZOS)
    else:
        shown = _written(UNREADABLE, _PLACEHOLDER, round(_font(0, _PLACEHOLDER.size).getlength(UNREADABLE)) + 1)
    mat.paste(shown, ((mat.width - shown.width) // 2, (mat.height - shown.height) // 2))
    content = Image.new("RGB", (width, mat.height + PAD + text.height), CARD)
    content.paste(mat)
    content.paste(text, (PAD, mat.height + PAD // 2))
    return content


def _stacked(blocks: Sequence[Image.Image], gap: int, paper: str) -> Image.Image:
    stack = Image.new("RGB", (max(block.width for block in blocks), _height(blocks, gap)), paper)
    tops = accumulate((block.height + gap for block in blocks), initial=0)
    for top, block in zip(tops, blocks, strict=False):
        stack.paste(block, (0, top))
    return stack


def _height(blocks: Sequence[Image.Image], gap: int) -> int:
    return sum(block.height for block in blocks) + gap * (len(blocks) - 1)


@cache
def _rounded(size: tuple[int, int], inset: int = 0) -> Image.Image:
    """A mask with round corners, drawn four times as large so that they come out smooth."""
    mask = Image.new("L", (4 * size[0], 4 * size[1]))
    box = (4 * inset, 4 * inset, mask.width - 1 - 4 * inset, mask.height - 1 - 4 * inset)
    ImageDraw.Draw(mask).rounded_rectangle(box, 4 * RADIUS, fill=255)
    return mask.resize(size, Image.Resampling.BOX)


# -- text in a picture --------------------------------------------------------------------------------------


def _written(text: str, style: _Style, width: int) -> Image.Image:
    font, drawable = _drawable(tidy(text)[:1000], style.size)
    most = style.lines
    lines: list[str] = []
    while drawable and len(lines) < most - 1:
        end = _fitting(drawable, font, width)
        space = drawable.rfind(" ", 0, end + 1) if end < len(drawable) else -1
        end = space if space > 0 else end
        lines.append(drawable[:end])
        drawable = drawable[end:].lstrip()
    if drawable and font.getlength(drawable) > width:
        drawable = drawable[: _fitting(drawable, font, width - font.getlength("…"))].rstrip() + "…"
    lines += [drawable] if drawable else []
    leading = round(style.size * 1.35)
    block = Image.new("RGB", (width, leading * max(1, len(lines))), style.paper)
    pen = ImageDraw.Draw(block)
    for number, line in enumerate(lines):
        pen.text((0, number * leading + style.size), line, style.ink, font, anchor="ls", stroke_width=style.weight)
    return block


def _fitting(text: str, font: _Font, width: float) -> int:
    """How many characters fit, at least one."""
    lengths = range(1, len(text) + 1)
    return max(1, bisect_right(lengths, width, key=lambda end: font.getlength(text[:end])))


# Pillow's own font has the letters of English only, so fonts that most systems have come after it, by script.
_FONTS = """LiberationSans-Regular.ttf|Arial.ttf|arial.ttf|NotoSans-Regular.ttf|DejaVuSans.ttf|Arial Unicode.ttf
NotoSansCJK-Regular.ttc|PingFang.ttc|AppleSDGothicNeo.ttc|msyh.ttc|YuGothM.ttc|malgun.ttf|wqy-zenhei.ttc
NotoSansArabic-Regular.ttf|NotoSansHebrew-Regular.ttf|Nirmala.ttf""".replace("\n", "|").split("|")
_PLAIN = dict(zip("–—−→ßŁłØøæ×", ["-", "-", "-", "->", "ss", "L", "l", "O", "o", "ae", "x"], strict=True))


def _drawable(text: str, size: int) -> tuple[_Font, str]:
    """The first font that draws a text, else the one that draws most, and the rest made plain: é → e, 字 → □."""
    fonts = range(1 + len(_FONTS))
    whole = (number for number in fonts if not _missing(text, number))
    most = next(whole, None)
    if most is None:
        most = min(fonts, key=lambda number: (len(_missing(text, number)), not _has(number, "□")))
    plain = {}
    for char in _missing(text, most):
        letter = _PLAIN.get(char, unicodedata.normalize("NFKD", char)[0])
        box = "□" if _has(most, "□") else "?"
        plain[char] = letter if all(_has(most, part) for part in letter) else box
    return _font(most, size), "".join(plain.get(char, char) for char in text)


def _missing(text: str, number: int) -> set[str]:
    return {char for char in set(text) - JOINERS if not _has(number, char)}


@cache
def _has(number: int, char: str) -> bool:
    font = _font(number, 16)
    return bytes(font.getmask(char)) != bytes(font.getmask("\U0010fffe")) or char.isspace()


@cache
def _font(number: int, size: int) -> _Font:
    """Pillow's own font for 0, else the one of `_FONTS`, or Pillow's again where it is not installed."""
    if number:
        with suppress(OSError):
            return ImageFont.truetype(_FONTS[number - 1], size)
    return ImageFont.load_default(size)


# -- sheets of search results ---------------------------------------------------------------------------------


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
