"""Hits of a search as files of one's own: copies, an album of links, a table.

Copies and links overwrite nothing, and those of the same hits again change nothing; a table replaces its file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from filecmp import cmp
from itertools import count
from pathlib import Path
from typing import Any

from eyespot.formats.exporting import ExportFailure, tells_too_much
from eyespot.formats.folders import FileNames, safe_name
from eyespot.photos.found import reason
from eyespot.photos.names import stored_name
from eyespot.photos.places import read_again
from eyespot.photos.videos.addresses import file_of, frame_of, title_of
from eyespot.storage.atomic import make_folder, new_file
from eyespot.storage.tables import write_csv

WHY = "why"  # the reasons for which a hit is there; a label of this name is a text
Hit = Mapping[str, Any]  # id, path (None: unknown), rank, score, and facts


@dataclass(frozen=True)
class AlbumReport:
    """The files that stand for the hits, and the hits that have none."""

    files: list[Path] = field(default_factory=list)
    failed: list[ExportFailure] = field(default_factory=list)
    known: list[Path] = field(default_factory=list)  # of the files, those that were there as they should be


def copy_hits(hits: Iterable[Hit], folder: Path, dry_run: bool = False) -> AlbumReport:
    """Copy the originals, byte for byte, into a folder; those out of a tar as well, and a video once for its frames.

    With `dry_run` nothing is written. Raises OSError where the folder cannot be written.
    """
    return _write_album(hits, folder, _copying, dry_run)


def link_hits(hits: Iterable[Hit], folder: Path, dry_run: bool = False) -> AlbumReport:
    """Put links to the originals into a folder, one to a video for all its frames.

    What lies in a tar cannot be linked and is among the failed. With `dry_run` nothing is written.

    Raises OSError where the folder cannot be written.
    """
    return _write_album(hits, folder, _linking, dry_run)


_Placing = tuple[Callable[[Path], bool], Callable[[Path], None]]
"""Whether a file that is there stands for a picture already, and how to write one that does."""


def _write_album(
    hits: Iterable[Hit], folder: Path, placing: Callable[[str, bool], _Placing], dry_run: bool
) -> AlbumReport:
    if not dry_run:
        make_folder(folder)
    report, names = AlbumReport(), FileNames()
    videos: set[str] = set()
    for hit in hits:
        try:
            if hit["path"] is None:
                raise OSError("only its vector is known, and no place where it lies")
            path = file_of(str(hit["path"]))
            if path in videos:
                continue
            is_video = path != hit["path"]
            is_same, write = placing(path, is_video)
        except OSError as error:
            report.failed.append(ExportFailure(hit["id"], hit["path"] or "", reason(error)))
            continue
        videos |= {path} if is_video else set()
        stem, suffix = os.path.splitext(os.path.basename(path))
        end = f".{safe_name(suffix[1:])}" if suffix[1:] else ""
        free = (folder / names.take(stem, end) for _ in count())
        file = next(one for one in free if not os.path.lexists(one) or is_same(one))
        if file.exists():
            report.known.append(file)
        elif not dry_run:
            write(file)
        report.files.append(file)
    return report


def _copying(path: str, is_video: bool) -> _Placing:
    if is_video:  # which may be larger than memory
        os.stat(path)

        def copy(file: Path) -> None:
            with open(path, "rb") as source, new_file(file) as out:
                shutil.copyfileobj(source, out)

        return lambda file: file.is_file() and cmp(file, path, shallow=False), copy
    data = read_again(path)

    def write(file: Path) -> None:
        with new_file(file) as out:
            out.write(data)

    return lambda file: file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data, write


def _linking(path: str, _is_video: bool) -> _Placing:
    try:
        status = os.stat(path)
    except NotADirectoryError:
        raise OSError("lies in an archive, where nothing can link to it; copy it") from None
    return lambda file: file.exists() and os.path.samestat(file.stat(), status), lambda file: file.symlink_to(path)


def write_table(hits: Sequence[Hit], file: Path, all_columns: bool = False) -> list[str]:
    """Write the hits as CSV; the names of the columns that tell of places and owners, which only `all_columns` writes.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    names = list(dict.fromkeys(name for hit in hits for name in hit if name != "paths"))
    left_out = [] if all_columns else [name for name in names if tells_too_much(name)]
    going = [name for name in names if name not in left_out]
    cells = []
    for hit in hits:
        values = {name: hit.get(name) for name in going}
        if isinstance(why := values.get(WHY), list):
            values[WHY] = ", ".join(str(reason["code"]) for reason in why)
        cells.append([stored_name(value) if isinstance(value, str) else value for value in values.values()])
    write_csv(file, [going, *cells])
    return left_out


def file_names(paths: Iterable[str], suffix: str = "") -> Iterator[str]:
    """A name for a file that stands for each picture: of its own, safe on every system; with `suffix`, of that kind.

    A frame of a video is a JPEG that is called by the video and the time.
    """
    names = FileNames()
    for path in paths:
        stem, own = os.path.splitext(os.path.basename(path))
        if frame_of(path) is not None:
            stem, own = title_of(path), ".jpg"
        kind = f".{safe_name(own[1:])}" if own[1:] else ""
        yield names.take(stem, suffix or kind)
