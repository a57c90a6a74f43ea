"""Which units of a ranking to judge, so that each group of them gets an answer.

Looks are shared alike by the groups; within a group they are drawn from strata of its ranks alone. All are shuffled
into one list, so that whoever judges learns nothing of the group. Rounds of 60, 120, 240, … are nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.search.calibration import RankSample
from eyespot.search.calibration.sampling import allocated, strata
from eyespot.types import UsageError

Ints = NDArray[np.int64]

UNKNOWN = "unknown"  # the group of units without a value
FIRST = 60  # looks of the first round
SIZE_POWER = 0.75  # of a stratum's size, which its looks go by (docs/decisions/0077)


@dataclass(frozen=True, eq=False)
class GroupPlan:
    """The design of an estimate, made before any verdict.

    `labels` name the groups in the order in which they are shown; `group` (units,) is the number of each unit's group,
    in rank order. `units` (looks,) are positions from 0 of the units to judge, in the order of judging, and `rounds`
    says how many looks there are after each round. `edges` are the first ranks of each group's strata, within the
    group, from 1, and the rank after the last that may be drawn. `compare` names the two groups that get all looks,
    `beside` says how many further units, which are not relevant, each group has, `power` by which power of its size a
    stratum got looks.
    """

    labels: tuple[Any, ...]
    group: Ints
    units: Ints
    rounds: tuple[int, ...]
    edges: tuple[Ints, ...]
    seed: int
    compare: tuple[Any, ...] = ()
    depth: int | None = None
    beside: tuple[int, ...] = ()
    power: float = SIZE_POWER

    @cached_property
    def effort(self) -> Ints:
        """How many units the share of each group is of, (groups,): those ranked, and those beside them."""
        return self.sizes + np.array(self.beside or 0, np.int64)

    @cached_property
    def members(self) -> list[Ints]:
        """The positions of each group's units, best-ranked first: of rank 1, 2, … within the group."""
        order = np.argsort(self.group, kind="stable")
        return np.split(order, np.cumsum(self.sizes)[:-1])

    @cached_property
    def sizes(self) -> Ints:
        """How many units each group has, (groups,)."""
        return np.bincount(self.group, minlength=len(self.labels))

    @cached_property
    def ranks(self) -> Ints:
        """The rank of each unit within its group, from 1, (units,)."""
        ranks = np.zeros(len(self.group), np.int64)
        for members in self.members:
            ranks[members] = np.arange(1, len(members) + 1)
        return ranks

    def sample(self, group: int, units: Ints) -> RankSample:
        """These units of a group as a sample of its ranks."""
        return RankSample(self.edges[group], self.ranks[units])

    def until(self, looks: int) -> GroupPlan:
        """The plan up to the last round that is whole after so many looks."""
        rounds = tuple(total for total in self.rounds if total <= looks)
        return replace(self, rounds=rounds, units=self.units[: max(rounds, default=0)])

    def as_json(self) -> dict[str, Any]:
        """The design as a file holds it: with `group` and the verdicts it gives the same answer again."""
        fields = {"labels": list(self.labels), "rounds": list(self.rounds), "seed": self.seed, "depth": self.depth}
        fields |= {"strata": [edges.tolist() for edges in self.edges], "compare": list(self.compare)}
        fields |= {"beside": list(self.beside), "power": self.power}
        return fields | {"units": self.units.tolist(), "group": self.group.tolist()}

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> GroupPlan:
        """The design that `as_json` made these fields of."""
        group, units = (np.array(fields[name], np.int64) for name in ("group", "units"))
        edges = tuple(np.array(one, np.int64) for one in fields["strata"])
        labels, compare = tuple(fields["labels"]), tuple(fields["compare"])
        rest = compare, fields["depth"], tuple(fields.get("beside", ())), fields.get("power", 0.5)
        return cls(labels, group, units, tuple(fields["rounds"]), edges, fields["seed"], *rest)


def plan_groups(
    groups: Any,
    looks: int = 120,
    seed: int = 0,
    *,
    order: Sequence[Any] = (),
    compare: Sequence[Any] = (),
    depth: int | None = None,
    beside: Sequence[Any] = (),
) -> GroupPlan:
    """Which units to judge; `groups` (units,) is the group of each, best-ranked first.

    A unit without a value (None, NaN, an empty text) is in the group `UNKNOWN`, the last. `order` lists labels that
    come first, also those without units; the others follow sorted. With `compare` two groups get all looks, with
    `depth` only the first ranks of each group are judged. The same seed gives the same looks, and more looks begin
    with the same rounds. `beside` has the groups of further units, of which none is relevant and none is judged: shares
    are of them too. Raises `UsageError` for no units, no looks, and labels that are none of the groups.
    """
    labels, every = _labelled([*groups, *beside], order)
    group, others = np.split(every, [len(groups)])
    further = tuple(np.bincount(others, minlength=len(labels)).tolist()) if len(others) else ()
    if looks < 1 or (depth is not None and depth < 1) or not len(group):
        raise UsageError("an estimate needs at least one unit, one look and, where it is limited, a depth of one")
    there = [label for at, label in enumerate(labels) if label != UNKNOWN and (group == at).any()]
    if unknown := [label for label in compare if label not in there]:
        those = ", ".join(map(str, there[:20])) or "none"
        raise UsageError(f"no group {unknown[0]!r} to compare; with photos are: {those}")
    if compare and len(set(compare)) != 2:
        raise UsageError("a comparison takes two groups, as in compare=(1, 7)")
    plan = GroupPlan(labels, group, np.zeros(0, np.int64), (), (), seed, tuple(compare), depth, further)
    within = np.minimum(plan.sizes, depth or len(group))
    open_to = np.array([not compare or label in compare for label in labels])
    drawn = [_Drawing(int(hits), np.random.default_rng([seed, at])) for at, hits in enumerate(within)]
    shuffle, units, rounds = np.random.default_rng(seed), np.zeros(0, np.int64), []
    most = min(looks, int((within * open_to).sum()))
    # How many looks there are in all after each round: 60, 120, 240, …, up to these
    for total in [*takewhile(lambda looks: looks < most, (FIRST << at for at in count())), most]:
        each = allocated(within * open_to, total, power=0.0, least=0)
        parts = [plan.members[at][one.next(int(n)) - 1] for at, (one, n) in enumerate(zip(drawn, each, strict=True))]
        units = np.concatenate([units, shuffle.permutation(np.concatenate(parts))])
        rounds.append(len(units))
    return replace(plan, units=units, rounds=tuple(rounds), edges=tuple(one.edges for one in drawn))


class _Drawing:
    """The ranks of one group, drawn round by round; the first round fixes the strata."""

    def __init__(self, hits: int, rng: np.random.Generator) -> None:
        self.edges, self.queues = np.array([1, hits + 1]), [np.zeros(0, np.int64)]
        self.taken, self.rng, self.hits = np.zeros(1, np.int64), rng, hits

    def next(self, looks: int) -> Ints:
        """The further ranks, from 1, that make so many looks in all."""
        if looks and not self.taken.sum():
            self.edges = strata(self.hits, looks)
            pairs = zip(self.edges, self.edges[1:], strict=False)
            self.queues = [self.rng.permutation(np.arange(*pair)) for pair in pairs]
            self.taken = np.zeros(len(self.queues), np.int64)
        wanted = allocated(np.diff(self.edges), looks, power=SIZE_POWER) if looks else self.taken
        more = [queue[now:then] for queue, now, then in zip(self.queues, self.taken, wanted, strict=True)]
        self.taken = wanted
        return np.concatenate(more)


def _labelled(groups: Any, order: Sequence[Any]) -> tuple[tuple[Any, ...], Ints]:
    """The labels in the order in which they are shown, and the number of each unit's, (units,)."""
    values = [value.item() if isinstance(value, np.generic) else value for value in groups]
    values = [UNKNOWN if value is None or value == "" or value != value else value for value in values]
    found = set(values) - set(order) - {UNKNOWN}
    rest = sorted(found, key=lambda label: (isinstance(label, str), label))
    labels = (*order, *rest, *[UNKNOWN] * (UNKNOWN in values))
    number = {label: at for at, label in enumerate(labels)}
    return labels, np.array([number[value] for value in values], np.int64)
