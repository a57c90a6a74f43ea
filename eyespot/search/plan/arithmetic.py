"""How many machines a collection takes, how much memory, disk, time and money: multiplication over measured slopes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from eyespot.kernels.codes import padded
from eyespot.search.plan.slopes import BILLION, Slopes

GIB = 1 << 30
USABLE = 0.8  # of a machine's memory: the rest is for the system, the program and what a query needs for itself
HOUR, MONTH = 3600.0, 730.0  # seconds, hours
_CODE_FACTS = 20  # bytes beside the codes of a row: four bounds and a length


class SearchPlan(NamedTuple):
    """A way to search: whether its answers are exact, and bytes of an image that should be in memory, and on disk."""

    name: str
    exact: bool
    hot: float
    kept: float


def ways(dim: int) -> list[SearchPlan]:
    """Every way that a plan compares, for vectors of so many numbers."""
    codes = padded(dim) + _CODE_FACTS
    return [
        SearchPlan("float32", True, 4 * dim, 4 * dim),
        SearchPlan("float16", True, 2 * dim, 2 * dim),
        SearchPlan("int8", True, codes, 2 * dim + codes),
        # A map of its own for each query leaves so many rows in doubt that vectors are read all over.
        SearchPlan("quari", True, 2 * dim + codes, 2 * dim + codes),
        SearchPlan("approximate", False, dim / 4, 2 * dim + dim / 4),
    ]


@dataclass(frozen=True)
class PlanRequest:
    """What is asked for: images, the length of their vectors, seconds for a query, memory of a machine in GiB."""

    images: int
    dim: int
    latency: float
    ram: float
    images_per_second: float | None = None  # that a machine embeds; None: nobody knows

    @property
    def numbers(self) -> float:
        """Of all vectors together."""
        return float(self.images) * self.dim


class Needs(NamedTuple):
    """What one way would take: GiB in memory and on disk, over all machines; seconds of a query; dollars.

    `machines` is None where no number of machines answers in time.
    """

    way: str
    exact: bool
    memory: float
    disk: float
    for_memory: int
    for_latency: int | None
    machines: int | None
    seconds: float | None
    hour: float | None


class Building(NamedTuple):
    """What has to be done once: machine hours on one machine, and their price; None where no rate is known."""

    step: str
    hours: float | None
    money: float | None


def needs(wanted: PlanRequest, slopes: Slopes) -> list[Needs]:
    """What each way whose slope was measured would take."""
    return [_needs(wanted, slopes, way) for way in ways(wanted.dim) if way.name in slopes.scan]


def _needs(wanted: PlanRequest, slopes: Slopes, way: SearchPlan) -> Needs:
    memory = wanted.images * way.hot / GIB
    disk = wanted.images * (way.kept + slopes.facts) / GIB
    for_memory = max(1, math.ceil(memory / (USABLE * wanted.ram)))
    for_latency: int | None
    alone = seconds_of(wanted, slopes, way, 1)
    if alone <= wanted.latency:
        for_latency = 1
    else:
        left = wanted.latency - slopes.scan[way.name].fixed - slopes.call
        for_latency = math.ceil((alone - slopes.scan[way.name].fixed) / left) if left > 0 else None
    machines = None if for_latency is None else max(for_memory, for_latency)
    seconds = None if machines is None else seconds_of(wanted, slopes, way, machines)
    hour = None if machines is None else machines * _price(wanted, slopes)
    return Needs(way.name, way.exact, memory, disk, for_memory, for_latency, machines, seconds, hour)


def seconds_of(wanted: PlanRequest, slopes: Slopes, way: SearchPlan, machines: int) -> float:
    """Of one query, over so many machines that each hold their share."""
    spread = slopes.scan[way.name].slope * wanted.numbers / BILLION + _rechecking(wanted, slopes, way)
    return slopes.scan[way.name].fixed + spread / machines + (slopes.call if machines > 1 else 0.0)


def _rechecking(wanted: PlanRequest, slopes: Slopes, way: SearchPlan) -> float:
    """Seconds spent reading single rows from disk: where vectors are not in memory, as the plan has it for int8."""
    return slopes.rechecked * wanted.images / 1e6 * slopes.seek if way.name == "int8" else 0.0


def _price(wanted: PlanRequest, slopes: Slopes) -> float:
    """Dollars for an hour of one machine like the one measured, with the memory asked for."""
    return slopes.cores * slopes.core_hour + wanted.ram * slopes.gib_hour


def building(wanted: PlanRequest, slopes: Slopes) -> Iterator[Building]:
    """What has to be done once, step by step; on m machines each takes an m-th of the hours and the same money."""
    rate = wanted.images_per_second
    yield _building("embedding", wanted.images / rate / HOUR if rate else None, _price(wanted, slopes))
    for step in ("codes", "approximate"):
        if step in slopes.build:
            hours = slopes.build[step] * wanted.numbers / BILLION / HOUR
            yield _building(step, hours, _price(wanted, slopes))


def _building(step: str, hours: float | None, price: float) -> Building:
    return Building(step, hours, None if hours is None else hours * price)


def cheapest(found: Iterable[Needs]) -> Needs | None:
    """The way of the fewest machines that answers in time, the faster of equals; None if none does."""
    fit = [(one.machines, one.seconds, one) for one in found if one.machines is not None and one.seconds is not None]
    return min(fit, key=lambda one: one[:2], default=(0, 0.0, None))[2]
