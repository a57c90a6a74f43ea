"""A seeded split of queries that keeps the proportions of their strata, the same whatever the order they come in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from eyespot.types import UsageError


def apportioned(sizes: Mapping[str, int], seats: int, seed: int = 0) -> dict[str, int]:
    """How many of each stratum to take, `seats` in all, by largest remainders.

    Each stratum gets its quota seats · size / total, rounded down or up, never more than its size. Equal remainders
    are settled by lot. Raises `UsageError` for more seats than there are members.
    """
    total = sum(sizes.values())
    if not 0 <= seats <= total:
        raise UsageError(f"{seats} of {total} cannot be taken; choose 0 to {total}")
    whole = {name: seats * size // max(total, 1) for name, size in sizes.items()}
    # In whole numbers: quotas as fractions would round, and remainders that are equal would not compare so.
    remainders = {name: seats * size % max(total, 1) for name, size in sizes.items()}
    favoured = sorted(sizes, key=lambda name: (-remainders[name], _lot(seed, "stratum", name)))
    extra = set(favoured[: seats - sum(whole.values())])
    return {name: count + (name in extra) for name, count in whole.items()}


def draw_stratified(strata: Mapping[str, Iterable[str]], seats: int, seed: int = 0) -> set[str]:
    """The members taken, `seats` in all, from each stratum as many as `apportioned` says."""
    members = {name: sorted(ids, key=lambda id: _lot(seed, "member", id)) for name, ids in strata.items()}
    counts = apportioned({name: len(ids) for name, ids in members.items()}, seats, seed)
    return {id for name, ids in members.items() for id in ids[: counts[name]]}


def _lot(seed: int, kind: str, name: str) -> tuple[str, str]:
    """A place in a shuffle that depends on seed and name alone: no generator, whose draws a new release may change."""
    digest = hashlib.sha256(f"{seed}\x1f{kind}\x1f{name}".encode("utf-8", "surrogatepass")).hexdigest()
    return digest, name
