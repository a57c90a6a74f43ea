"""The card of a checkpoint: what it was trained on, and whether it was shown to be better than the frozen space."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from eyespot.types import UsageError

LEVEL = 0.05
POWERED = 1.96 + 0.8416  # standard errors that a 95 % test finds in 80 % of the cases
WITHOUT = "search without it, or compare both on your own queries with eyespot eval"


@dataclass(frozen=True)
class Significance:
    """A paired difference: its 95 % interval and p."""

    interval: tuple[float, float]
    p: float


PairedTest = Callable[[NDArray[np.float64], NDArray[np.float64]], Significance]


@dataclass(frozen=True)
class FrozenComparison:
    """A model against the vectors as they are, on held-out images that had no part in choosing it.

    RR (the mean of 1 / rank of a text's own image) of both over a whole gallery of `gallery` distinct images; `images`
    held-out subjects are the units of the paired test, `spread` is the deviation of their differences.
    """

    model: float
    frozen: float
    interval: tuple[float, float]
    p: float
    spread: float
    images: int
    queries: int
    gallery: int

    @property
    def difference(self) -> float:
        """The lead of the model."""
        return self.model - self.frozen

    @property
    def better(self) -> bool:
        """Whether the model is significantly better."""
        return self.interval[0] > 0 and self.p < LEVEL

    @property
    def worse(self) -> bool:
        """Whether the model is significantly worse."""
        return self.interval[1] < 0 and self.p < LEVEL

    @property
    def needed(self) -> int | None:
        """An estimate of the held-out images that show this lead in 80 % of the cases; None without a lead."""
        if not self.difference > 0:
            return None
        return max(6, math.ceil((POWERED * self.spread / self.difference) ** 2))

    @property
    def smallest(self) -> float:
        """An estimate of the smallest lead that these images show in 80 % of the cases."""
        return POWERED * self.spread / math.sqrt(max(1, self.images))

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"RR {self.model:.3f} against {self.frozen:.3f} as they are, {self.difference:+.3f} [{low:+.3f}, "
            f"{high:+.3f}], on {self.images} held-out images among {self.gallery}"
        )


@dataclass(frozen=True)
class AdapterCard:
    """What is known of a checkpoint; `validation` is None where no pairs were held out.

    Of the fields `encoder` is that of the vectors, `data` a fingerprint of the pairs, `version` that of eyespot, and
    `by_picture` the validation with altered copies of the held-out images as queries, in place of texts.
    """

    encoder: str | None
    pairs: int
    images: int
    data: str
    preset: str
    step: int
    seed: int
    version: str
    validation: FrozenComparison | None = None
    by_picture: FrozenComparison | None = None

    @property
    def picture_caution(self) -> str | None:
        """One sentence for who searches by a picture, where that was shown to find less."""
        if self.by_picture is None or not self.by_picture.worse:
            return None
        found = f"the adapter finds less than the vectors as they are ({self.by_picture})"
        return f"with pictures as queries, {found}; {WITHOUT}"

    @property
    def caution(self) -> str | None:
        """One sentence for who searches with a model that was not shown to be better; None for one that was."""
        found = self.validation
        if found is None:
            return f"the adapter was trained without a validation, so nothing shows that it helps; {WITHOUT}"
        if found.better:
            return None
        what = "found less than the vectors as they are" if found.worse else "was not shown to find more"
        return f"the adapter {what} when it was trained ({found}); {WITHOUT}"

    def as_yaml(self) -> dict[str, Any]:
        """What a `config.yml` holds under `card`."""
        table: dict[str, Any] = TypeAdapter(AdapterCard).dump_python(self, mode="json")
        return table

    @classmethod
    def of(cls, table: Any) -> AdapterCard | None:
        """From a `config.yml`; None if it has no card. `UsageError` for one that is not readable."""
        try:
            return TypeAdapter(AdapterCard | None).validate_python(table)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise UsageError(
                f"the card in a QuARI config.yml cannot be read ({reason}); remove it, or copy the checkpoint again"
            ) from None
