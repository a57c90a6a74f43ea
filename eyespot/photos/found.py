"""What a walk meets: a picture where it lies, labels for one, what cannot be read and why, and what is left out."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeAlias

MAX_FILE_BYTES = 512 << 20


class Seen(NamedTuple):
    """A picture where it lies now; `offset` is its place inside a tar, else -1, or as `videos/addresses.py` says."""

    path: str  # relative to the root, as `names.py` stores it
    size: int
    mtime: int  # nanoseconds
    offset: int = -1
    changed: int = 0  # nanoseconds: when the file was last written to or renamed, which no program sets back


class PlannedPicture(NamedTuple):
    """One picture to read: its shard and where it lies."""

    shard: int
    root: int
    seen: Seen


class KnownPictures:
    """What need not be decoded again; by itself nothing."""

    def is_measured(self, id: str) -> bool | None:
        """Whether what was measured of a picture is known; None if the picture is not known at all."""
        return None

    def frames(self, video: str) -> list[tuple[str, int, str]]:
        """The frames of a video, by its id: fragment, place and id of each; none if it is not known."""
        return []

    def close(self) -> None:
        """End it."""


class Labels(NamedTuple):
    """Label columns for one picture of the root; `near` is the name by which it was found, if that is only alike."""

    path: str
    facts: dict[str, Any]
    near: str = ""


class Unreadable(NamedTuple):
    """What cannot be read; a path that ends in `/` stands for all that lies below it, which no walk could enter."""

    path: str
    reason: str


class Skipped(NamedTuple):
    """A file that is not a picture to eyespot: its kind (`kinds.py` has them), and its ending if that says more."""

    path: str
    kind: str
    ending: str


class Excluded(NamedTuple):
    """A folder that is not looked through, or a hidden file: why (`kinds.py` has it), and how many files it is."""

    path: str
    reason: str
    files: int = 1


Met: TypeAlias = Seen | Labels | Unreadable
Record: TypeAlias = Met | Skipped | Excluded


def is_utf8(path: str) -> bool:
    """Whether a text can be written down: lone surrogates cannot."""
    return path.isascii() or re.search("[\ud800-\udfff]", path) is None


def refuse_size(size: int) -> None:
    """OSError for a file that no photo is as large as."""
    if size > MAX_FILE_BYTES:
        raise OSError(f"{size >> 20} MiB, over the limit of {MAX_FILE_BYTES >> 20} MiB a file")


def clamped(nanoseconds: int) -> int:
    """A time as 64 bits hold it: file systems and tar headers may say anything."""
    return max(1 - 2**63, min(2**63 - 1, nanoseconds))


def reason(error: OSError) -> str:
    """Why a file cannot be read, in lower case as part of a sentence."""
    return (error.strerror or str(error)).lower()
