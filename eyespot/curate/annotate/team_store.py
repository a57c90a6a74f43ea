"""What a team notes beside its marks: who labels which query, what was written at disputes, marks of whole groups.

Queries are named by their ids, people by the names under which they mark, photos by their ids.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eyespot.curate.annotate.annotation_tables import AnnotationTables
from eyespot.curate.annotate.flags import Flags
from eyespot.curate.annotate.leases import Leases
from eyespot.ledger.judgements import PERSON
from eyespot.types import Judgement, UsageError

LONGEST_NAME = 60  # characters of a name


def judge_of(who: str) -> str:
    """How a person is called in the ledger; `UsageError` for a name that is empty, long, or unprintable."""
    name = " ".join(who.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"an annotator's name has 1 to {LONGEST_NAME} printable characters; give one with --as NAME")
    return f"{PERSON}{name}"


def name_of(who: str) -> str:
    """A name as the ledger has it, without needless spaces; `UsageError` as for `judge_of`."""
    return judge_of(who).removeprefix(PERSON)


OWN_DISPUTES = "own disputes"  # the rule by which people may settle disputes in which they have marks
LONGEST_NOTE = 1000  # characters


class DisputeNote(NamedTuple):
    """What somebody wrote at a disputed photo, and when, in seconds since 1970."""

    person: str
    note: str
    at: float


class TeamStore:
    """The notes of one ledger; any number of threads and processes may work at it at once."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables
        self.leases, self.flags = Leases(tables), Flags(tables)

    def forget(self, query: str) -> None:
        """Forget all that is noted of a query; flags are facts of photos, and stay."""
        with self._tables.transaction() as sql:
            for table in ("assignments", "dispute_notes", "group_marks", "shared_lists", "list_leases"):
                sql.execute(f"DELETE FROM {table} WHERE query = ?", (query,))

    # -- who labels what ------------------------------------------------------------------------------------

    def assign(self, queries: Iterable[str], person: str, lead: str) -> None:
        """Give somebody queries to label."""
        rows = [(query, person, lead, time.time()) for query in queries]
        self._tables.change("INSERT OR IGNORE INTO assignments VALUES (?, ?, ?, ?)", rows)

    def unassign(self, queries: Iterable[str], person: str) -> None:
        """Take queries away from somebody; what they have marked stays."""
        rows = [(query, person) for query in queries]
        self._tables.change("DELETE FROM assignments WHERE query = ? AND person = ?", rows)

    def assigned(self) -> dict[str, list[str]]:
        """The people of each query to whom it was given, in the order of the alphabet."""
        people: dict[str, list[str]] = {}
        for query, person in self._tables.select("SELECT query, person FROM assignments ORDER BY query, person"):
            people.setdefault(query, []).append(person)
        return people

    # -- disputes -------------------------------------------------------------------------------------------

    def write_note(self, query: str, image: str, person: str, note: str) -> None:
        """Keep what somebody writes at a photo; empty notes are left out, long ones a `UsageError`."""
        note = " ".join(note.split())
        if len(note) > LONGEST_NOTE:
            raise UsageError(f"a note has at most {LONGEST_NOTE} characters; write a shorter one")
        if note:
            self._tables.change(
                "INSERT INTO dispute_notes(query, image, person, note, at) VALUES (?, ?, ?, ?, ?)",
                [(query, image, person, note, time.time())],
            )

    def notes(self, query: str) -> dict[str, list[DisputeNote]]:
        """What was written at the photos of a query, by photo, the earliest first."""
        rows = self._tables.select(
            "SELECT image, person, note, at FROM dispute_notes WHERE query = ? ORDER BY number", query
        )
        found: dict[str, list[DisputeNote]] = {}
        for image, *note in rows:
            found.setdefault(image, []).append(DisputeNote(*note))
        return found

    def let(self, rule: str, allowed: bool, lead: str) -> None:
        """Allow or forbid something to the whole team."""
        row = (rule, "yes" if allowed else "no", lead, time.time())
        self._tables.change("INSERT OR REPLACE INTO team_rules VALUES (?, ?, ?, ?)", [row])

    def allows(self, rule: str) -> bool:
        """Whether the team may do it; not unless somebody has allowed it."""
        return self._tables.select("SELECT value FROM team_rules WHERE rule = ?", rule) == [("yes",)]

    # -- marks of whole groups ------------------------------------------------------------------------------

    def note_marks(self, query: str, person: str, images: Iterable[str], by_group: Iterable[str]) -> None:
        """Note which of the photos that are about to be marked get their mark as members of a group.

        It is called before the marks are made: after a kill in between no older mark counts as one of a group. The same
        marks may come twice, after a lost answer: the second time no mark changes, so the moment stays, too.
        """
        members, now = set(by_group), time.time()
        with self._tables.transaction() as sql:
            rows = [(query, person, image) for image in images if image not in members]
            sql.executemany("DELETE FROM group_marks WHERE query = ? AND person = ? AND image = ?", rows)
            grouped = [(query, person, image, now) for image in members]
            sql.executemany("INSERT OR IGNORE INTO group_marks VALUES (?, ?, ?, ?)", grouped)

    def marked_by_group(self, query: str, person: str, last: Mapping[str, Judgement]) -> set[str]:
        """The photos among these last words of somebody that were marked as members of a group."""
        rows = self._tables.select("SELECT image, at FROM group_marks WHERE query = ? AND person = ?", query, person)
        return {image for image, at in rows if image in last and last[image].at >= at}
