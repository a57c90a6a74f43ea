"""Which photo was handed to whom, of a shared list and of an audit: no photo to two people unless that is wanted.

Photos are handed out a few at a time, as leases. What somebody holds for a while without labelling it goes to whoever
asks next, so that a list or an audit comes to its end when one of its people leaves. So does a photo of a list that its
holder has skipped, for the stopping rule goes no further than the first photo without a mark.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from eyespot.curate.annotate.annotation_tables import AnnotationTables

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
        """Whether it may go to somebody else."""
        return time.time() - self.at >= LAPSE


class Leases:
    """The leases of all shared lists of one ledger; any number of threads and processes may ask at once."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables

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
        now, handed, looks = time.time(), list[str](), 0
        with self._tables.transaction() as sql:
            leases = self.leases(query)
            mine = {image for image, labeller in labelled if labeller == person}
            mine |= {lease.image for lease in leases if lease.person == person and not lease.lapsed}
            held = {(lease.image, lease.person) for lease in leases if not lease.lapsed}
            taken = Counter(image for image, _ in held.union(labelled))
            for unit in units:
                if looks == most or len(handed) >= PHOTOS:
                    break
                free = [image for image in unit.images if image not in mine and taken[image] < unit.people]
                handed += free
                looks += bool(free)
            sql.executemany(
                "INSERT OR REPLACE INTO list_leases(query, image, person, at) VALUES (?, ?, ?, ?)",
                [(query, image, person, now) for image in handed],
            )
        return len(handed)


def is_twice(seed: str, image: str, share: float = TWICE) -> bool:
    """Whether two people label a photo: a choice at random that is the same whatever else is on the list."""
    digest = blake2b(f"{seed} {image}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


class AuditShares:
    """The shares of all audits of one ledger; any number of threads and processes may ask at once."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables

    def join(self, audit: int, people: Sequence[str]) -> None:
        """Let these people work at an audit, too."""
        statement = "INSERT OR IGNORE INTO audit_people(audit, person) VALUES (?, ?)"
        self._tables.change(statement, [(audit, person) for person in people])

    def people(self, audit: int) -> list[str]:
        """Who joined, in the order in which they came."""
        rows = self._tables.select("SELECT person FROM audit_people WHERE audit = ? ORDER BY number", audit)
        return [person for (person,) in rows]

    def note_list(self, audit: int, listed: int) -> None:
        """Remember how many photos were on the list at the draw: what is listed later is no part of its rest."""
        self._tables.change("INSERT INTO audit_lists VALUES (?, ?)", [(audit, listed)])

    def listed(self, audit: int) -> int:
        """How many photos were on the list at the draw, at least: 0 for an audit of earlier versions."""
        return int(self._tables.first("SELECT listed FROM audit_lists WHERE audit = ?", audit) or 0)

    def label_twice(self, audit: int, images: Sequence[str]) -> None:
        """Ask for the labels of two people on these photos."""
        self._tables.change("INSERT INTO audit_twice VALUES (?, ?)", [(audit, json.dumps(list(images)))])

    def twice(self, audit: int) -> set[str]:
        """The photos that two people label."""
        return set(json.loads(self._tables.first("SELECT images FROM audit_twice WHERE audit = ?", audit) or "[]"))

    def release(self, audit: int, images: Collection[str]) -> None:
        """Wait no longer for the labels of a second person on these photos."""
        with self._tables.transaction() as sql:
            left = sorted(image for image in self.twice(audit) if image not in images)
            sql.execute("UPDATE audit_twice SET images = ? WHERE audit = ?", (json.dumps(left), audit))

    def of(self, audit: int, person: str) -> list[str]:
        """The photos that were handed to somebody, in the order in which they got them."""
        statement = "SELECT image FROM audit_shares WHERE audit = ? AND person = ? ORDER BY number"
        return [image for (image,) in self._tables.select(statement, audit, person)]

    def hand_out(
        self, audit: int, person: str, photos: Sequence[str], labelled: Collection[tuple[str, str]], most: int
    ) -> int:
        """Hand somebody the next photos of an audit; gives how many there were.

        `labelled` are the labels there are, as photo and person. What others hold unlabelled is theirs until it lapses.
        """
        twice, now = self.twice(audit), time.time()
        with self._tables.transaction() as sql:
            rows = self._tables.select("SELECT image, person, at FROM audit_shares WHERE audit = ?", audit)
            mine = {image for image, holder, _ in rows if holder == person}
            mine |= {image for image, labeller in labelled if labeller == person}
            held = {(image, holder) for image, holder, at in rows if now - at < LAPSE}
            taken = Counter(image for image, _ in held.union(labelled))
            free = (image for image in photos if image not in mine and taken[image] < 1 + (image in twice))
            handed = [image for image, _ in zip(free, range(most), strict=False)]
            sql.executemany(
                "INSERT INTO audit_shares(audit, image, person, at) VALUES (?, ?, ?, ?)",
                [(audit, image, person, now) for image in handed],
            )
        return len(handed)
