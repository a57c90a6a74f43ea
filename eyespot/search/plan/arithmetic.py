"""How many machines a collection takes, how much memory, disk, time and money: multiplication over measured slopes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from eyespot.kernels.codes import padded
from eyespot.search.plan.queueing import busiest
from eyespot.search.plan.slopes import BILLION, Slopes

GIB = 1 << 30
USABLE = 0.8  # of a machine's memory: the rest is for the system, the program and what a query needs for itself
HOUR, MONTH = 3600.0, 730.0  # seconds, hours
_STEP = 1.15  # from one number of machines of a copy to the next that is tried; 32 steps lead to 76 times as many
STEPS = ("import", "codes", "merging", "approximate")
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
        # Product quantisation as `eyespot tune` makes it: an eighth of a byte a number, and an id
        SearchPlan("approximate", False, dim / 8 + 8, 2 * dim + dim / 8 + 8),
    ]


@dataclass(frozen=True)
class PlanRequest:
    """What is asked for: images, the length of their vectors, seconds for a query, memory of a machine in GiB.

    cores: of a machine; None: as many as the one that was measured. hour: dollars of a machine; None: by its cores and
    memory. users search at once, and of each hundred queries `percentile` end in time.
    """

    images: int
    dim: int
    latency: float
    ram: float
    images_per_second: float | None = None  # that a machine embeds; None: nobody knows
    cores: float | None = None
    hour: float | None = None
    users: int = 1
    percentile: float = 95.0

    @property
    def numbers(self) -> float:
        """Of all vectors together."""
        return float(self.images) * self.dim


class Needs(NamedTuple):
    """What one way would take: GiB in memory and on disk, over all machines; seconds of a query; dollars.

    `machines` is None where no number of machines answers in time; they hold `copies` of the gallery between them, each
    of which answers one query at a time, in `seconds`. memory and disk are those of one copy.
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
    copies: int = 1


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
    for_latency = _for_latency(wanted, slopes, way)
    found = None if for_latency is None else _with_users(wanted, slopes, way, max(for_memory, for_latency))
    if found is None:
        return Needs(way.name, way.exact, memory, disk, for_memory, for_latency, None, None, None)
    each, copies = found
    seconds = seconds_of(wanted, slopes, way, each)
    hour = each * copies * _price(wanted, slopes)
    return Needs(way.name, way.exact, memory, disk, for_memory, for_latency, each * copies, seconds, hour, copies)


def _for_latency(wanted: PlanRequest, slopes: Slopes, way: SearchPlan) -> int | None:
    """The machines that answer one query in time; None if no number does."""
    if seconds_of(wanted, slopes, way, 1) <= wanted.latency:
        return 1
    left = wanted.latency - slopes.scan[way.name].fixed - slopes.call - _rechecking(slopes, way)
    return math.ceil(_scanning(wanted, slopes, way) / left) if left > 0 else None


def _with_users(wanted: PlanRequest, slopes: Slopes, way: SearchPlan, least: int) -> tuple[int, int] | None:
    """The machines of a copy and the copies, fewest in all, that answer everybody in time; None if none do."""
    if wanted.users <= 1:
        return least, 1  # who searches alone waits for nobody
    found = []
    for each in sorted({math.ceil(least * _STEP**step) for step in range(32)}):
        seconds = max(seconds_of(wanted, slopes, way, each), 1e-9)
        busy = busiest(wanted.latency / seconds, wanted.percentile)
        if busy:
            copies = max(1, math.ceil(wanted.users / slopes.think * seconds / busy))
            found.append((each * copies, each, copies))
    return min(found)[1:] if found else None


def seconds_of(wanted: PlanRequest, slopes: Slopes, way: SearchPlan, machines: int) -> float:
    """Of one query, over so many machines that each hold their share."""
    here = slopes.scan[way.name].fixed + _rechecking(slopes, way) + (slopes.call if machines > 1 else 0.0)
    return here + _scanning(wanted, slopes, way) / machines


def _scanning(wanted: PlanRequest, slopes: Slopes, way: SearchPlan) -> float:
    """Seconds that one machine takes to read all that a query has to read."""
    return slopes.scan[way.name].slope * wanted.numbers / BILLION / speed_up(wanted, slopes)


def speed_up(wanted: PlanRequest, slopes: Slopes) -> float:
    """How much faster a machine of these cores is than the one measured: each doubling gives `scaling` of twice."""
    doublings = math.log2((wanted.cores or slopes.cores) / slopes.cores)
    return float((2 * slopes.scaling) ** doublings)


def _rechecking(slopes: Slopes, way: SearchPlan) -> float:
    """Seconds spent reading single rows from disk: where vectors are not in memory, as the plan has it for int8."""
    return slopes.rechecked * slopes.seek if way.name == "int8" else 0.0


def _price(wanted: PlanRequest, slopes: Slopes) -> float:
    """Dollars for an hour of one machine like the one measured, with the memory asked for."""
    if wanted.hour is not None:
        return wanted.hour
    return (wanted.cores or slopes.cores) * slopes.core_hour + wanted.ram * slopes.gib_hour


def building(wanted: PlanRequest, slopes: Slopes) -> Iterator[Building]:
    """What has to be done once, step by step; on m machines each takes an m-th of the hours and the same money."""
    rate = wanted.images_per_second
    yield _building("embedding", wanted.images / rate / HOUR if rate else None, _price(wanted, slopes))
    for step in STEPS:
        if step in slopes.build:
            hours = slopes.build[step] * wanted.numbers / BILLION / HOUR / speed_up(wanted, slopes)
            yield _building(step, hours, _price(wanted, slopes))


def _building(step: str, hours: float | None, price: float) -> Building:
    return Building(step, hours, None if hours is None else hours * price)


def rented(wanted: PlanRequest, slopes: Slopes) -> list[tuple[str, Needs]]:
    """The machine of the table that each way takes for the least money an hour, by its name, and what it needs."""
    shapes = {
        name: replace(wanted, ram=shape.ram, cores=shape.cores, hour=shape.hour)
        for name, shape in slopes.machines.items()
    }
    offers: dict[str, list[tuple[float, float, float, str, Needs]]] = {}
    for name, request in shapes.items():
        for one in needs(request, slopes):
            offers.setdefault(one.way, []).append((*_cost(one), name, one))
    return [min(found, key=lambda offer: offer[:-1])[-2:] for found in offers.values()]


def cheapest(found: Iterable[Needs]) -> Needs | None:
    """The way that answers in time for the least money, with the fewest machines of equals; None if none does."""
    return min((one for one in found if one.machines is not None), key=_cost, default=None)


def _cost(one: Needs) -> tuple[float, float, float]:
    """Dollars an hour, machines, seconds: what is compared first comes first."""
    if one.hour is None or one.machines is None or one.seconds is None:
        return math.inf, math.inf, math.inf
    return one.hour, one.machines, one.seconds
