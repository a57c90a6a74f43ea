"""The tables of annotation, and what a team keeps beside its marks: who labels what, leases, notes, groups, flags.

Queries are named by their ids, people by the names under which they mark, photos by their ids. Photos of a shared list
are handed out a few at a time, as leases: no photo to two people unless that is wanted. What somebody holds for a while
without labelling it goes to whoever asks next, so that a list comes to its end when one of its people leaves. So does a
photo that its holder has skipped, for the stopping rule goes no further than the first photo without a mark.

A flag says what should keep a photo out of a collection, such as a face, with who saw it and when. Annotators of
INQUIRE found such photos while they labelled (appendix H.1). The table that `write_flags` makes is what `eyespot build
inat --flagged` takes.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from eyespot.ledger.judgements import PERSON
from eyespot.ledger.sqlite_file import SqliteFile
from eyespot.storage.tables import write_csv
from eyespot.types import Judgement, UsageError

SCHEMA = Path(__file__).with_name("team_store.sql").read_text("utf-8")


class AnnotationTables(SqliteFile):
    """The connection to these tables; any number of threads and processes may work at them at once."""

    what, schema = "annotations", SCHEMA


# -- flags ----------------------------------------------------------------------------------------------------------


FLAG_KINDS = {"face": "a face", "personal": "personal data", "not-photo": "not a photo", "other": "another reason"}
LONGEST_REASON = 300  # characters
FLAG_COLUMNS = ("photo", "file_name", "flag", "reason", "person", "time", "image_id")


class Flag(NamedTuple):
    """What somebody saw on a photo, and when, in seconds since 1970."""

    image: str
    kind: str
    reason: str
    person: str
    at: float

    @property
    def words(self) -> str:
        """What it says, for people."""
        return f"{FLAG_KINDS[self.kind]}: {self.reason}" if self.reason else FLAG_KINDS[self.kind]


class Flags:
    """The flags of one ledger. Nothing is deleted: a flag that is taken down stays as history."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables

    def put(self, image: str, kind: str, person: str, reason: str = "") -> bool:
        """Flag a photo; whether that is new. `UsageError` for an unknown kind, and another reason without words."""
        reason = " ".join(reason.split())
        if kind not in FLAG_KINDS:
            raise UsageError(f"a flag is one of {', '.join(FLAG_KINDS)}, not {kind!r}")
        if kind == "other" and not reason:
            raise UsageError("another reason needs words: say what is wrong with the photo")
        if len(reason) > LONGEST_REASON or not reason.isprintable():
            raise UsageError(f"a reason has at most {LONGEST_REASON} printable characters; write a shorter one")
        return self._put(Flag(image, kind, reason, person, time.time()), raised=True)

    def take_down(self, image: str, kind: str, person: str) -> bool:
        """Take somebody's flag down; whether there was one."""
        return self._put(Flag(image, kind, "", person, time.time()), raised=False)

    def _put(self, flag: Flag, *, raised: bool) -> bool:
        with self._tables.transaction() as sql:
            same = [one for one in self.of([flag.image]) if one[:4] == flag[:4]]
            earlier = [one for one in self.of([flag.image]) if (one.kind, one.person) == (flag.kind, flag.person)]
            if same if raised else not earlier:
                return False
            sql.execute(
                "INSERT INTO photo_flags(image, kind, reason, person, at, raised) VALUES (?, ?, ?, ?, ?, ?)",
                (*flag, int(raised)),
            )
        return True

    def of(self, images: Iterable[str]) -> list[Flag]:
        """The flags of some photos that stand, the earliest first."""
        wanted = list(dict.fromkeys(images))
        return [flag for image in wanted for flag in self._standing("WHERE image = ?", image)]

    def all(self) -> list[Flag]:
        """All flags that stand, the earliest first."""
        return self._standing("")

    def images(self) -> set[str]:
        """The photos that somebody flagged."""
        return {flag.image for flag in self.all()}

    def _standing(self, where: str, *values: str) -> list[Flag]:
        statement = f"SELECT image, kind, reason, person, at, raised FROM photo_flags {where} ORDER BY number"
        last: dict[tuple[str, str, str], Flag] = {}
        for image, kind, reason, person, at, raised in self._tables.select(statement, *values):
            last.pop((image, kind, person), None)
            if raised:
                last[image, kind, person] = Flag(image, kind, reason, person, at)
        return list(last.values())


def write_flags(file: Path, flags: Iterable[Flag], path_of: Callable[[str], str]) -> int:
    """The flags as a table that `build inat --flagged` takes; gives how many rows it has.

    The column photo is the name of the photo's file without its ending, which in iNaturalist's export is its id.
    """
    rows = []
    for flag in flags:
        name = PurePosixPath(path_of(flag.image) or flag.image)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(flag.at))
        rows.append((name.stem, name.name, flag.kind, flag.reason, flag.person, when, flag.image))
    write_csv(file, [FLAG_COLUMNS, *rows])
    return len(rows)


# -- the team -------------------------------------------------------------------------------------------------------


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


LAPSE = 900.0  # seconds for which a photo that was handed out waits for its label
SKIPPED = 24  # looks at photos that were handed out to somebody after an open one: then they have skipped it
PHOTOS = 240  # in groups: whoever was handed so many at once gets no further group, so that a page can show them all
TWICE = 0.1  # of the photos of a shared list are labelled by two people


@dataclass(frozen=True)
class Unit:
    """Photos that one person labels at once, a group or a single photo, and by how many people."""

    images: tuple[str, ...]
    people: int = 1


@dataclass(frozen=True)
class Lease:
    """A photo that somebody holds, since when."""

    image: str
    person: str
    at: float

    @property
    def lapsed(self) -> bool:
        """Whether it may go to somebody else, also where the clock went back behind it."""
        return not 0 <= time.time() - self.at < LAPSE


def is_twice(seed: str, image: str) -> bool:
    """Whether two people label a photo: a choice at random that is the same whatever else is on the list."""
    digest = blake2b(f"{seed} {image}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < TWICE * 2**64


class TeamStore:
    """The notes of one ledger; any number of threads and processes may work at it at once."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables
        self.flags = Flags(tables)

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

    # -- shared lists -----------------------------------------------------------------------------------------

    def share(self, query: str) -> str:
        """Make a list shared; gives its seed, which stays the same."""
        self._tables.change("INSERT OR IGNORE INTO shared_lists VALUES (?, ?)", [(query, secrets.token_hex(8))])
        return str(self.seed(query))

    def seed(self, query: str) -> str | None:
        """The seed of a shared list; None for a list that nobody has shared."""
        seed: str | None = self._tables.first("SELECT seed FROM shared_lists WHERE query = ?", query)
        return seed

    def leases(self, query: str) -> list[Lease]:
        """All leases of a list, the earliest first."""
        statement = "SELECT image, person, at FROM list_leases WHERE query = ? ORDER BY number"
        return [Lease(*row) for row in self._tables.select(statement, query)]

    def renew(self, query: str, person: str, labelled: Collection[str], grouped: Collection[str] = ()) -> None:
        """Let the leases of somebody who is at work begin anew; those that have lapsed stay lapsed.

        `labelled` are the photos that they have labelled, `grouped` those of them that got the mark of their group: a
        group is one look. What they have skipped lapses.
        """
        now, later, skipped = time.time(), 0, list[tuple[str, str, str]]()
        with self._tables.transaction() as sql:
            for lease in reversed([one for one in self.leases(query) if one.person == person]):
                later += lease.image in labelled and lease.image not in grouped
                if later >= SKIPPED and lease.image not in labelled:
                    skipped.append((query, lease.image, person))
            sql.execute(
                "UPDATE list_leases SET at = ? WHERE query = ? AND person = ? AND at > ?",
                (now, query, person, now - LAPSE),
            )
            sql.executemany("UPDATE list_leases SET at = 0 WHERE query = ? AND image = ? AND person = ?", skipped)

    def hand_out(
        self, query: str, person: str, units: Sequence[Unit], labelled: Collection[tuple[str, str]], most: int
    ) -> int:
        """Hand somebody the next units of a list, `most` of them or some `PHOTOS`; gives how many photos there were.

        `labelled` are the labels there are, as photo and person.
        """
        now, handed, units_handed = time.time(), list[str](), 0
        with self._tables.transaction() as sql:
            leases = self.leases(query)
            not_again = {image for image, labeller in labelled if labeller == person}
            not_again |= {lease.image for lease in leases if lease.person == person and not lease.lapsed}
            held = {(lease.image, lease.person) for lease in leases if not lease.lapsed}
            taken = Counter(image for image, _ in held.union(labelled))
            for unit in units:
                if units_handed == most or len(handed) >= PHOTOS:
                    break
                free = [image for image in unit.images if image not in not_again and taken[image] < unit.people]
                handed += free
                units_handed += bool(free)
            sql.executemany(
                "INSERT OR REPLACE INTO list_leases(query, image, person, at) VALUES (?, ?, ?, ?)",
                [(query, image, person, now) for image in handed],
            )
        return len(handed)

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

    def notes(self, query: str) -> dict[str, list[dict[str, Any]]]:
        """What a `person` wrote at photos of a query (`note`, and `at` in seconds since 1970), by photo, in order."""
        statement = "SELECT image, person, note, at FROM dispute_notes WHERE query = ? ORDER BY number"
        found: dict[str, list[dict[str, Any]]] = {}
        for image, person, note, at in self._tables.select(statement, query):
            found.setdefault(image, []).append({"person": person, "note": note, "at": at})
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
