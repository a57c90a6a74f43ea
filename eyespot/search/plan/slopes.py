"""What was measured on one machine: a table in TOML that the user can edit or have measured again.

A search's time is a line: so many seconds for a query, and so many for each 10⁹ numbers (rows times dimensions) that a
machine scans with all its cores.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.storage.toml import toml_of
from eyespot.types import UsageError

SHIPPED = Path(__file__).parent / "slopes.toml"
BILLION = 1e9


class Line(NamedTuple):
    """Seconds of one query: `fixed`, and `slope` for each 10⁹ numbers scanned."""

    fixed: float
    slope: float


class Rate(NamedTuple):
    """Images a machine embeds in a second, the length of their vectors, and where that was measured."""

    images_per_second: float
    dim: int
    measured: str = ""


class MachineOffer(NamedTuple):
    """A machine that can be rented: its cores, its memory in GiB, and dollars for an hour."""

    cores: float
    ram: float
    hour: float


@dataclass(frozen=True)
class Slopes:
    """All that was measured. A value that is not there is None or missing, and what hangs on it is not told.

    scan: a line for each way to search, by its name in `arithmetic.ways`. build: seconds for 10⁹ numbers, by the
    steps of `arithmetic.STEPS`. rechecked: rows that the certified scan of a query reads again, however many there
    are, each for `seek` seconds where vectors are not in memory. call: seconds it costs to ask several machines.
    facts: bytes of an image beside its vectors. scaling: the share of twice the speed that twice the cores give.
    think: seconds between two queries of a person. core_hour, gib_hour: US dollars. machines: what can be rented, by
    name.
    """

    machine: str = ""
    cores: int = 1
    scan: Mapping[str, Line] = field(default_factory=dict)
    build: Mapping[str, float] = field(default_factory=dict)
    encoders: Mapping[str, Rate] = field(default_factory=dict)
    rechecked: float = 0.0
    seek: float = 0.0
    call: float = 0.0
    facts: float = 0.0
    core_hour: float = 0.0
    gib_hour: float = 0.0
    scaling: float = 1.0
    think: float = 10.0
    machines: Mapping[str, MachineOffer] = field(default_factory=dict)


def own_table() -> Path:
    """Where the user's own slopes are looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "eyespot" / "slopes.toml"


def tables(given: Path | None = None) -> list[Path]:
    """The tables that count, the last word last: ours, the user's own if it is there, and the one given."""
    own = [own_table()] if own_table().is_file() else []
    return [SHIPPED, *own, *([given] if given is not None else [])]


def read_slopes(given: Path | None = None) -> Slopes:
    """What the tables say, a later one over an earlier; `UsageError` for a file that is none."""
    table: dict[str, Any] = {}
    for path in tables(given):
        found = toml_of(path)
        if wrong := next(_wrong(found), None):
            raise UsageError(f"{path}: {wrong}; write it as in {SHIPPED}")
        for name, value in found.items():
            table[name] = table.get(name, {}) | value if isinstance(value, dict) else value
    return Slopes(
        machine=str(table.get("machine", "")),
        cores=int(table.get("cores", 1)),
        scan={name: Line(line["fixed"], line["slope"]) for name, line in table.get("scan", {}).items()},
        build=table.get("build", {}),
        encoders={name: Rate(**rate) for name, rate in table.get("encoders", {}).items()},
        machines={name: MachineOffer(**offer) for name, offer in table.get("machines", {}).items()},
        **{name: float(table[name]) for name in _NUMBERS if name in table},
    )


_NUMBERS = ("rechecked", "seek", "call", "facts", "core_hour", "gib_hour", "scaling", "think")
_FIELDS = {
    "scan": {"fixed", "slope"},
    "encoders": {"images_per_second", "dim", "measured"},
    "machines": {"cores", "ram", "hour"},
}


def _wrong(found: Mapping[str, Any]) -> Any:
    """What cannot be used in a table, in words."""
    for name, value in found.items():
        if name in _FIELDS:
            yield from _wrong_rows(name, value)
        elif name == "build":
            parts = value.items() if isinstance(value, dict) else [("", None)]
            yield from (f"[build] {part} is {one!r} and no number" for part, one in parts if not _is_number(one))
        elif name in ("scaling", "think", "cores") and not (_is_number(value) and value > 0):
            yield f"{name} is {value!r} and no number above 0"
        elif name == "cores" and value != int(value):
            yield f"cores is {value!r} and no whole number"
        elif name in (*_NUMBERS, "cores"):
            yield from [] if _is_number(value) else [f"{name} is {value!r} and no number"]
        elif name != "machine":
            yield f"{name} is nothing that is measured"


def _wrong_rows(table: str, rows: Any) -> Any:
    for name, row in rows.items() if isinstance(rows, dict) else [("", None)]:
        numbers = _FIELDS[table] - {"measured"}
        if not isinstance(row, dict) or not numbers <= set(row) <= _FIELDS[table]:
            yield f'[{table}."{name}"] must hold {", ".join(sorted(_FIELDS[table]))}'
        elif not all(_is_number(row[one]) and (table == "scan" or row[one] > 0) for one in numbers):
            yield f'[{table}."{name}"] holds something that is no number' + ("" if table == "scan" else " above 0")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
