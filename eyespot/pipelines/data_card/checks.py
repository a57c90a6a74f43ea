"""Checks that open a card: what somebody must know before they trust a set, each green, amber or red."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

Level: TypeAlias = Literal["green", "amber", "red"]
LEVELS: tuple[Level, ...] = ("green", "amber", "red")


class QualityCheck(NamedTuple):
    """What was looked at, how it stands, and the numbers that say so."""

    what: str
    level: Level
    text: str


def worst(checks: Iterable[QualityCheck]) -> Level:
    """The level of a set: that of its worst check."""
    return max((check.level for check in checks), key=LEVELS.index, default="green")


def level_of(value: float, amber: float, green: float) -> Level:
    """Green from a number on, amber from a smaller one on."""
    return "green" if value >= green else "amber" if value >= amber else "red"


def licence_check(licences: Sequence[str | None]) -> QualityCheck:
    """Whether the licence of every photo is known."""
    known = sum(bool(licence) for licence in licences)
    rest = "" if known == len(licences) else "; photos without one may be shared by their owner only"
    level: Level = "green" if known == len(licences) else "amber"
    return QualityCheck("Licences", level, f"{known:,} of {len(licences):,} photos have a licence{rest}.")


def wilson(hits: int, cases: int, z: float = 1.959964) -> tuple[float, float]:
    """The interval of a share (Wilson 1927); 0 to 1 of no cases."""
    if not cases:
        return 0.0, 1.0
    share, spread = hits / cases, z * z / cases
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / cases + spread / (4 * cases))
    return max(0.0, middle - half), min(1.0, middle + half)
