"""How many queries are scanned one at a time before a batch pays: measured once on each machine.

One query at a time is multiplied in 16 bits, a batch in 8 bits with four queries for each reading of the codes. Which
is faster for few queries depends on the processor. Answers are the same: both ways only rule rows out by proven
bounds.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from eyespot.storage.atomic import write_whole
from eyespot.storage.systems import processor_name

VARIABLE = "EYESPOT_SINGLE_QUERIES"  # sets the number, for comparisons
MOST = 8  # queries; more are always a batch
_ROUNDS = 7
_BETTER = 0.9  # a batch is chosen where it takes at most so much of the time: its rougher bounds leave more rows


def stored_or(measure: Callable[[], int]) -> int:
    """Up to how many queries are scanned one at a time, 0 to `MOST`.

    From the environment, else from the user's cache, else measured and stored there. A cache that cannot be read or
    written is no error: then each process measures.
    """
    if (wanted := os.environ.get(VARIABLE, "")).isdecimal():
        return min(int(wanted), MOST)
    place, key = _place(), machine_key()
    known = _stored(place)
    if key not in known:
        known[key] = measure()
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, lambda file: file.write(json.dumps(known, indent=1).encode()))
    return known[key]


def measured(single: Callable[[int], object], batch: Callable[[int], object]) -> int:
    """The same as this machine is now: the most queries of which the single way takes no longer than a batch.

    single, batch: each scans so many queries in its way. The time of the single way grows with each query, that of a
    batch with every four.
    """
    alone, of_four, of_eight = math.inf, math.inf, math.inf  # seconds
    for _ in range(_ROUNDS):  # in turn, for the load of a machine changes
        alone = min(alone, _seconds(single, 1))
        of_four, of_eight = min(of_four, _seconds(batch, 4)), min(of_eight, _seconds(batch, 8))
    sooner = [count for count in range(1, MOST + 1) if _BETTER * count * alone < (of_four if count <= 4 else of_eight)]
    return max(sooner, default=0)


def _seconds(scan: Callable[[int], object], count: int) -> float:
    start = time.perf_counter()
    scan(count)
    return time.perf_counter() - start


def _place() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "eyespot" / "kernels.json"


def machine_key() -> str:
    """The machine and what compiles for it: another processor or compiler is measured anew."""
    return f"{processor_name()}; numba {version('numba')}; numpy {version('numpy')}; eyespot {version('eyespot')}"


def _stored(place: Path) -> dict[str, int]:
    with suppress(OSError, ValueError):
        found = json.loads(place.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return {key: n for key, n in found.items() if type(n) is int and 0 <= n <= MOST}
    return {}
