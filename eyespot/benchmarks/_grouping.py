"""Results broken down by a column of the queries: the mean of each group, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from eyespot.benchmarks._benchmark import Group, Task
from eyespot.metrics import Scores
from eyespot.types import Run

NONE = "(none)"


@dataclass(frozen=True)
class ByColumn:
    """By a column of the queries; a list of values counts in each, an empty value as a row of its own.

    Values that differ only in case are one group, under the spelling that comes first.
    """

    name: str

    def __call__(self, run: Run, task: Task, scores: Scores) -> list[Group]:
        """The groups in order of their names; none where no query has the column."""
        if not any(self.name in facts for facts in task.judged.queries.values()):
            return []
        rows: dict[str, list[int]] = {}
        shown: dict[str, str] = {}
        for row, query in enumerate(scores.queries):
            values = _values(task.judged.queries.get(query, {}).get(self.name))
            for value in dict.fromkeys(shown.setdefault(value.casefold(), value) for value in values):
                rows.setdefault(value, []).append(row)
        return [group_of(value, scores.take(chosen)) for value, chosen in sorted(rows.items())]


def group_of(value: str, scores: Scores) -> Group:
    """A group from the scores of its queries."""
    return Group(value, len(scores.queries), scores.means, {label: scores.interval(label) for label in scores.values})


def columns(*names: str) -> tuple[ByColumn, ...]:
    """A breakdown for each column."""
    return tuple(ByColumn(name) for name in names)


def unweighted(groups: Iterable[Group]) -> dict[str, float]:
    """Of each measure the mean over groups, each counting the same."""
    found = list(groups)
    labels: Mapping[str, float] = found[0].means if found else {}
    return {label: sum(group.means[label] for group in found) / len(found) for label in labels}


def _values(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [str(one) if one not in (None, "") else NONE for one in values] or [NONE]
