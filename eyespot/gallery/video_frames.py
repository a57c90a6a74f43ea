"""Videos and their frames in the index: a row of `paths` for the video, and one for each of its frames.

A frame has the size and date of its video, so that both change at once, and is there as long as its video is.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eyespot.gallery.index_tables import HAS_ROW, SHARD_OF, packed, split, unpacked
from eyespot.photos.found import Skipped
from eyespot.photos.kinds import RAW_SUFFIXES, reads_raw
from eyespot.photos.places import ARCHIVES, Root, full_path
from eyespot.photos.videos.addresses import FRAGMENT, VIDEO, VIDEO_SUFFIXES, reads_video

IS_FRAME = f"place < {VIDEO}"
FILE_NAME = f"iif({IS_FRAME}, substr(name, 1, length(name) - {FRAGMENT}), name)"
WEIGHT = 32  # pictures that a video counts as when shards are planned
_LAST = "\U0010ffff"
_IN_ROOT = "FROM paths JOIN folders ON folders.number = paths.folder WHERE folders.root = ?"
_OF_VIDEO = f"""FROM paths WHERE folder = (SELECT number FROM folders WHERE root = ? AND path = ?)
    AND name >= ? AND name < ? AND {IS_FRAME}"""


@dataclass(frozen=True, slots=True)
class VideoCounts:
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
    rows = sql.execute(f"SELECT path FROM gone WHERE root = ? AND ({has_ending})", (number,)).fetchall()
    there = [(number, path) for (path,) in rows if root.kind in ARCHIVES or os.path.exists(full_path(root, path))]
    sql.executemany("DELETE FROM gone WHERE root = ? AND path = ?", there)


def known_files(sql: sqlite3.Connection, number: int) -> Callable[[Skipped], bool]:
    """Whether a RAW photo or video of a root is in the index, though the extra that reads it is not installed now."""

    def is_known(file: Skipped) -> bool:
        if file.ending not in RAW_SUFFIXES | VIDEO_SUFFIXES:
            return False
        row = sql.execute(f"SELECT 1 {_IN_ROOT} AND folders.path = ? AND name = ?", (number, *split(file.path)))
        return row.fetchone() is not None

    return is_known


def keep_frames(sql: sqlite3.Connection, number: int) -> None:
    """The frames of every video of a root that is there are not gone either."""
    video = f"substr(gone.name, 1, length(gone.name) - {FRAGMENT})"
    sql.execute(
        f"DELETE FROM gone WHERE root = ? AND place < {VIDEO}"
        f" AND EXISTS (SELECT 1 FROM paths v WHERE v.folder = gone.folder AND v.name = {video})"
        f" AND NOT EXISTS (SELECT 1 FROM gone v WHERE v.root = gone.root"
        f" AND v.path = substr(gone.path, 1, length(gone.path) - {FRAGMENT}))",
        (number,),
    )


def drop_frames(sql: sqlite3.Connection, videos: Iterable[tuple[int, str]]) -> None:
    """Drop the frames of videos, by their roots and paths, that were read again; the new ones are written next."""
    for root, path in videos:
        folder, name = split(path)
        span = (root, folder, f"{name}#t=", f"{name}#t={_LAST}")
        shards = f"SELECT DISTINCT {SHARD_OF.format('paths.item')} {_OF_VIDEO} AND {HAS_ROW}"
        sql.execute(f"INSERT OR IGNORE INTO stale {shards}", span)
        sql.execute(f"DELETE {_OF_VIDEO}", span)
        named = (root, f"{path}#t=", f"{path}#t={_LAST}")
        sql.execute(f"DELETE FROM gone WHERE root = ? AND path >= ? AND path < ? AND place < {VIDEO}", named)


def known_frames(sql: sqlite3.Connection, video: str) -> list[tuple[str, int, str]]:
    """The frames of a video that was read before, by its id: fragment, place and id of each; none if it was not."""
    found = sql.execute(
        f"SELECT folder, name FROM paths WHERE item = ? AND place = {VIDEO} AND failed IS NULL LIMIT 1",
        (packed(video),),
    ).fetchone()
    if found is None:
        return []
    rows = sql.execute(
        f"SELECT substr(name, -{FRAGMENT}), place, id FROM paths JOIN pictures ON number = item"
        f" WHERE folder = ? AND name >= ? AND name < ? AND {IS_FRAME}",
        (found[0], f"{found[1]}#t=", f"{found[1]}#t={_LAST}"),
    )
    return [(fragment, place, unpacked(id)) for fragment, place, id in rows]


def video_counts(sql: sqlite3.Connection, roots: Iterable[int]) -> VideoCounts:
    """How many videos and frames were read in these roots."""
    among = f"folder IN (SELECT number FROM folders WHERE root IN ({', '.join(map(str, roots))}))"
    sound = f"FROM paths WHERE place = {VIDEO} AND failed IS NULL"
    videos, files = sql.execute(f"SELECT count(DISTINCT item), count(item) {sound} AND {among}").fetchone()
    (frames,) = sql.execute(
        f"SELECT count(DISTINCT item) FROM paths WHERE {IS_FRAME} AND {among}"
        f" AND (folder, {FILE_NAME}) IN (SELECT folder, name {sound})"
    ).fetchone()
    return VideoCounts(videos, files, frames)
