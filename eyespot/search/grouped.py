"""One picture of each group: a ranking in which copies and frames of one burst stand behind their original.

A group has the place of its best score; the picture that is shown, copied and exported is the one that
`eyespot duplicates` would keep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eyespot.gallery.groups.stored import Groups
from eyespot.gallery.view import View
from eyespot.types import Mask, Query, RankedImage, Run, Stage

OTHERS = "others"  # the fact of a hit: how many more of its group the search could have shown


@dataclass(frozen=True)
class Grouped:
    """The k best of a ranking, without what belongs to the group of a better one.

    search: the stage that ranks this many; it is asked again for more where groups leave too few. mask: the rows that
    it may find. holding: those of them that a query finds at all, where a search does not rank every row.
    """

    search: Callable[[int], Stage]
    view: View
    mask: Mask
    k: int
    holding: Callable[[Sequence[Query]], Mask] | None = None

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A run of the best of each group; its facts say how many others a group has."""
        deep = 2 * self.k if self.groups.numbers.max(initial=-1) >= 0 else self.k
        while True:
            made = self.search(deep)(queries, run)
            best = self._best(made)
            if all(len(best[query]) >= self.k or len(made[query]) < deep for query in made):
                counted = self.mask if self.holding is None else self.holding(queries)
                shown = list(dict.fromkeys(hit.image for hits in best.values() for hit in hits[: self.k]))
                rows = self.view.rows_by_id(shown)
                originals, others = self.groups.best(rows, counted), self.groups.others(rows, counted).tolist()
                replaced = (originals != rows).nonzero()[0]
                known, fresh = (self.view.facts(some[replaced].tolist()) for some in (rows, originals))
                about = [made.facts[id] for id in shown]
                for at, old, new in zip(replaced.tolist(), known, fresh, strict=True):
                    about[at] = new | {name: value for name, value in about[at].items() if name not in old}
                named = {id: str(one["id"]) for id, one in zip(shown, about, strict=True)}
                heads = {query: hits[: self.k] for query, hits in best.items()}
                cut = {query: [hit._replace(image=named[hit.image]) for hit in hits] for query, hits in heads.items()}
                made = made.reranked(cut)
                made.facts = {str(one["id"]): one | {OTHERS: more} for one, more in zip(about, others, strict=True)}
                return made
            deep *= 4

    @cached_property
    def groups(self) -> Groups:
        """The groups of the gallery."""
        return Groups(self.view)

    def _best(self, run: Run) -> dict[str, list[RankedImage]]:
        rows = self.view.rows_by_id(list(run.facts))
        number_of = dict(zip(run.facts, self.groups.numbers[rows].tolist(), strict=True))
        best = {}
        for query, hits in run.items():
            first: dict[object, RankedImage] = {}
            for hit in hits:
                number = number_of[hit.image]
                first.setdefault(hit.image if number < 0 else number, hit)
            best[query] = list(first.values())
        return best
