"""How all queries stand, for the page that lists them; a query nobody has touched since is not looked at again."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple

from eyespot.curate.annotate.agreement import differences
from eyespot.curate.annotate.annotation_store import AnnotationStore, Stamp
from eyespot.curate.annotate.export import labelled
from eyespot.curate.annotate.progress import IN_A_ROW, LabellingProgress
from eyespot.curate.annotate.queries import AnnotationQuery

TOLD = ("supercategory", "category", "iconic_group", "lingo", "visible", "feasible", "of_interest")
GROUPINGS = ("supercategory", "category", "iconic_group")
STATES = {
    "new": "not begun",
    "going": "being labelled",
    "audit": "to be audited",
    "fix": "with something to fix",
    "done": "done",
}


class OverviewRow(NamedTuple):
    """What the page shows of a query, and no photo or mark of it: rows are kept for as long as nothing changes."""

    wanted: AnnotationQuery
    listed: int
    labelled: int
    relevant: int
    stands: list[LabellingProgress]
    together: LabellingProgress | None  # all of its people, or the only one
    faults: list[str]
    disputed: int  # photos that nobody has settled
    differing: int  # those and the settled ones

    @property
    def about(self) -> dict[str, str]:
        """What the form about the query shows, by field."""
        return {name: str(self.wanted.facts.get(name) or "") for name in TOLD}

    @property
    def groupings(self) -> list[str]:
        """The categories that the query belongs to."""
        return [text for name in GROUPINGS if (text := self.about[name])]

    @property
    def people(self) -> dict[str, int]:
        """How many photos each person has labelled."""
        return {one.who: one.labelled for one in self.stands}

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.together is None:
            return "new"
        if not self.together.stopped:
            return "going"
        audited = self.together.exhausted or self.together.found_at_least is not None
        return "done" if not self.faults else "fix" if audited else "audit"

    @property
    def share(self) -> float:
        """How far the labelling is from its stop, 0 to 1: of the photos in a row, or of the list where it ends."""
        if self.together is None:
            return 0.0
        down = self.together.descent
        whole = 0.0 if self.together.grows else down.depth / max(self.listed, 1)
        return 1.0 if self.together.stopped else max(min(down.in_a_row / IN_A_ROW, 0.99), whole)

    @property
    def where(self) -> str:
        """The same in words."""
        if self.together is None:
            return "not begun"
        down, audit = self.together.descent, self.together.audit
        if self.together.exhausted:
            return "the whole list"
        if down.stopped_at is None:
            return f"{down.in_a_row} in a row at {down.depth}"
        if audit is None:
            return f"stopped at {down.stopped_at}, no audit"
        if audit.left is None:
            return f"audit {audit.done} of {audit.size}"
        return f"stopped at {down.stopped_at}, audited"


class PersonProgress(NamedTuple):
    """What one person has done and still has to do."""

    name: str
    assigned: int
    finished: int  # of those that were assigned
    queries: int
    photos: int
    seconds: float
    cost: float


class Overview:
    """The rows of a store, as they were last; any number of threads may ask."""

    def __init__(self, store: AnnotationStore) -> None:
        self._store, self._lock = store, Lock()
        self._rows: dict[str, tuple[Stamp, OverviewRow]] = {}

    def rows(self, only: str | None = None) -> list[OverviewRow]:
        """All queries in the order in which they came, or one; `UsageError` if there is none of that id."""
        with self._lock:  # two who ask at once had better not both look at everything
            ids = list(self._store.queries()) if only is None else [self._store.query(only).id]
            for id in ids:
                # The stamp is taken first: a mark made while the row is computed counts the next time.
                stamp = self._store.stamp(id)
                if id not in self._rows or self._rows[id][0] != stamp:
                    # Of a query that nobody has judged there is nothing to compute
                    made = _row(self._store, id) if stamp.judgement else _untouched(self._store, id, stamp.listed)
                    self._rows[id] = stamp, made
            return [self._rows[id][1] for id in ids]


def _untouched(store: AnnotationStore, id: str, listed: int) -> OverviewRow:
    return OverviewRow(store.query(id), listed, 0, 0, [], None, ["not labelled"], 0, 0)


def _row(store: AnnotationStore, id: str) -> OverviewRow:
    one = labelled(store, id)
    differing = differences(store, id, one.marks)
    disputed = sum(photo.word is None for photo in differing)
    counts = len(one.photos), len(one.labels), sum(one.labels.values())
    return OverviewRow(one.wanted, *counts, one.stands, one.together, one.faults, disputed, len(differing))


def people_of(rows: Iterable[OverviewRow], assigned: dict[str, list[str]]) -> list[PersonProgress]:
    """How far everybody is who labels or is to label, by name."""
    rows = list(rows)
    names = {who for row in rows for who in (*row.people, *assigned.get(row.wanted.id, ()))}
    found = []
    for name in sorted(names, key=str.casefold):
        own = [row for row in rows if name in assigned.get(row.wanted.id, ())]
        stands = [one for row in rows for one in row.stands if one.who == name]
        finished = sum(row.state in ("done", "fix") for row in own)
        seconds = sum(one.seconds for one in stands)
        photos, cost = sum(one.labelled for one in stands), sum(one.cost() for one in stands)
        found.append(PersonProgress(name, len(own), finished, len(stands), photos, seconds, cost))
    return found
