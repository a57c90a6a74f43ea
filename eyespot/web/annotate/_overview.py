"""How all queries stand, for the page that lists them; a query nobody has touched since is not looked at again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from pydantic import BaseModel, Field

from eyespot.curate.annotate.agreement import differences
from eyespot.curate.annotate.annotation_store import AnnotationStore
from eyespot.curate.annotate.export import labelled
from eyespot.curate.annotate.progress import IN_A_ROW, LabellingProgress
from eyespot.curate.annotate.queries import AnnotationQuery

TOLD = ("supercategory", "category", "iconic_group", "lingo", "visible", "feasible", "of_interest")
GROUPINGS = ("supercategory", "category", "iconic_group")


class OverviewRow(NamedTuple):
    """What the page shows of a query, and no photo or mark of it: rows are kept for as long as nothing changes."""

    wanted: AnnotationQuery
    listed: int
    labelled: int = 0
    relevant: int = 0
    stands: Sequence[LabellingProgress] = ()
    together: LabellingProgress | None = None  # all of its people, or the only one
    faults: Sequence[str] = ("not labelled",)
    disputed: int = 0  # photos that nobody has settled
    differing: int = 0  # those and the settled ones

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
        """How many photos each person has labelled, by name."""
        return dict(sorted((one.who, one.labelled) for one in self.stands))

    @property
    def state(self) -> str:
        """`new`, `going`, `audit` (to be audited), `fix` (with something to fix) or `done`."""
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


class Overview:
    """The rows of a store, as they were last; any number of threads may ask."""

    def __init__(self, store: AnnotationStore) -> None:
        self._store, self._lock = store, Lock()
        self._rows: dict[str, tuple[object, OverviewRow]] = {}

    def rows(self, only: str | None = None) -> list[OverviewRow]:
        """All queries in the order in which they came, or one; `UsageError` if there is none of that id."""
        with self._lock:  # two who ask at once had better not both look at everything
            ids = list(self._store.queries()) if only is None else [self._store.query(only).id]
            for id in ids:
                # The stamp is taken first: a mark made while the row is computed counts the next time.
                stamp = self._store.stamp(id)
                if id in self._rows and self._rows[id][0] == stamp:
                    continue
                judgement, listed, *_ = stamp
                row = OverviewRow(self._store.query(id), listed)
                if judgement:  # of a query that nobody has judged there is nothing to compute
                    one = labelled(self._store, id)
                    differing = differences(self._store, id, one.marks)
                    row = OverviewRow(
                        one.wanted,
                        len(one.photos),
                        len(one.labels),
                        sum(one.labels.values()),
                        stands=one.stands,
                        together=one.together,
                        faults=one.faults,
                        disputed=sum(photo.word is None for photo in differing),
                        differing=len(differing),
                    )
                self._rows[id] = stamp, row
            return [self._rows[id][1] for id in ids]


def people_of(rows: Sequence[OverviewRow], assigned: dict[str, list[str]]) -> list[dict[str, Any]]:
    """How far everybody is who labels or is to label, by name: `finished` are of the `assigned` queries."""
    names = {who for row in rows for who in (*row.people, *assigned.get(row.wanted.id, ()))}
    found = []
    for name in sorted(names, key=str.casefold):
        done = [row.state in ("done", "fix") for row in rows if name in assigned.get(row.wanted.id, ())]
        stands = [one for row in rows for one in row.stands if one.who == name]
        times = [one.seconds for one in stands]
        seconds = None if None in times else sum(filter(None, times))
        sums = {"photos": sum(one.labelled for one in stands), "seconds": seconds}
        found.append({"name": name, "assigned": len(done), "finished": sum(done), "queries": len(stands), **sums})
    return found


Assigned = Mapping[str, Sequence[str]]
NOBODY = "-"  # as a person: queries that are given to nobody


# By what each column of the table is sorted
COLUMNS: dict[str, Callable[[OverviewRow, Assigned], Any]] = {
    "query": lambda row, _: row.wanted.text.casefold(),
    "category": lambda row, _: (not row.groupings, [text.casefold() for text in row.groupings]),
    "listed": lambda row, _: row.listed,
    "labelled": lambda row, _: row.labelled,
    "relevant": lambda row, _: row.relevant,
    "progress": lambda row, _: (row.share, row.state == "done", row.labelled),
    "people": lambda row, assigned: (not assigned.get(row.wanted.id), assigned.get(row.wanted.id, ())),
    "disputed": lambda row, _: row.disputed,
    "faults": lambda row, _: len(row.faults),
}


class TableRequest(BaseModel):
    """What the address of the table says."""

    q: str = Field("", max_length=300)
    sort: str = Field("", pattern=f"^({'|'.join(COLUMNS)})?$")
    down: bool = False
    state: Literal["", "new", "going", "audit", "fix", "done", "disputed"] = ""
    person: str = Field("", max_length=80)
    label: str = Field("", max_length=100)
    nothing: bool = False  # whether somebody who asked for their next query has none
    # What the lead did just now, with how many queries, for whom
    did: Literal["", "give", "take", "list"] = ""
    many: int = 0
    whom: str = Field("", max_length=200)

    def address(self, **changes: object) -> str:
        """The address with some changes; what is as it would be without it is left out."""
        params = {**self.model_dump(exclude={"nothing", "did", "many", "whom"}), **changes}
        pairs = [(name, str(int(one)) if isinstance(one, bool) else one) for name, one in params.items() if one]
        return f"/annotate?{urlencode(pairs)}" if pairs else "/annotate"

    def rows(self, rows: Sequence[OverviewRow], assigned: Assigned) -> list[OverviewRow]:
        """The queries that fit, in order; equal ones as they came."""
        found = [row for row in rows if self._fits(row, assigned.get(row.wanted.id, ()))]
        if self.sort:
            found.sort(key=lambda row: COLUMNS[self.sort](row, assigned), reverse=self.down)
        return found

    def _fits(self, row: OverviewRow, given: Sequence[str]) -> bool:
        words = " ".join([row.wanted.id, row.wanted.text, *row.groupings]).casefold()
        whose = {NOBODY} if not given else set(given)
        return (
            all(word in words for word in self.q.casefold().split())
            and (not self.state or (row.disputed > 0 if self.state == "disputed" else row.state == self.state))
            and (not self.person or self.person in whose or self.person in row.people)
            and (not self.label or self.label in row.groupings)
        )


def next_of(rows: Sequence[OverviewRow], assigned: Assigned, who: str, after: str = "") -> OverviewRow | None:
    """The query that somebody had better label next: their own first, then nobody's, the least done first."""

    def turn(row: OverviewRow) -> tuple[int, float, int]:
        given = assigned.get(row.wanted.id, ())
        return 0 if who in given else 1 if not given else 2, row.share, row.labelled

    open_rows = [row for row in rows if row.state in ("new", "going", "audit") and row.wanted.id != after]
    return min(open_rows, key=turn, default=None)
