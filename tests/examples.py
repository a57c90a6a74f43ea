"""On how many examples a law is tried: all of them in `make test-all`, two in five in `make test`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hypothesis import settings

Case = TypeVar("Case")
FULL = 100  # hypothesis' own number
FEWEST = 5


def register_profiles() -> None:
    """`quick` is the default; `--hypothesis-profile=thorough` tries everything."""
    settings.register_profile("quick", deadline=None, max_examples=2 * FULL // 5)  # a busy machine is no fault
    settings.register_profile("thorough", deadline=None, max_examples=FULL)
    settings.load_profile("quick")


def examples(full: int) -> int:
    """`full` in a thorough run, else the same share of it as of any other law."""
    return max(min(full, FEWEST), full * settings().max_examples // FULL)


def drawn(cases: Sequence[Case], count: int) -> list[Case]:
    """All cases in a thorough run, else this number of them, the same ones each time, in their order."""
    if settings().max_examples >= FULL or len(cases) <= count:
        return list(cases)
    return [cases[at] for at in sorted(Random(0).sample(range(len(cases)), count))]


def share(cases: Sequence[Case], turn: int, parts: int) -> Sequence[Case]:
    """All cases in a thorough run, else one of so many parts of them, another one each turn."""
    return cases if settings().max_examples >= FULL else cases[turn % parts :: parts]
