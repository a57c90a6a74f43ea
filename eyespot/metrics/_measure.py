"""What every measure is: an object with its parameters, which scores rankings and says by what definition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar

from eyespot.metrics._aligned import Aligned
from eyespot.metrics._relevant import RankingPool, Reals, RelevantHits
from eyespot.types import UsageError

TIES = ("rank", "average")


@dataclass(frozen=True)
class Measure(ABC):
    """Rankings to one number for each query.

    `cutoff`: the last rank that counts, None for the whole ranking. `judged_only`: unjudged hits leave the rankings
    first; otherwise they are not relevant.
    """

    cutoff: int | None = None
    _: KW_ONLY
    judged_only: bool = False

    name: ClassVar[str] = "own"  # as ir-measures spells it
    says: ClassVar[str]  # one line for `eyespot metrics list`
    aliases: ClassVar[tuple[str, ...]] = ()
    short_parameters: ClassVar[tuple[str, ...]] = ("rel", "judged_only")  # part of the short spelling
    needs_ids: ClassVar[bool] = False  # whether it takes a run and its qrels, and no rankings without names

    def __post_init__(self) -> None:
        if self.cutoff is not None and (type(self.cutoff) is not int or self.cutoff < 1):
            raise UsageError(f"{self.name} needs a cutoff of 1 or more, not {self.cutoff!r}")
        if type(self.judged_only) is not bool:
            raise UsageError(f"judged_only of {self.name} is True or False, not {self.judged_only!r}")
        rel, ties = getattr(self, "rel", 1), getattr(self, "ties", "rank")
        if type(rel) is not int or rel < 1:
            raise UsageError(f"rel of {self.name} is a grade of 1 or more, not {rel!r}")
        if ties not in TIES:
            raise UsageError(f"ties of {self.name} is one of {', '.join(TIES)}, not {ties!r}")

    def __call__(self, rankings: Aligned) -> Reals:
        """The value of each query, (q,)."""
        return self.score((rankings.judged_only() if self.judged_only else rankings).relevant_hits)

    @abstractmethod
    def score(self, found: RelevantHits) -> Reals:
        """The value of each query from its relevant hits, (q,)."""

    def expected(self, pool: RankingPool) -> Reals:
        """The value to expect of each query when the pool is ranked at random, (q,).

        Raises `NotImplementedError` where no closed form is known; `simulated_floor` serves every measure.
        """
        raise NotImplementedError(f"no closed form is known for {self.full}")

    def __str__(self) -> str:
        return self._spelled(self.short_parameters)

    @property
    def full(self) -> str:
        """The spelling with every parameter that is not the default."""
        return self._spelled(tuple(self._parameters()))

    @property
    def definition(self) -> dict[str, Any]:
        """What tells this number from others of the same name; None: the measure has no such parameter."""
        rest = {name: value for name, value in self._parameters().items() if name != "judged_only"}
        always = {"measure": self.name, "cutoff": self.cutoff, "norm": None, "ties": None}
        return {**always, **rest, "unjudged": "removed" if self.judged_only else "not relevant"}

    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cutoff"}

    def _spelled(self, shown: tuple[str, ...]) -> str:
        changed = {field.name for field in fields(self) if getattr(self, field.name) != field.default}
        arguments = [
            self._parameter_text(name, value)
            for name, value in self._parameters().items()
            if name in changed & set(shown)
        ]
        inside = f"({', '.join(arguments)})" if arguments else ""
        return f"{self.name}{inside}" + ("" if self.cutoff is None else f"@{self.cutoff}")

    def _parameter_text(self, name: str, value: Any) -> str:
        return f"{name}={value!r}"
