"""Local features and text of pictures, and the roles that read and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


class LocalFeatures(NamedTuple):
    """What stands out in a picture, strongest first: n descriptors and where each of them is.

    `descriptors` (n, dim), uint8 or float16, count by their directions, not their lengths. `keypoints` (n, 2 to 4) are
    x, y, and where the extractor knows them diameter and angle in degrees, in pixels at the size it was described at.
    """

    descriptors: NDArray[Any]
    keypoints: NDArray[np.float32]


class Extractor(Protocol):
    """Pictures to local features; called from one thread."""

    name: str  # what loads it again: "sift", "dinov2:facebook/dinov2-base"
    settings: Mapping[str, str | int | float]  # all else that decides what comes out
    min_side: int | None  # as an encoder's

    def describe(self, picture: Image, count: int) -> LocalFeatures:
        """The strongest features of an upright RGB picture, at most `count`; none at all of a blank one."""


class LocalReranker(Protocol):
    """How alike two pictures are by their local features; more is better, scores compare within one query only."""

    def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
        """The score of an image for a query picture; both have at least one feature."""


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
