"""Videos and their frames in the ledger: a row of `files` for the video, and one for each of its frames.

A frame has the size and date of its video, so that both change at once, and is there as long as its video is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from eyespot.gallery.photos.found import Skipped
from eyespot.gallery.photos.places import Root, full_path
from eyespot.gallery.photos.raw import RAW_SUFFIXES, reads_raw
from eyespot.gallery.videos.addresses import FRAGMENT, VIDEO, VIDEO_SUFFIXES, reads_video

IS_FRAME = f"place < {VIDEO}"
FILE_PATH = f"iif(files.{IS_FRAME}, substr(files.path, 1, length(files.path) - {FRAGMENT}), files.path)"
INDEX = f"CREATE INDEX IF NOT EXISTS files_frames ON files(root, path) WHERE {IS_FRAME};"
WEIGHT = 32  # pictures that a video counts as when shards are planned
_SEEN = "INSERT OR IGNORE INTO seen SELECT root, path, size, mtime, place FROM files WHERE root = ?"
_LAST = "\U0010ffff"


class VideoCounts(NamedTuple):
    """Videos that were read to their end, the files that hold them, and their frames."""

    videos: int = 0
    files: int = 0
    frames: int = 0


def protect_files_of_extras(sql: sqlite3.Connection, number: int, root: Root) -> None:
    """RAW photos and videos that are there are not gone where the extra that reads them is not installed."""
    endings = (frozenset() if reads_raw() else RAW_SUFFIXES) | (frozenset() if reads_video() else VIDEO_SUFFIXES)
    if not endings:
        return
    has_ending = " OR ".join(f"path LIKE '%{ending}'" for ending in sorted(endings))
    rows = sql.execute(f"SELECT path FROM files WHERE root = ? AND ({has_ending})", (number,)).fetchall()
    there = [(number, path) for (path,) in rows if root.kind == "tar" or os.path.exists(full_path(root, path))]
    sql.executemany(f"{_SEEN} AND path = ?", there)


def known_files(sql: sqlite3.Connection, number: int) -> Callable[[Skipped], bool]:
    """Whether a RAW photo or video of a root is in the ledger, though the extra that reads it is not installed now."""

    def is_known(file: Skipped) -> bool:
        if file.ending not in RAW_SUFFIXES | VIDEO_SUFFIXES:
            return False
        row = sql.execute("SELECT 1 FROM files WHERE root = ? AND path = ?", (number, file.path)).fetchone()
        return row is not None

    return is_known


def see_frames(sql: sqlite3.Connection, number: int) -> None:
    """The frames of every video of a root that was seen count as seen."""
    sql.execute(
        f"{_SEEN} AND {IS_FRAME} AND EXISTS"
        f" (SELECT 1 FROM seen s WHERE s.root = files.root AND s.path = {FILE_PATH} AND s.path <> files.path)",
        (number,),
    )


def replace_frames(
    sql: sqlite3.Connection, videos: Iterable[tuple[int, str]], frames: Sequence[tuple[object, ...]]
) -> None:
    """Drop the frames of videos, by their roots and paths, that were read again, and count the new ones as seen.

    frames: root, path, size, mtime and place of each.
    """
    for root, path in videos:
        span = (root, f"{path}#t=", f"{path}#t={_LAST}")
        which = f"FROM files WHERE root = ? AND path >= ? AND path < ? AND {IS_FRAME}"
        shards = f"SELECT DISTINCT shard FROM items WHERE id IN (SELECT id {which})"
        sql.execute(f"INSERT OR IGNORE INTO stale {shards}", span)
        sql.execute(f"DELETE {which}", span)
    sql.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", frames)


def known_frames(sql: sqlite3.Connection, video: str) -> list[tuple[str, int, str]]:
    """The frames of a video that was read before, by its id: fragment, place and id of each; none if it was not."""
    found = sql.execute(
        f"SELECT root, path FROM files WHERE id = ? AND place = {VIDEO} AND failed IS NULL LIMIT 1", (video,)
    ).fetchone()
    if found is None:
        return []
    span = (found[0], f"{found[1]}#t=", f"{found[1]}#t={_LAST}")
    return sql.execute(
        f"SELECT substr(path, -{FRAGMENT}), place, id FROM files WHERE root = ? AND path >= ? AND path < ?"
        f" AND {IS_FRAME} AND id IN (SELECT id FROM items)",
        span,
    ).fetchall()


def video_counts(sql: sqlite3.Connection, roots: Iterable[int]) -> VideoCounts:
    """How many videos and frames were read in these roots."""
    among = f"root IN ({', '.join(map(str, roots))})"
    videos, files = sql.execute(
        f"SELECT count(DISTINCT id), count(id) FROM files WHERE place = {VIDEO} AND failed IS NULL AND {among}"
    ).fetchone()
    sound = f"SELECT root, path FROM files WHERE place = {VIDEO} AND failed IS NULL"
    (frames,) = sql.execute(
        f"SELECT count(DISTINCT id) FROM files WHERE {IS_FRAME} AND {among} AND (root, {FILE_PATH}) IN ({sound})"
    ).fetchone()
    return VideoCounts(videos, files, frames)
