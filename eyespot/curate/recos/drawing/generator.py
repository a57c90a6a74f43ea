"""What a generator of pictures is: it invents, checks, paints and describes; all that it invents is in the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

Facts: TypeAlias = Mapping[str, Any]
"""All of a drawn picture, as JSON: `shown` (what is written on it), `answer`, and how it is painted."""

VAGUE, USUAL, DETAILED = 0, 1, 2


class CaptionWordings(NamedTuple):
    """Five captions each of three kinds: less than is needed to find the picture, enough, and all there is."""

    vague: Sequence[str]
    usual: Sequence[str]
    detailed: Sequence[str]


class Generator(Protocol):
    """Invents pictures of a sub-task; one file of `subtasks/` brings it."""

    def invent(self, chance: Random) -> Facts:
        """A picture that might be drawn."""
        ...

    def answer(self, facts: Facts) -> str:
        """What `facts["shown"]` comes to, worked out from what is written alone."""
        ...

    def paint(self, facts: Facts, chance: Random) -> Image:
        """The picture; the same facts and chance give the same one. `UsageError` for a font that is not here."""
        ...

    def wording(self, facts: Facts) -> CaptionWordings:
        """True captions of it; caption i of two pictures differs in their facts alone."""
        ...
