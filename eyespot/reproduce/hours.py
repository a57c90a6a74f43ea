"""Hours of a table's steps on this machine: arithmetic over operations, and a product of matrices that is timed now.

    estimate = hours(recipe, measured_rate())
    for step in estimate.steps:
        print(step.command, step.hours)

No weights are needed. Encoders in float32 on a processor reach 0.8 to 1.0 of the rate of a plain product
(measured in November 2026); `SHARE` is the middle. On an H100 it was 0.67 for B/16 and 0.86 for larger ones.
"""

from __future__ import annotations

import math
import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eyespot.reproduce.recipes import TableRecipe
from eyespot.storage.systems import processor_name
from eyespot.storage.toml import toml_of

OPERATIONS = Path(__file__).parent / "operations.toml"
HOUR = 3600.0  # seconds
SHARE = 0.9  # of the rate of a product of matrices, that encoders reach
_SHAPES = ((3136, 768), (768, 3072))  # one layer's product of ViT-B/16, for sixteen pictures
_MODEL_OPTIONS = ("--rerank", "-e")  # of two models in a line, a judge takes the time


class StepHours(NamedTuple):
    """The pictures that a model looks at in one step; None: the operations of the model are not known."""

    command: str
    model: str
    pictures: int
    operations: float | None  # of one picture
    hours: float | None


class ProductRate(NamedTuple):
    """A machine, and the operations a second of its products of matrices."""

    machine: str
    rate: float


@dataclass(frozen=True)
class TransformerShape:
    """A vision transformer: `side` and `patch` in pixels, and the width inside a layer's two halves (`hidden`)."""

    side: int
    patch: int
    width: int
    layers: int
    hidden: int
    pooling: str = "token"

    @property
    def operations(self) -> float:
        """Operations for one picture."""
        patches = (self.side // self.patch) ** 2
        tokens = patches + (self.pooling == "token")
        layer = 8 * tokens * self.width**2 + 4 * tokens**2 * self.width + 4 * tokens * self.width * self.hidden
        pool = 4 * patches * self.width**2 if self.pooling == "attention" else 0
        return float(2 * patches * 3 * self.patch**2 * self.width + self.layers * layer + pool)


class TableHours(NamedTuple):
    """What is known of a table's hours on a machine."""

    machine: str
    rate: float
    steps: list[StepHours]

    @property
    def total(self) -> float:
        """Hours of all steps whose hours are known."""
        return sum(step.hours for step in self.steps if step.hours is not None)

    @property
    def operations(self) -> float:
        """Operations of all steps where they are known: divide by what another machine does."""
        return sum(step.pictures * step.operations for step in self.steps if step.operations is not None)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        steps = [step._asdict() for step in self.steps]
        return {**self._asdict(), "share": SHARE, "total": self.total, "operations": self.operations, "steps": steps}


def hours(recipe: TableRecipe, measured: ProductRate) -> TableHours:
    """The hours of every step that embeds or judges pictures."""
    steps = []
    for command in (one for one in recipe.commands(sample=False) if one.pictures):
        words = shlex.split(command.line)
        model = next(words[words.index(option) + 1] for option in _MODEL_OPTIONS if option in words)
        each = operations(model)
        took = None if each is None else command.pictures * each / (SHARE * measured.rate) / HOUR
        steps.append(StepHours(command.id, model, command.pictures, each, took))
    return TableHours(measured.machine, measured.rate, steps)


def measured_rate() -> ProductRate:
    """That of this machine, in half a second: in 16 bits on a card, else in float32 on all cores."""
    here = f"{processor_name()}, {os.cpu_count()} cores"
    if find_spec("torch") is None:  # its products and numpy's differ by a tenth
        one, two = (np.ones(shape, np.float32) for shape in _SHAPES)
        return ProductRate(here, _timed(lambda: one @ two))
    import torch

    from eyespot.models.device import half, usable

    device = usable()
    type = torch.float32 if device.type == "cpu" else half(device)
    left, right = (torch.ones(*shape, dtype=type, device=device) for shape in _SHAPES)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else here
    return ProductRate(name, _timed(lambda: (left @ right)[0, 0].item()))


def duration(hours: float) -> str:
    """Hours for people, in two digits: "3.5 minutes", "12 hours", "4.2 years"."""
    units = {"years": 24.0 * 365, "days": 24.0, "hours": 1.0, "minutes": 1 / 60}
    unit = next((name for name, size in units.items() if hours >= 2 * size), "minutes")
    number = hours / units[unit]
    return f"{number:,.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"


def operations(model: str) -> float | None:
    """Operations that one picture costs a model, by its name as `-e` and `--rerank` take it; None if not known."""
    table = _table()
    fields = table["models"].get(model)
    if fields is None:
        return None
    seeing = shapes()[fields["shape"]].operations if "shape" in fields else fields["operations"]
    reading = 2.0 * fields.get("parameters", 0) * fields.get("tokens", 0)
    return float(fields.get("views", 1) * seeing + reading)


def shapes() -> dict[str, TransformerShape]:
    """The vision transformers of `operations.toml`, by their names there."""
    return {name: TransformerShape(**fields) for name, fields in _table()["shapes"].items()}


@cache
def _table() -> Mapping[str, Any]:
    return toml_of(OPERATIONS)


def _timed(product: Callable[[], object], seconds: float = 0.5) -> float:
    """Operations a second in the fastest of the products that fit into `seconds`."""
    product()
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        product()
        best = min(best, time.perf_counter() - before)
    return 2.0 * math.prod(_SHAPES[0]) * _SHAPES[1][1] / best
