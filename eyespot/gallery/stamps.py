"""What shows that a tar is as it was when a run last read it: then no later run reads it again.

An archive changes as a whole, and with it each picture in it. Files that a folder or a list names are looked at one by
one: a folder's time says nothing of what is written into a file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from typing import NamedTuple

from eyespot.photos.beside import table_beside
from eyespot.photos.kinds import SkippedFiles
from eyespot.photos.pictures import SUFFIXES
from eyespot.photos.places import Root
from eyespot.photos.raw import reads_raw
from eyespot.photos.videos.addresses import reads_video

_READER = 1  # one more, whenever tars, their sidecars or their tables are read in another way
_SETTLED = 3.0  # seconds: file systems write times in steps of up to two, so what is younger may change unseen


class ArchiveStamp(NamedTuple):
    """Size and times of an archive and of the table beside it, and what reads them; with the files left alone in it."""

    text: str
    skipped: SkippedFiles

    @classmethod
    def of(cls, root: Root) -> ArchiveStamp | None:
        """That of a root as it lies there now; None for one that is no tar, and for one just written."""
        if root.kind != "tar":
            return None
        table = table_beside(root.place)
        try:
            found = [os.stat(root.place), *([os.stat(table)] if table else [])]
        except OSError:  # the walk says why
            return None
        newest = max(max(one.st_mtime, one.st_ctime) for one in found)
        if time.time() - newest < _SETTLED:
            return None
        files = [[one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino] for one in found]
        name = table.name if table else ""
        return cls(json.dumps([_READER, sorted(SUFFIXES), reads_raw(), reads_video(), name, files]), SkippedFiles())

    @classmethod
    def known(cls, sql: sqlite3.Connection, number: int) -> ArchiveStamp | None:
        """That of the last run that read all of the root and planned what it found."""
        row = sql.execute("SELECT stamp, skipped FROM stamps WHERE root = ?", (number,)).fetchone()
        return None if row is None else cls(row[0], SkippedFiles.from_json(row[1]))

    def write(self, sql: sqlite3.Connection, number: int) -> None:
        """Take it down; in the transaction that plans what was found."""
        values = (number, self.text, self.skipped.to_json())
        sql.execute("INSERT OR REPLACE INTO stamps VALUES (?, ?, ?)", values)
