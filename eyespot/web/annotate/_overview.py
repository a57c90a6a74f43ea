"""How all queries stand, for the page that lists them; a query nobody has touched since is not looked at again."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from eyespot.curate.annotate.agreement import differences
from eyespot.curate.annotate.annotation_store import AnnotationStore, Stamp
from eyespot.curate.annotate.export import labelled
from eyespot.curate.annotate.progress import LabellingProgress
from eyespot.curate.annotate.queries import AnnotationQuery

TOLD = ("supercategory", "category", "iconic_group", "lingo", "visible", "feasible", "of_interest")


class OverviewRow(NamedTuple):
    """What the page shows of a query, and no photo or mark of it: rows are kept for as long as nothing changes."""

    wanted: AnnotationQuery
    listed: int
    labelled: bool
    stands: list[LabellingProgress]
    faults: list[str]
    disputed: int  # photos that nobody has settled
    differing: int  # those and the settled ones

    @property
    def about(self) -> dict[str, str]:
        """What the form about the query shows, by field."""
        return {name: str(self.wanted.facts.get(name) or "") for name in TOLD}


class Overview:
    """The rows of a store, as they were last; any number of threads may ask."""

    def __init__(self, store: AnnotationStore) -> None:
        self._store, self._lock = store, Lock()
        self._rows: dict[str, tuple[Stamp, OverviewRow]] = {}

    def rows(self) -> list[OverviewRow]:
        """All queries in the order in which they came."""
        with self._lock:  # two who ask at once had better not both look at everything
            ids = list(self._store.queries())
            for id in ids:
                # The stamp is taken first: a mark made while the row is computed counts the next time.
                stamp = self._store.stamp(id)
                if id not in self._rows or self._rows[id][0] != stamp:
                    one = labelled(self._store, id)
                    differing = differences(self._store, id, one.said)
                    disputed = sum(photo.word is None for photo in differing)
                    marks = bool(one.labels), one.stands, one.faults, disputed, len(differing)
                    self._rows[id] = stamp, OverviewRow(one.wanted, len(one.photos), *marks)
            return [self._rows[id][1] for id in ids]
