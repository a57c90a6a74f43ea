"""Measures from their spelling, which is that of ir-measures: `AP@50`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@20`."""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import Any

from eyespot import rooms
from eyespot.metrics._measure import Measure
from eyespot.types import UsageError

SPELLING = re.compile(r"(?P<name>[A-Za-z]+)(?:\((?P<inside>[^()]*)\))?(?:@(?P<cutoff>\w+))?")
PARAMETER = re.compile(r"(?P<name>\w+)\s*=\s*(?:(?P<quote>['\"]?)(?P<value>[\w.-]+)(?P=quote))")
DCG = {"log2": "linear", "exp-log2": "exponential"}


def parse(spelling: str, norm: str = "all", ties: str = "rank") -> Measure:
    """The measure that a spelling names; `norm` and `ties` are for what it leaves open, where the measure has them.

    Raises `UsageError` for an unknown measure, an unknown parameter, or a cutoff that is no number of 1 or more.
    """
    found = SPELLING.fullmatch(spelling.strip())
    if found is None:
        raise UsageError(f"{spelling!r} is no measure; write AP@50, P(rel=2)@5 or nDCG(dcg='exp-log2')@20")
    name = found["name"]
    cutoff = found["cutoff"]
    kinds = _kinds() | {alias: kind for kind in _kinds().values() for alias in kind.aliases}
    whole = f"{name}@{cutoff}"
    if whole in kinds:
        kind, cutoff = kinds[whole], None
    else:
        if name not in kinds:
            raise UsageError(f"no measure {name!r}; there are: {', '.join(_kinds())}")
        if cutoff is not None and not (cutoff.isascii() and cutoff.isdigit() and 0 < int(cutoff) < 2**31):
            raise UsageError(f"the cutoff of {spelling!r} is no number of 1 or more; write {name}@10")
        kind, cutoff = kinds[name], None if cutoff is None else int(cutoff)
    defaults = {"norm": norm, "ties": ties}
    known = {field.name for field in fields(kind)}
    stated = _parameters(found["inside"] or "", spelling)
    if strange := sorted(set(stated) - known):
        raise UsageError(
            f"{kind.name} has no parameter {strange[0]!r}; it has: {', '.join(sorted(known - {'cutoff'}))}"
        )
    return kind(cutoff, **{name: value for name, value in defaults.items() if name in known} | stated)


def names() -> dict[str, str]:
    """Every measure with one line on what it is."""
    return {name: kind.says for name, kind in _kinds().items()}


@cache
def _kinds() -> dict[str, type[Measure]]:
    kinds = (rooms.load("metrics", member).__class__ for member in rooms.names("metrics"))
    return {kind.name: kind for kind in kinds}


def _parameters(inside: str, spelling: str) -> dict[str, Any]:
    if not inside.strip():
        return {}
    stated: dict[str, Any] = {}
    for text in inside.split(","):
        part = PARAMETER.fullmatch(text.strip())
        if part is None:
            raise UsageError(f"{spelling!r} has parameters that do not read; write them as AP(norm='min-k', rel=2)@50")
        name, value, plain = part["name"], part["value"], not part["quote"]
        name = "gain" if name == "dcg" else name
        if name in stated:
            raise UsageError(f"{spelling!r} has a parameter twice; keep one of the two")
        stated[name] = value
        if part["name"] == "dcg":
            stated[name] = DCG.get(value, value)
        elif plain and value in ("True", "False"):
            stated[name] = value == "True"
        elif plain and value.isascii() and value.isdigit():
            stated[name] = int(value)
    return stated
