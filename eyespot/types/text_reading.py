"""Text in pictures, and what reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image


class TextBox(NamedTuple):
    """A line of text in a picture: how sure its reader is, from 0 to 1, and its box in shares of width and height."""

    text: str
    confidence: float
    x: float
    y: float
    width: float
    height: float


class TextReader(Protocol):
    """Pictures to the text in them; called from one thread."""

    name: str  # with all versions that decide what comes out: "rapidocr 3.10.0, PP-OCRv6_rec_small"
    min_side: int | None  # as an encoder's

    def read(self, picture: Image) -> list[TextBox]:
        """The lines of text in an upright RGB picture, in any order; none where nothing is written."""
        ...
