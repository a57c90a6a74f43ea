"""Query arithmetic as one writes it: `2:heron + ./pool.jpg - people`, the language of rclip.

* ` + ` and ` - ` join terms only where they stand free between spaces: "black-and-white" and "T-shirt" are words. A
  free sign may also open the query: `- people` alone ranks by what is least like people.
* A minus right before a word, as in `dog -people`, leaves out this one word; the words behind it are wanted again.
* `2:heron` weighs a term. The number has no sign, and no digit follows the colon: "16:9" and "10:30" are words.
* A term is a picture if it begins with `./`, `../`, `/`, `~/` or a drive letter, or ends like a picture file (`.jpg`)
  or like a frame of a video (`clip.mp4#t=00:01:23.500`).
* Double quotes around a term protect `+`, `-`, `:` and spaces within, for words and file names alike. Single quotes
  make it words whatever it looks like. A quote is doubled to stand inside its own kind. A quoted part in the middle
  of a term keeps its quotes, and its signs are not operators.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeAlias

from eyespot.encoders import upright_picture
from eyespot.photos.kinds import SUFFIXES
from eyespot.photos.places import place_alike
from eyespot.photos.videos.addresses import file_of, frame_of
from eyespot.types import Query, Term, UsageError

_WEIGHT = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+):(?=[^\s0-9])"
_QUOTED = r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*')(?!\S)"""
_PIECE = re.compile(rf"(?P<sign>[+-])(?!\S)|(?P<run>(?:{_WEIGHT})?{_QUOTED}|\S+)")
_WEIGHED = re.compile(rf"(?P<weight>{_WEIGHT})?(?P<body>.*)", re.DOTALL)
MINUS_WORD = re.compile(rf"-(?:{_WEIGHT})?[^\W\d_]\S+")
_QUOTE_OPENS = re.compile(rf"(?:{_WEIGHT})?[\"']")
_QUOTED_RUN = re.compile(rf"(?:{_WEIGHT})?{_QUOTED}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PLACE = re.compile(r"\.{0,2}/|~/|\.{1,2}\\|[A-Za-z]:[/\\]")


Find: TypeAlias = Callable[[str, str], Path]  # the place of a picture as written, and the way out if it is not there


def parse(text: str, id: str = "q", find: Find | None = None) -> Query:
    """The query a text means. Raises `UsageError` for a term that is missing, weightless or a picture not there.

    `find` says where a picture lies; None takes files of this machine.
    """
    if not text.strip():
        raise UsageError("the query is empty; give words, a picture or both, as in: heron + ./pool.jpg")
    find, terms = find or _existing, []
    for sign, written in _terms(text):
        match = _WEIGHED.fullmatch(written)
        assert match is not None  # every text is a body
        size = match["weight"] or "1:"
        weight = float(f"{sign}{size[:-1]}")
        if not 0 < abs(weight) < math.inf:
            raise UsageError(
                f"the weight {size} counts for nothing or without end; leave the term out or weigh it anew"
            )
        quote, body = _unquoted(match["body"])
        if not body.strip():
            raise UsageError("a term of the query is empty; write words or a picture after each + or -")
        if quote != "'" and _is_place(body):
            way_out = "check the path, or put it in single quotes to search for the words"
            terms.append(Term(weight, image=find(body, way_out)))
        else:
            terms.append(Term(weight, text=body))
    return Query(id, tuple(terms))


def format_query(query: Query) -> str:
    """The text that `parse` reads as this query, for titles and records."""
    first, *others = query.terms
    opening = "- " if first.weight < 0 else ""
    return opening + _written(first) + "".join(f" {'-' if t.weight < 0 else '+'} {_written(t)}" for t in others)


def with_picture(query: Query | None, image: Any) -> Query:
    """The query with a picture of weight 1 before its terms, or the picture alone.

    One in memory (a PIL image, an array, an open file) is stored as a file until the program ends.
    """
    query = query or Query("q", ())
    if not isinstance(image, str | Path):
        from eyespot.photos.pictures import id_of  # with all that reads pictures, which most words do not need

        picture, data = upright_picture(image), BytesIO()
        picture.save(data, "PNG")
        image = Path(_pictures().name) / f"{id_of(data.getvalue())}.png"
        image.write_bytes(data.getvalue())
    place = _existing(os.path.expanduser(image), "check the path")
    return Query(query.id, (Term(1.0, image=place), *query.terms))


@cache
def _pictures() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="eyespot-queries-")


def refuse_halves(texts: Iterable[str]) -> None:
    """`UsageError` for words that a terminal passed on in another encoding."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{text!r} is not valid UTF-8; write it in a terminal that speaks UTF-8") from None


# -- reading ------------------------------------------------------------------------------------------------


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """(sign, what is written) for each term; a missing sign is +, and words with a minus of their own come last."""
    avoided = [m for m in _PIECE.finditer(text) if MINUS_WORD.fullmatch(m["run"] or "")]
    for m in reversed(avoided):
        text = text[: m.start()].rstrip() + text[m.end() :]
    yield from _signed(text) if text.strip() or not avoided else ()
    yield from (("-", m[0][1:]) for m in avoided)


def _signed(text: str) -> Iterator[tuple[str, str]]:
    """The same by free signs alone."""
    bounds = [(m.start(), m.end(), m["sign"]) for m in _PIECE.finditer(text) if m["sign"]]
    if not bounds or text[: bounds[0][0]].strip():
        bounds.insert(0, (0, 0, "+"))
    stops = [start for start, _, _ in bounds[1:]] + [len(text)]
    for (_, end, sign), stop in zip(bounds, stops, strict=True):
        yield sign, text[end:stop].strip()


def _unquoted(body: str) -> tuple[str, str]:
    """The kind of quotes around the whole body, if any, and what they hold."""
    if not re.fullmatch(_QUOTED, body):
        return "", body
    quote = body[0]
    return quote, body[1:-1].replace(quote * 2, quote)


def _is_place(bare: str) -> bool:
    is_address = _PLACE.match(bare) or _ADDRESS.match(bare) or frame_of(bare) is not None
    return bool(is_address) or Path(bare).suffix.lower() in SUFFIXES


def _existing(place: str, way_out: str) -> Path:
    if _ADDRESS.match(place):
        raise UsageError(f"eyespot does not fetch addresses; save the picture first and give its path, not {place}")
    path = Path(place).expanduser() if place.startswith("~/") else Path(place)
    if not os.path.isfile(file_of(str(path))):  # of a frame, its video
        if alike := place_alike(os.path.abspath(path)):
            return Path(alike)
        raise UsageError(f"there is no picture {place}; {way_out}")
    return path


# -- writing ------------------------------------------------------------------------------------------------


def _written(term: Term) -> str:
    weight = abs(term.weight)
    prefix = "" if weight == 1 else f"{Decimal(repr(float(weight))).normalize():f}:"
    if term.image is not None:
        image = term.image
        place = image.as_posix()
        place = place if image.is_absolute() else f"./{place}"
        body = place if _reads_back(place) else _quoted(place, '"')
    else:
        text = str(term.text)
        body = _quoted(text, "'") if _is_place(text) else text if _reads_back(text) else _quoted(text, '"')
    # A digit after the colon would undo the weight: 2:3 is a ratio.
    return prefix + (_quoted(body, '"') if prefix and body[0] in "0123456789" else body)


def _reads_back(bare: str) -> bool:
    """Whether this text, unquoted, is one term of weight 1 that means itself, whatever follows it."""
    if list(_terms(bare)) != [("+", bare)] or re.match(_WEIGHT, bare) or _unquoted(bare)[0]:
        return False
    runs = [piece["run"] for piece in _PIECE.finditer(bare) if piece["run"]]
    return all(_QUOTED_RUN.fullmatch(run) for run in runs if _QUOTE_OPENS.match(run))  # quotes that open also close


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


# -- the query log ----------------------------------------------------------------------------------------------------

# A line for each search; `eyespot --verbose` shows it. Words are private, so they stand there at DEBUG alone
_LOG = logging.getLogger("eyespot.search.query_log")


@contextmanager
def logged(query: Query | None) -> Iterator[None]:
    """Log a search when it is over, with how long it took; None is a search by items alone."""
    terms = () if query is None else query.terms
    begun = perf_counter()
    try:
        yield
    except Exception as error:
        _LOG.info("search by %d terms failed: %s", len(terms), type(error).__name__)
        raise
    _LOG.info("search by %d terms took %.0f ms", len(terms), (perf_counter() - begun) * 1000)
    if query is not None and _LOG.isEnabledFor(logging.DEBUG):
        _LOG.debug("its terms: %s", format_query(query))
