"""What models cost: a table in TOML that users can edit."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eyespot.storage.text_files import toml_of
from eyespot.types import Price, UsageError

FIELDS = {"input", "output", "cached", "batch", "cached_in_batch", "date"}
SHIPPED = Path(__file__).parent / "prices.toml"
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@dataclass
class Prices:
    """Prices by model."""

    models: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """A model's price, also under a name that goes on with a date; None if no table knows it."""
        return self.models.get(model) or self.models.get(_DATED.sub("", model))


def own_table() -> Path:
    """Where the user's own prices are looked for."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "eyespot" / "prices.toml"


def tables(given: Path | None = None) -> list[Path]:
    """The tables in use, each overrides those before it: ours, the user's own if it is there, and the one given."""
    own = [own_table()] if own_table().is_file() else []
    return [SHIPPED, *own, *([given] if given is not None else [])]


def read_prices(given: Path | None = None) -> Prices:
    """The prices of all tables; `UsageError` for a file that is not there or has no prices in it."""
    table: dict[str, Price] = {}
    for path in tables(given):
        prices = {}
        for model, facts in toml_of(path).items():
            if not isinstance(facts, dict) or not {"input", "output"} <= set(facts) <= FIELDS:
                raise UsageError(f'{path}: {model} has no price; write ["{model}"] and below it input, output and date')
            dollars = {name: value for name, value in facts.items() if name != "date"}
            if not all(type(one) in (int, float) and math.isfinite(one) and one >= 0 for one in dollars.values()):
                costs = list(dollars.values())
                raise UsageError(f"{path}: {model} costs {costs}; write US dollars for a million tokens, as in 0.25")
            numbers = {name: float(value) for name, value in dollars.items()}
            prices[model] = Price(date=str(facts.get("date", "")), source=path, **numbers)
        table |= prices
    return Prices(table)
