"""Which rows of a gallery the images of a task are, whatever a benchmark and a gallery call them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eyespot.benchmarks._asking import task_queries
from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._ranking import aliases
from eyespot.gallery.view import View
from eyespot.search.matching import RowMatching, matched
from eyespot.types import Run


@dataclass(frozen=True)
class RowNames:
    """Names of images to rows, by the gallery's column `match` where one is given."""

    view: View
    match: str | None = None

    def matched(self, names: Sequence[str], facts: Mapping[str, Mapping[str, object]]) -> RowMatching:
        """The way of naming under which most images are found, the first of equals."""
        ways = aliases(names, facts)[: 1 if self.match else None]
        best = self._by(names, ways[0])
        for others in ways[1:]:
            if not best.unmatched:
                break
            found = self._by(names, others)
            best = found if len(found.unmatched) < len(best.unmatched) else best
        return best

    def _by(self, names: Sequence[str], others: Sequence[str]) -> RowMatching:
        found = matched(self.view, others, self.match)
        named = dict(zip(others, names, strict=True))
        ambiguous = [named[other] for other in found.ambiguous]
        return RowMatching(found.way, [named[other] for other in found.names], found.rows, found.ids, ambiguous)


def with_other_names(called: Callable[[str], str | None], matching: RowMatching, ranked: Run) -> RowMatching:
    """The matching, and what the benchmark calls the other pictures that were found."""
    taken = set(matching.names)
    names: dict[str, str] = {}  # by name, the id
    for id in ranked.images.tolist():
        path = ranked.facts[id]["path"]
        name = None if id in matching.by_id or not path else called(path)
        if name is not None and name not in taken:
            taken.add(name)
            names[name] = id
    rows = np.append(matching.rows, np.full(len(names), -1, np.int64))
    known = [*matching.names, *names], rows, [*matching.ids, *names.values()]
    return RowMatching(matching.way, *known, matching.ambiguous)


def rows_of(matching: RowMatching, names: Container[str]) -> list[int]:
    """The rows that any of these names means."""
    return [row for row, known in matching.by_row.items() if any(name in names for name in known)]


def wanted(task: Task) -> tuple[list[str], Mapping[str, Mapping[str, object]]]:
    """Every image to find in the gallery (judged, in the pool, a candidate, part of a query), and its facts."""
    judged = task.judged
    if task.way == "i2t":
        return list(judged.queries), judged.queries
    pictures = [image for _, image in task_queries(task).values() if image is not None]
    handed = judged.candidates.images.tolist() if judged.candidates is not None else []
    beside_list = judged.images if task.listed is not None else ()
    named = [*judged.qrels.images.tolist(), *task.pool, *handed, *pictures, *task.apart, *beside_list]
    return list(dict.fromkeys(named)), task.image_facts
