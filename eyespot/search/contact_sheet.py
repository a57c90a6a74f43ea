"""Contact sheets: what a search found, as thumbnails a person can look at, in one HTML file or one PNG picture.

The HTML file needs nothing beside it: no script, no font, no address. It follows the reader's light or dark mode and
the width of the screen. The PNG draws the same panels one under the other.
"""

from __future__ import annotations

import base64
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from PIL import Image, ImageDraw, ImageFont, ImageOps

_Font: TypeAlias = ImageFont.ImageFont | ImageFont.FreeTypeFont

NOTHING = "No picture matched."
UNREADABLE = "unreadable"
_JOINERS = frozenset("\u200c\u200d")  # they shape the letters beside them and draw nothing
_UNSEEN = frozenset({"Cc", "Cf"})


@dataclass(frozen=True)
class Tile:
    """One picture of a ranking; without a thumbnail a box says that the file could not be read."""

    thumbnail: bytes | None  # JPEG
    rank: int
    score: float
    title: str
    caption: str = ""  # author, licence, …: only what was asked for


@dataclass(frozen=True)
class SheetPanel:
    """One ranking: what was searched, what to know about the answer, and the pictures, best first."""

    heading: str
    note: str = ""
    tiles: Sequence[Tile] = ()
    query_picture: bytes | None = None  # JPEG


# -- HTML ---------------------------------------------------------------------------------------------------

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header><h1 dir="auto">{title}</h1></header>
<main>
{body}</main>
{footer}</body>
</html>
"""

_STYLE = """\
:root { color-scheme: light dark; --page: #f6f5f2; --card: #fff; --mat: #ecebe6; --ink: #1d1c1a; --soft: #66635c;
  --line: #dfddd6; --mark: #0b6b57 }
@media (prefers-color-scheme: dark) {
  :root { --page: #141413; --card: #1f1f1d; --mat: #2a2926; --ink: #eeece6; --soft: #a5a198;
    --line: #34332f; --mark: #63cfb2 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: clamp(1rem, 3vw, 3rem); max-width: 110rem; background: var(--page); color: var(--ink);
  font: 16px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", Arial, sans-serif }
h1, h2, p, ol, figure { margin: 0; padding: 0 }
h1 { font-size: clamp(1.4rem, 2.5vw, 2rem); line-height: 1.2; letter-spacing: -.015em; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; line-height: 1.3; overflow-wrap: anywhere }
section { margin-top: 2.25rem; padding-top: 1.5rem; border-top: 1px solid var(--line) }
.asked { display: flex; gap: 1rem; align-items: center; margin-bottom: 1.25rem }
.asked img { flex: none; width: 5.5rem; height: 5.5rem; margin: 4px; object-fit: cover; border-radius: .6rem;
  outline: 2px solid var(--mark); outline-offset: 2px }
.note, .none, footer { color: var(--soft) }
.none { padding: 2rem; text-align: center; border: 1px dashed var(--line); border-radius: .75rem }
ol { list-style: none; display: grid; gap: clamp(.6rem, 1.2vw, 1.25rem);
  grid-template-columns: repeat(auto-fill, minmax(min(13.5rem, calc(50% - .6rem)), 1fr)) }
figure { height: 100%; overflow: hidden; background: var(--card); border: 1px solid var(--line); border-radius: .75rem }
.mat { display: grid; place-items: center; aspect-ratio: 4 / 3; background: var(--mat); color: var(--soft) }
.mat img { display: block; width: 100%; height: 100%; min-height: 0; object-fit: contain }
figcaption { padding: .6rem .8rem .75rem }
.facts { display: flex; justify-content: space-between; margin-bottom: .15rem; font-size: .8rem; color: var(--soft);
  font-variant-numeric: tabular-nums }
.facts b { color: var(--mark) }
.title, .caption { display: -webkit-box; -webkit-box-orient: vertical; overflow: hidden; overflow-wrap: anywhere }
.title { -webkit-line-clamp: 2; line-height: 1.3 }
.caption { -webkit-line-clamp: 3; margin-top: .25rem; font-size: .8rem; color: var(--soft) }
footer { margin-top: 2.5rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .85rem;
  overflow-wrap: anywhere }
@media print { section { break-inside: auto } li { break-inside: avoid } }
"""


def as_html(title: str, panels: Sequence[SheetPanel], footer: str = "") -> str:
    """One self-contained page; every text is escaped."""
    return page(title, "".join(map(_section, panels)), footer)


def page(title: str, body: str, footer: str = "", style: str = "") -> str:
    """The page around a body of HTML that the caller has escaped, with rules of its own after those of all sheets."""
    footer = f'<footer dir="auto">{safe(footer)}</footer>\n' if footer else ""
    return _PAGE.format(title=safe(title), style=_STYLE + style, body=body, footer=footer)


def _section(panel: SheetPanel) -> str:
    picture = img(panel.query_picture, "the picture searched with")
    heading = f'<h2 dir="auto">{safe(panel.heading)}</h2>'
    note = f'<p class="note" dir="auto">{safe(panel.note)}</p>' if panel.note else ""
    found = "".join(map(_item, panel.tiles))
    answer = f"<ol>\n{found}</ol>" if found else f'<p class="none">{NOTHING}</p>'
    return f'<section>\n<div class="asked">{picture}<div>{heading}{note}</div></div>\n{answer}\n</section>\n'


def _item(tile: Tile) -> str:
    title = safe(tile.title)
    caption = f'<div class="caption" dir="auto">{safe(tile.caption)}</div>' if tile.caption else ""
    return (
        f'<li><figure><div class="mat">{img(tile.thumbnail, tile.title) or UNREADABLE}</div><figcaption>'
        f'<div class="facts"><b>{tile.rank}</b><span>{tile.score:.3f}</span></div>'
        f'<div class="title" dir="auto" title="{title}">{title}</div>{caption}</figcaption></figure></li>\n'
    )


def img(jpeg: bytes | None, alt: str) -> str:
    """The picture within the page, or nothing where there is none or it cannot be read."""
    if jpeg is None or _decoded(jpeg) is None:
        return ""
    return f'<img src="data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}" alt="{safe(alt)}">'


def safe(raw: str) -> str:
    """What may stand in a page, between tags and as an attribute."""
    return escape(tidy(raw))


def tidy(text: str) -> str:
    """One line that reads as it is written: without control characters, such as those that turn `gpj.exe` around."""
    whole = text.encode("utf-8", "replace").decode()  # a file name that is not UTF-8 holds halves of characters
    kept = (char for char in whole if char.isspace() or char in _JOINERS or unicodedata.category(char) not in _UNSEEN)
    return " ".join("".join(kept).split())


def _decoded(jpeg: bytes) -> Image.Image | None:
    try:
        return Image.open(BytesIO(jpeg), formats=["JPEG"]).convert("RGB")
    except (OSError, SyntaxError, ValueError):
        return None


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
    picture = _decoded(panel.query_picture) if panel.query_picture is not None else None
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
    score = f"{tile.score:.3f}"
    room = round(_font(0, _SCORE.size).getlength(score)) + 1
    line = _written(str(tile.rank), _RANK, facts_width)
    line.paste(_written(score, _SCORE, room), (facts_width - room, 0))
    texts = [line, _written(tile.title, _NAME, width - 2 * PAD)]
    texts += [_written(tile.caption, _CAPTION, width - 2 * PAD)] if tile.caption else []
    text = _stacked(texts, 3, CARD)
    # The whole picture in the middle of a 4:3 box, or a word in its place
    mat = Image.new("RGB", (width, width * 3 // 4), MAT)
    picture = _decoded(tile.thumbnail) if tile.thumbnail is not None else None
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
    lines = [*lines, _ellipsised(drawable, font, width)] if drawable else lines
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


def _ellipsised(text: str, font: _Font, width: int) -> str:
    if font.getlength(text) <= width:
        return text
    return text[: _fitting(text, font, width - font.getlength("…"))].rstrip() + "…"


# Pillow's own font has the letters of English only, so fonts that most systems have come after it, by script.
_FONTS = (
    *("LiberationSans-Regular.ttf", "Arial.ttf", "arial.ttf", "NotoSans-Regular.ttf", "DejaVuSans.ttf"),
    *(
        "Arial Unicode.ttf",
        "NotoSansCJK-Regular.ttc",
        "PingFang.ttc",
        "AppleSDGothicNeo.ttc",
        "msyh.ttc",
        "YuGothM.ttc",
    ),
    *("malgun.ttf", "wqy-zenhei.ttc", "NotoSansArabic-Regular.ttf", "NotoSansHebrew-Regular.ttf", "Nirmala.ttf"),
)
_PLAIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "ß": "ss",
    "Ł": "L",
    "ł": "l",
    "Ø": "O",
    "ø": "o",
    "æ": "ae",
    "×": "x",
}


def _drawable(text: str, size: int) -> tuple[_Font, str]:
    """The first font that draws a text, else the one that draws most, and the rest made plain: é → e, 字 → □."""
    fonts = range(1 + len(_FONTS))
    whole = (number for number in fonts if not _missing(text, number))
    most = next(whole, None)
    if most is None:
        most = min(fonts, key=lambda number: (len(_missing(text, number)), not _has(number, "□")))
    missing = _missing(text, most)
    return _font(most, size), "".join(_plain(char, most) if char in missing else char for char in text)


def _missing(text: str, number: int) -> set[str]:
    return {char for char in set(text) - _JOINERS if not _has(number, char)}


def _plain(char: str, number: int) -> str:
    letter = _PLAIN.get(char, unicodedata.normalize("NFKD", char)[0])
    return letter if all(_has(number, part) for part in letter) else "□" if _has(number, "□") else "?"


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
