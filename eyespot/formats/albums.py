"""Hits of a search as files of one's own: copies, an album of links, a table.

Nothing that is there is overwritten, and writing the same hits again changes nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from filecmp import cmp
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eyespot.storage.tables import write_csv

from eyespot.formats.exported import tells_too_much
from eyespot.formats.exporting import ExportFailure
from eyespot.formats.exports._names import FileNames, safe_name
from eyespot.photos.found import reason
from eyespot.photos.names import stored_name
from eyespot.photos.places import read_again
from eyespot.photos.videos.addresses import file_of, frame_of, title_of
from eyespot.storage.atomic import make_folder, new_file

WHY = "why"  # the reasons for which a hit is there; a label of this name is a text
Hit = Mapping[str, Any]  # id, path (None: unknown), rank, score, and facts


class AlbumReport(NamedTuple):
    """The files that stand for the hits, and the hits that have none."""

    files: list[Path]
    failed: list[ExportFailure]


def copy_hits(hits: Iterable[Hit], folder: Path) -> AlbumReport:
    """Copy the originals, byte for byte, into a folder; those out of a tar as well, and a video once for its frames.

    Raises OSError where the folder cannot be written.
    """
    make_folder(folder)
    report, names = AlbumReport([], []), FileNames()
    videos: set[str] = set()
    for hit in hits:
        try:
            path = _path_of(hit)
            if (video := file_of(path)) != path:
                if video not in videos:
                    report.files.append(_copy_of_video(names, folder, video))
                videos.add(video)
                continue
            data = read_again(path)
        except OSError as error:
            report.failed.append(_failure(hit, error))
            continue
        file = _free_or_same(names, folder, hit["path"], partial(_holds, data=data))
        if not file.exists():
            with new_file(file) as out:
                out.write(data)
        report.files.append(file)
    return report


def link_hits(hits: Iterable[Hit], folder: Path) -> AlbumReport:
    """Put links to the originals into a folder, one to a video for all its frames.

    What lies in a tar cannot be linked and is among the failed.

    Raises OSError where the folder cannot be written.
    """
    make_folder(folder)
    report, names = AlbumReport([], []), FileNames()
    videos: set[str] = set()
    for hit in hits:
        try:
            path = file_of(_path_of(hit))
            if path in videos:
                continue
            if path != hit["path"]:
                videos.add(path)
            status = os.stat(path)
        except OSError as error:
            in_tar = isinstance(error, NotADirectoryError)
            reason = OSError("lies in an archive, where nothing can link to it; copy it") if in_tar else error
            report.failed.append(_failure(hit, reason))
            continue
        file = _free_or_same(names, folder, path, partial(_leads_to, status=status))
        if not file.exists():
            _link(path, file)
        report.files.append(file)
    return report


def _copy_of_video(names: FileNames, folder: Path, video: str) -> Path:
    with open(video, "rb") as data:
        file = _free_or_same(names, folder, video, lambda place: place.is_file() and cmp(place, video, shallow=False))
        if not file.exists():
            with new_file(file) as out:
                shutil.copyfileobj(data, out)
    return file


def _path_of(hit: Hit) -> str:
    if hit["path"] is None:
        raise OSError("only its vector is known, and no place where it lies")
    return str(hit["path"])


def _failure(hit: Hit, error: OSError) -> ExportFailure:
    return ExportFailure(hit["id"], hit["path"] or "", reason(error))


def _free_or_same(names: FileNames, folder: Path, path: str, same: Callable[[Path], bool]) -> Path:
    """The file that stands for a picture already, or one that is not there yet."""
    stem, suffix = os.path.splitext(os.path.basename(path))
    while True:
        file = folder / names.take(stem, f".{safe_name(suffix[1:])}" if suffix[1:] else "")
        if not os.path.lexists(file) or same(file):
            return file


def _holds(file: Path, data: bytes) -> bool:
    return file.is_file() and file.stat().st_size == len(data) and file.read_bytes() == data


def _leads_to(file: Path, status: os.stat_result) -> bool:
    return file.exists() and os.path.samestat(file.stat(), status)


def _link(path: str, file: Path) -> None:
    try:
        file.symlink_to(path)
    except OSError:
        if os.name != "nt":
            raise
        os.link(path, file)  # Windows lets only some users make symbolic links


def write_table(hits: Sequence[Hit], file: Path, all_columns: bool = False) -> list[str]:
    """Write the hits as CSV; the names of the columns that tell of places and owners, which only `all_columns` writes.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    names = list(dict.fromkeys(name for hit in hits for name in hit if name != "paths"))
    left_out = [] if all_columns else [name for name in names if tells_too_much(name)]
    going = [name for name in names if name not in left_out]
    write_csv(file, [going, *([_cell(name, hit.get(name)) for name in going] for hit in hits)])
    return left_out


def _cell(name: str, value: Any) -> Any:
    if name == WHY and isinstance(value, list):
        return ", ".join(str(reason["code"]) for reason in value)
    return stored_name(value) if isinstance(value, str) else value


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


def album_folder(gallery: Path, name: str) -> Path:
    """The folder of a gallery in which an album of this name lies; no name leads out of it."""
    return gallery / "albums" / safe_name(name)
