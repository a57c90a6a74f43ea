"""Generators of pictures: they invent, check, paint and describe; the record contains all that they invent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from eyespot.storage.toml import toml_of

if TYPE_CHECKING:
    from PIL.Image import Image

Facts: TypeAlias = Mapping[str, Any]
"""All of a drawn picture, as JSON: `shown` (what is written on it), `answer`, and how it is painted."""

VAGUE, USUAL, DETAILED = 0, 1, 2


class CaptionWordings(NamedTuple):
    """Five captions each of three kinds: less than is needed to find the picture, enough, and everything there is."""

    vague: Sequence[str]
    usual: Sequence[str]
    detailed: Sequence[str]


class Generator(Protocol):
    """Invents pictures of a sub-task; one file of `subtasks/` brings it."""

    def invent(self, chance: Random) -> Facts:
        """A picture that might be drawn."""
        ...

    def answer(self, facts: Facts) -> str:
        """The answer to `facts["shown"]`, computed from the written text alone."""
        ...

    def paint(self, facts: Facts, chance: Random) -> Image:
        """The picture; the same facts and chance give the same one. `UsageError` for a font that is not installed."""
        ...

    def wording(self, facts: Facts) -> CaptionWordings:
        """True captions of it; caption i of two pictures differs only in their facts."""
        ...


def fill_captions(name: str, fields: Mapping[str, str]) -> CaptionWordings:
    """The captions under this name in `captions.toml`, with their fields filled in."""
    templates = _templates()[name]
    vague, usual = ([text.format_map(fields) for text in templates[level]] for level in ("vague", "usual"))
    detail = templates["detail"].format_map(fields)
    return CaptionWordings(vague, usual, [f"{text.removesuffix('.')}{detail}." for text in usual])


def kind_fields(kind: str) -> dict[str, str]:
    """Fields for a kind of thing: the noun alone, and with its article at the beginning and inside of a sentence."""
    article = "an" if kind[0] in "aeiou" else "a"
    return {"kind": kind, "a_kind": f"{article} {kind}", "A_kind": f"{article.capitalize()} {kind}"}


@cache
def _templates() -> Mapping[str, Any]:
    return toml_of(Path(__file__).with_name("captions.toml"))
