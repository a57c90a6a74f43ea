"""Flags: what should keep a photo out of a collection, such as a face, with who saw it and when.

Annotators of INQUIRE found such photos while they labelled (appendix H.1). The table that `write_flags` makes is what
`eyespot build inat --flagged` takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from eyespot.curate.annotate.annotation_tables import AnnotationTables
from eyespot.storage.tables import write_csv
from eyespot.types import UsageError

KINDS = {"face": "a face", "personal": "personal data", "not-photo": "not a photo", "other": "another reason"}
LONGEST_REASON = 300  # characters
COLUMNS = ("photo", "file_name", "flag", "reason", "person", "time", "image_id")


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
        return f"{KINDS[self.kind]}: {self.reason}" if self.reason else KINDS[self.kind]


class Flags:
    """The flags of one ledger. Nothing is deleted: a flag that is taken down stays as history."""

    def __init__(self, tables: AnnotationTables) -> None:
        self._tables = tables

    def put(self, image: str, kind: str, person: str, reason: str = "") -> bool:
        """Flag a photo; whether that is new. `UsageError` for an unknown kind, and another reason without words."""
        reason = " ".join(reason.split())
        if kind not in KINDS:
            raise UsageError(f"a flag is one of {', '.join(KINDS)}, not {kind!r}")
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
    write_csv(file, [COLUMNS, *rows])
    return len(rows)
