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
    """The rows of a desk, as they were last; any number of threads may ask."""

    def __init__(self, desk: AnnotationStore) -> None:
        self._desk, self._lock = desk, Lock()
        self._rows: dict[str, tuple[Stamp, OverviewRow]] = {}

    def rows(self) -> list[OverviewRow]:
        """All queries in the order in which they came."""
        with self._lock:  # two who ask at once had better not both look at everything
            return [self._row(id) for id in self._desk.queries()]

    def _row(self, id: str) -> OverviewRow:
        # The stamp is taken first: what is said while the row is made is looked at the next time.
        stamp = self._desk.stamp(id)
        known = self._rows.get(id)
        if known is None or known[0] != stamp:
            one = labelled(self._desk, id)
            differing = differences(self._desk, id, one.said)
            disputed = sum(photo.word is None for photo in differing)
            made = OverviewRow(
                one.wanted, len(one.photos), bool(one.labels), one.stands, one.faults, disputed, len(differing)
            )
            known = self._rows[id] = stamp, made
        return known[1]
