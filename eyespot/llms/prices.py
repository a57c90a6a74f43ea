"""What models cost: a table in TOML that users can edit, and what a number of requests would cost."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.storage.toml import toml_of
from eyespot.types import Price, Spent, UsageError

SHIPPED = Path(__file__).parent / "prices.toml"
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@dataclass
class Prices:
    """Prices by model. A model that no table knows costs 0, and `notes` says so once."""

    models: Mapping[str, Price]
    notes: list[str] = field(default_factory=list)

    def of(self, model: str) -> Price | None:
        """A model's price, also under a name that goes on with a date; None if no table knows it."""
        return self.models.get(model) or self.models.get(_DATED.sub("", model))

    def cost(self, model: str, tokens_in: int, tokens_out: int) -> float:
        """US dollars for this many tokens of a model."""
        price = self.of(model)
        if price is None:
            sentence = f"no price is known for {model}, so its money counts as 0; add it to {own_table()}"
            if sentence not in self.notes:
                self.notes.append(sentence)
            return 0.0
        return price.of(tokens_in, tokens_out)


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
            if not isinstance(facts, dict) or not {"input", "output"} <= set(facts) <= {"input", "output", "date"}:
                raise UsageError(f'{path}: {model} has no price; write ["{model}"] and below it input, output and date')
            dollars = [facts["input"], facts["output"]]
            if not all(map(_is_price, dollars)):
                raise UsageError(f"{path}: {model} costs {dollars}; write US dollars for a million tokens, as in 0.25")
            prices[model] = Price(float(dollars[0]), float(dollars[1]), str(facts.get("date", "")), path)
        table |= prices
    return Prices(table)


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


# -- what it would cost ---------------------------------------------------------------------------------------


class Tokens(NamedTuple):
    """What one request is taken to need: a picture of 768 pixels costs 560 to 770 tokens at the usual models."""

    picture: int = 765
    words: int = 80
    answer: int = 1


def estimate(calls: int, price: Price | None, tokens: Tokens = Tokens()) -> Spent:
    """What this many requests would cost if none is repeated; without a price the money is 0."""
    tokens_in, tokens_out = calls * (tokens.picture + tokens.words), calls * tokens.answer
    return Spent(calls, tokens_in, tokens_out, price.of(tokens_in, tokens_out) if price else 0.0)
