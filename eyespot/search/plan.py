"""What a collection of any size takes: memory, disk, machines and hours, multiplied from a table of measured costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eyespot.kernels.codes import padded
from eyespot.storage.text_files import toml_of

TABLE = Path(__file__).parent / "plan.toml"
BILLION, GIB, HOUR = 1e9, 1 << 30, 3600.0
USABLE = 0.8  # of a machine's memory: the rest is for the system, the program and what a query needs for itself
_CODE_FACTS = 20  # bytes beside the codes of a row: four bounds and a length


@dataclass(frozen=True)
class SearchCost:
    """What one exact way to search takes, over all machines.

    memory, disk: GiB. seconds: of a query. machines: as many as the memory and the latency ask for; None where no
    number of machines answers in time. source: of the measurement.
    """

    way: str
    memory: float
    disk: float
    machines: int | None
    seconds: float | None
    source: str


@dataclass(frozen=True)
class BuildCost:
    """Hours of one machine for a step that is done once; None where no rate is known."""

    step: str
    hours: float | None
    source: str


@cache
def costs() -> dict[str, Any]:
    """The table of measured costs."""
    return toml_of(TABLE)


def search_costs(images: int, dim: int, *, latency: float, ram: float) -> list[SearchCost]:
    """What each measured way takes, for vectors of `dim` numbers, `latency` seconds and machines of `ram` GiB."""
    codes, facts = padded(dim) + _CODE_FACTS, costs()["other"]["facts"]
    sizes = {  # bytes of an image that should be in memory, and on disk
        "float32": (4 * dim, 4 * dim),
        "float16": (2 * dim, 2 * dim),
        "int8": (codes, 2 * dim + codes),
        # A map for each query leaves many rows in doubt, so vectors are read all over.
        "quari": (2 * dim + codes, 2 * dim + codes),
    }
    found = []
    for way, (hot, stored) in sizes.items():
        memory = images * hot / GIB
        least, left = math.ceil(memory / (USABLE * ram)) or 1, latency - seconds_of(0, way, machines=2)
        machines: int | None = least
        if seconds_of(images * dim, way, least) > latency:
            slope = costs()["scan"][way]["slope"]
            machines = math.ceil(slope * images * dim / BILLION / left) if left > 0 else None
        seconds = None if machines is None else seconds_of(images * dim, way, machines)
        disk = images * (stored + facts) / GIB
        found.append(SearchCost(way, memory, disk, machines, seconds, costs()["scan"][way]["source"]))
    return found


def seconds_of(numbers: float, way: str, machines: int = 1) -> float:
    """Of one query over this many numbers (rows times dimensions), on machines that each hold a share."""
    line, other = costs()["scan"][way], costs()["other"]
    seconds = line["fixed"] + line["slope"] * numbers / BILLION / machines
    seconds += other["rechecked"] * other["seek"] if way == "int8" else 0.0  # these vectors may lie on disk
    return float(seconds + (other["call"] if machines > 1 else 0.0))


def build_costs(images: int, dim: int, *, rate: float | None, source: str) -> list[BuildCost]:
    """The hours of one machine for each step, embedding first; on m machines each takes an m-th of them.

    rate: images that a machine embeds in a second, by `source`; None: not known.
    """
    made = [BuildCost("embedding", images / rate / HOUR if rate else None, source)]
    for name, one in costs()["build"].items():  # by numbers, or by rows whatever their dimension
        seconds = one["slope"] * images * dim / BILLION if "slope" in one else one["rows"] * images / 1e6
        made.append(BuildCost(name, seconds / HOUR, one["source"]))
    return made
