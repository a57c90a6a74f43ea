"""Measures from their spelling, which is that of ir-measures: `AP@50`, `P(rel=2)@5`, `nDCG(dcg='exp-log2')@20`.

Case does not count. What is not ours is asked of ir-measures: `Bpref`, `RBP(p=0.5)`; with a prefix also what is, by the
definition of one of its providers (`pytrec_eval:AP@10`) or of the first that has it (`ir:AP@10`).
"""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import Any

from eyespot import rooms
from eyespot.metrics._measure import Measure
from eyespot.metrics._outside import OUTSIDE, FunctionMeasure, outside
from eyespot.types import UsageError, kind_text

SPELLING = re.compile(r"(?:(?P<provider>\w+):)?(?P<name>[A-Za-z]+)(?:\((?P<inside>[^()]*)\))?(?:@(?P<cutoff>\w+))?")
PARAMETER = re.compile(r"(?P<name>\w+)\s*=\s*(?:(?P<quote>['\"]?)(?P<value>[\w.-]+)(?P=quote))")
NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?")
DCG = {"log2": "linear", "exp-log2": "exponential"}


def parse(spelling: str, norm: str = "all", ties: str = "rank") -> Measure:
    """The measure that a spelling names; `norm` and `ties` are for what it leaves open, where the measure has them.

    Raises `UsageError` for an unknown measure, an unknown parameter, or a cutoff that is not a number of 1 or more.
    """
    found = SPELLING.fullmatch(spelling.strip())
    if found is None:
        raise UsageError(f"{spelling!r} is not a measure; write AP@50, P(rel=2)@5 or nDCG(dcg='exp-log2')@20")
    name, cutoff, inside = found["name"], found["cutoff"], found["inside"] or ""
    kinds = {each.casefold(): kind for kind in _kinds().values() for each in (kind.name, *kind.aliases)}
    if f"{name}@{cutoff}".casefold() in kinds:  # mAP@R
        name, cutoff = f"{name}@{cutoff}", None
    if cutoff is not None and not (cutoff.isascii() and cutoff.isdigit() and 0 < int(cutoff) < 2**31):
        raise UsageError(f"the cutoff of {spelling!r} is not a number of 1 or more; write a rank, as in AP@10")
    cut = None if cutoff is None else int(cutoff)
    stated = _parameters(inside, spelling)
    if found["provider"] or name.casefold() not in kinds:
        if (other := outside(name, stated, cut, found["provider"] or "")) is None:
            every = f"{', '.join(_kinds())}, and with the extra [ir] {', '.join(OUTSIDE)}"
            raise UsageError(f"no measure {name!r}; there are: {every}")
        return other
    kind = kinds[name.casefold()]
    defaults = {"norm": norm, "ties": ties}
    known = {field.name for field in fields(kind)}
    if (dcg := stated.pop("dcg", None)) is not None:
        stated["gain"] = DCG.get(str(dcg), dcg)
    if strange := sorted(set(stated) - known):
        raise UsageError(
            f"{kind.name} has no parameter {strange[0]!r}; it has: {', '.join(sorted(known - {'cutoff'}))}"
        )
    return kind(cut, **{name: value for name, value in defaults.items() if name in known} | stated)


def measure_of(given: Any) -> Measure:
    """A measure, one by its spelling, or that of a function; `UsageError` for all else."""
    if isinstance(given, str):
        return parse(given)
    if not isinstance(given, Measure) and not callable(given):
        raise UsageError(f"a measure is a name, as in AP@50, or a function, not {kind_text(given)}")
    return given if isinstance(given, Measure) else FunctionMeasure(function=given)


def names() -> dict[str, str]:
    """Every measure with one line on what it is."""
    return {name: kind.says for name, kind in _kinds().items()}


@cache
def _kinds() -> dict[str, type[Measure]]:
    kinds = [rooms.load("metrics", member).__class__ for member in rooms.names("metrics")]
    return {kind.name: kind for each in kinds for kind in (each, *each.__subclasses__())}


def _parameters(inside: str, spelling: str) -> dict[str, Any]:
    """What the brackets say: truths, numbers and texts; what stands in quotes is text."""
    stated: dict[str, Any] = {}
    for text in inside.split(",") if inside.strip() else ():
        part = PARAMETER.fullmatch(text.strip())
        if part is None:
            raise UsageError(f"{spelling!r} has parameters that do not read; write them as AP(norm='min-k', rel=2)@50")
        name, value = part["name"], part["value"]
        if name in stated or {name, *stated} >= {"dcg", "gain"}:
            raise UsageError(f"{spelling!r} has a parameter twice; keep one of the two")
        if part["quote"]:
            stated[name] = value
        elif value in ("True", "False"):
            stated[name] = value == "True"
        else:
            number = NUMBER.fullmatch(value)
            stated[name] = value if number is None else float(value) if number[1] else int(value)
    return stated
