"""Values of measures for each query, with their means, intervals and definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.metrics._measure import Measure
from eyespot.metrics._relevant import Reals
from eyespot.types import UsageError

CHUNK = 1 << 21  # values drawn at once


@dataclass(frozen=True)
class Rules:
    """What counts besides the formula.

    `missing`: judged queries that the run lacks score 0 or are left out; `without_relevant`: so for those without a
    relevant image. `order`: rankings as `given`, or as trec_eval sorts them (`trec`), whatever order they came in.
    """

    missing: str = "zero"
    without_relevant: str = "zero"
    order: str = "given"

    def __post_init__(self) -> None:
        allowed = {"missing": ("zero", "skip"), "without_relevant": ("zero", "skip"), "order": ("given", "trec")}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise UsageError(f"the rule {name} is one of {', '.join(values)}, not {getattr(self, name)!r}")


@dataclass(frozen=True, eq=False)
class Scores:
    """For each label the value of each query, `values[label]` (queries,), in the order of `queries`.

    `missing`, `unjudged` and `without_relevant` name queries that the run lacks, that the qrels lack, and that have
    nothing relevant; `notes` are sentences for the user. `ranges` has, of means that an order of equal scores moves,
    the lowest and the highest.
    """

    queries: list[str]
    values: Mapping[str, Reals]
    measures: Mapping[str, Measure]
    rules: Rules
    missing: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    without_relevant: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def mean(self, label: str) -> float:
        """The mean over queries, the same whatever their order; NaN without queries."""
        return mean_of(self.values[label])

    @property
    def means(self) -> dict[str, float]:
        """The mean of every label."""
        return {label: self.mean(label) for label in self.values}

    def interval(self, label: str, samples: int = 2000, seed: int = 0) -> tuple[float, float]:
        """The middle 95% of the means of resampled queries (percentile bootstrap); NaN for fewer than two queries."""
        if len(self.queries) < 2:
            return math.nan, math.nan
        low, high = np.percentile(bootstrap(self.values[label], samples, seed), (2.5, 97.5)).tolist()
        return low, high

    def take(self, rows: Any) -> Scores:
        """These queries alone: indices or a boolean array (queries,)."""
        chosen = np.arange(len(self.queries))[np.asarray(rows)]  # (chosen,)
        values = {label: each[chosen] for label, each in self.values.items()}
        return replace(self, queries=[self.queries[row] for row in chosen], values=values, ranges={})

    def as_json(self, per_query: bool = False) -> dict[str, Any]:
        """All of it for JSON."""
        measures = {}
        for label in self.values:
            value = {"mean": self.mean(label), "interval": list(self.interval(label)), "queries": len(self.queries)}
            measures[label] = {**value, "definition": self.measures[label].definition}
        fields: dict[str, Any] = {"measures": measures}
        if per_query:
            columns = {label: values.tolist() for label, values in self.values.items()}
            rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
            fields["queries"] = dict(zip(self.queries, rows, strict=True))
        return {**fields, "missing": self.missing, "notes": self.notes, "rules": asdict(self.rules)}


def bootstrap(values: NDArray[Any] | Sequence[Any], samples: int = 2000, seed: int = 0) -> Reals:
    """Means of queries drawn with replacement: (q,) to (samples,), or (q, m) to (samples, m) by the same draws."""
    values = np.asarray(values, np.float64)
    rng = np.random.default_rng(seed)
    rows = max(1, CHUNK // max(1, len(values)))
    sizes = [min(rows, samples - start) for start in range(0, samples, rows)]
    drawn = (rng.integers(0, len(values), (size, len(values))) for size in sizes)
    return np.concatenate([values[chosen].mean(axis=1) for chosen in drawn])


def mean_of(values: Reals) -> float:
    """Their mean, the same whatever their order; NaN of none."""
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def labels_of(measures: Sequence[Measure]) -> dict[str, Measure]:
    """Measures under their short spelling, or the full one where two would share it; the same measure once."""
    distinct = list(dict.fromkeys(measures))
    short = [str(measure) for measure in distinct]
    return {m.full if short.count(name) > 1 else name: m for name, m in zip(short, distinct, strict=True)}
