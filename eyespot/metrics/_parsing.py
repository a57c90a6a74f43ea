"""Measures from their spelling, which is that of ir-measures: `AP@50`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@20`.

What is not ours is asked of ir-measures: `Bpref`, `RBP(p=0.5)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from eyespot import rooms
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import OUTSIDE, outside
from eyespot.types import UsageError

SPELLING = re.compile(r"(?P<name>[A-Za-z]+)(?:\((?P<inside>[^()]*)\))?(?:@(?P<cutoff>\w+))?")
PARAMETER = re.compile(r"(?P<name>\w+)\s*=\s*(?:(?P<quote>['\"]?)(?P<value>[\w.-]+)(?P=quote))")
NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
DCG = {"log2": "linear", "exp-log2": "exponential"}


def parse(spelling: str, norm: str = "all", ties: str = "rank") -> Measure:
    """The measure that a spelling names; `norm` and `ties` are for what it leaves open, where the measure has them.

    Raises `UsageError` for an unknown measure, an unknown parameter, or a cutoff that is no number of 1 or more.
    """
    found = SPELLING.fullmatch(spelling.strip())
    if found is None:
        raise UsageError(f"{spelling!r} is no measure; write AP@50, P(rel=2)@5 or nDCG(dcg='exp-log2')@20")
    name, cutoff, inside = found["name"], found["cutoff"], found["inside"] or ""
    kinds = _kinds() | {alias: kind for kind in _kinds().values() for alias in kind.aliases}
    if f"{name}@{cutoff}" in kinds:  # mAP@R
        name, cutoff = f"{name}@{cutoff}", None
    cut = _cut(spelling, cutoff)
    if name not in kinds:
        if (other := outside(name, dict(_numbers(inside, spelling)), cut)) is None:
            every = f"{', '.join(_kinds())}, and with the extra [ir] {', '.join(OUTSIDE)}"
            raise UsageError(f"no measure {name!r}; there are: {every}")
        return other
    kind = kinds[name]
    defaults = {"norm": norm, "ties": ties}
    known = {field.name for field in fields(kind)}
    stated = _parameters(inside, spelling)
    if strange := sorted(set(stated) - known):
        raise UsageError(
            f"{kind.name} has no parameter {strange[0]!r}; it has: {', '.join(sorted(known - {'cutoff'}))}"
        )
    return kind(cut, **{name: value for name, value in defaults.items() if name in known} | stated)


def names() -> dict[str, str]:
    """Every measure with one line on what it is."""
    return {name: kind.says for name, kind in _kinds().items()}


@cache
def _kinds() -> dict[str, type[Measure]]:
    kinds = (rooms.load("metrics", member).__class__ for member in rooms.names("metrics"))
    return {kind.name: kind for kind in kinds}


def _cut(spelling: str, cutoff: str | None) -> int | None:
    if cutoff is None:
        return None
    if not (cutoff.isascii() and cutoff.isdigit() and 0 < int(cutoff) < 2**31):
        raise UsageError(f"the cutoff of {spelling!r} is no number of 1 or more; write a rank, as in AP@10")
    return int(cutoff)


def _parameters(inside: str, spelling: str) -> dict[str, Any]:
    """What the brackets say, as our measures call it."""
    stated: dict[str, Any] = {}
    for name, value, plain in _parts(inside, spelling):
        stated["gain" if name == "dcg" else name] = value
        if name == "dcg":
            stated["gain"] = DCG.get(value, value)
        elif plain and value in ("True", "False"):
            stated[name] = value == "True"
        elif plain and value.isascii() and value.isdigit():
            stated[name] = int(value)
    return stated


def _numbers(inside: str, spelling: str) -> Iterator[tuple[str, Any]]:
    """What the brackets say, as it stands: truths, numbers and texts."""
    for name, value, plain in _parts(inside, spelling):
        if plain and value in ("True", "False"):
            yield name, value == "True"
        elif plain and NUMBER.fullmatch(value):
            yield name, float(value) if "." in value else int(value)
        else:
            yield name, value


def _parts(inside: str, spelling: str) -> Iterator[tuple[str, str, bool]]:
    """The parameters in the brackets: name, value, and whether it stands without quotes."""
    names = set()
    for text in inside.split(",") if inside.strip() else ():
        part = PARAMETER.fullmatch(text.strip())
        if part is None:
            raise UsageError(f"{spelling!r} has parameters that do not read; write them as AP(norm='min-k', rel=2)@50")
        name = "gain" if part["name"] == "dcg" else part["name"]
        if name in names:
            raise UsageError(f"{spelling!r} has a parameter twice; keep one of the two")
        names.add(name)
        yield part["name"], part["value"], not part["quote"]
