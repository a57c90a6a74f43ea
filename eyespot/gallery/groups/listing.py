"""The groups of a gallery as lists of files: which one would stay and why, and how many bytes the others take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from eyespot.gallery import items_table
from eyespot.gallery.groups.rule import KINDS
from eyespot.gallery.groups.stored import BESIDE, Groups, are_grey, merit, virtues
from eyespot.gallery.view import View
from eyespot.photos.places import archive_of
from eyespot.photos.sidecars import with_sidecars
from eyespot.photos.videos.addresses import TIME, file_of

EXACT = "exact"  # files of the same bytes
GROUP_KINDS = (EXACT, *KINDS)


@dataclass(frozen=True, slots=True)
class GroupFile:
    """One file of a group; its size in bytes, its width and height in pixels, 0 where they are not known.

    has: what else it would be missed for: a date of the camera, a position, a title or keywords, colours, a sidecar.
    inside: the tar or parquet file that it is a part of, which alone nobody can delete.
    """

    id: str
    path: str
    width: int
    height: int
    size: int
    has: tuple[str, ...]
    inside: str | None


@dataclass(frozen=True)
class FileGroup:
    """Files that show the same: exact copies, near-duplicates or a burst; the one that would stay is the first."""

    kind: str
    files: list[GroupFile]

    @property
    def freed(self) -> int:
        """The bytes of all files but the one that would stay, and but for parts of archives."""
        return sum(file.size for file in self.files[1:] if file.inside is None)

    @property
    def why(self) -> str:
        """Why the first one would stay."""
        first, *others = self.files
        more = [name for name in first.has if any(name not in file.has for file in others)]
        if more and more != [BESIDE]:
            return f"has {', '.join(more)}, which not all others have"
        if first.width * first.height > max(file.width * file.height for file in others):
            return f"the largest, {first.width} x {first.height} pixels"
        if first.size > max(file.size for file in others):
            return "as many pixels, and the largest file"
        return "has a sidecar, which not all others have" if more else "as large as another, and the first by its path"


def lost_with(file: GroupFile, stays: GroupFile) -> list[str]:
    """What goes with a file that the one that stays has not."""
    lost = [name for name in file.has if name not in stays.has]
    return lost + ["pixels"] * (file.width * file.height > stays.width * stays.height)


def file_groups(view: View) -> list[FileGroup]:
    """All groups of a view with more than one file, those that take most first."""
    groups = Groups(view)
    paths = (items_table.read_items(shard, ["paths"])["paths"].to_pylist() for shard in view.shards)
    several = np.array([len(some or ()) > 1 for part in paths for some in part], bool)
    rows = np.flatnonzero(view.live & ((groups.numbers >= 0) | several))
    numbers = np.where(groups.numbers[rows] < 0, -1 - np.arange(len(rows)), groups.numbers[rows])
    kinds, every = groups.bursts[rows].astype(int).tolist(), view.facts(rows.tolist())
    grey = are_grey(view, rows).tolist()
    files: dict[int, list[GroupFile]] = {}
    named = cache(with_sidecars)
    kind_of: dict[int, str] = {}
    for number, kind, facts, is_grey in zip(numbers.tolist(), kinds, every, grey, strict=True):
        width, height, size = (facts.get(name) or 0 for name in ("width", "height", "size"))
        id = facts["id"] if facts.get(TIME) is None else facts.get("video_id") or facts["id"]
        has, some = virtues(facts, is_grey), files.setdefault(number, [])
        for path in map(file_of, facts["paths"]):
            more = has + (BESIDE,) * (os.path.basename(path) in named(os.path.dirname(path)))
            some.append(GroupFile(id, path, width, height, size, more, archive_of(path)))
        one_file = len({file.id for file in some}) == 1  # as the frames of one video are
        kind_of[number] = EXACT if number < 0 or one_file else KINDS[kind]
    made = [FileGroup(kind_of[number], _different_files(some)) for number, some in files.items()]
    # Each frame of a copied video finds the same files
    different = {tuple(group.files): group for group in made if len(group.files) > 1}.values()
    return sorted(different, key=lambda group: (-group.freed, group.files[0].path))


def _different_files(files: Sequence[GroupFile]) -> list[GroupFile]:
    """The files that are there, each once, the original first; all where none is, as for imported vectors alone.

    A file that was moved or deleted is known until that is forgotten: it must not be the one that stays. Nor must a
    link, for who deleted the file that it leads to would keep nothing.
    """
    there: dict[object, GroupFile] = {}
    for file in sorted(files, key=lambda file: os.path.realpath(file.path) != os.path.abspath(file.path)):
        try:
            status = os.stat(file.path)
            there.setdefault((status.st_dev, status.st_ino), file)
        except OSError:
            if "://" in file.path or file.inside is not None:
                there[file.path] = file
    found = list(there.values()) or list(files)
    return sorted(found, key=lambda file: merit(file.has, file.width * file.height, file.size, file.path))
