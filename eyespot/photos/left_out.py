"""What a walk leaves out though it may hold pictures: hidden files, thumbnails and caches of programs, second ways."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

HIDDEN, LINKED, PAIRED = "hidden", "linked folders", "beside their photo"
_THUMBNAILS, _FORKS, _PROGRAM, _DELETED = "thumbnails", "resource forks", "program files", "deleted files"

_FOLDERS = (  # a folder's name in lower case, a name above it ("" for any), and what it holds
    ("@eadir", "", _THUMBNAILS),  # Synology makes some for every folder
    ("*.lrdata", "", _THUMBNAILS),  # previews of Lightroom
    ("derivatives", "*.photoslibrary", _THUMBNAILS),  # Apple Photos; originals lie in `originals`, edits in `renders`
    ("thumbnails", "*.photoslibrary", _THUMBNAILS),
    ("proxies", "*.photoslibrary", _THUMBNAILS),
    ("thumbnails", "*.*photolibrary", _THUMBNAILS),  # iPhoto; `migratedphotolibrary` once Photos took it over
    ("thumbnails", "*.*aplibrary", _THUMBNAILS),  # Aperture
    ("previews", "*.*aplibrary", _THUMBNAILS),
    ("cache", "captureone", _THUMBNAILS),  # beside the photos of a Capture One session
    ("__macosx", "", _FORKS),  # macOS puts it in each zip that it packs
    ("node_modules", "", _PROGRAM),
    ("site-packages", "", _PROGRAM),
    ("__pycache__", "", _PROGRAM),
    ("$recycle.bin", "", _DELETED),  # Windows
    ("#recycle", "", _DELETED),  # Synology
    ("@recycle", "", _DELETED),  # QNAP
)


def why_left_out(name: str, above: Sequence[str]) -> str | None:
    """What a folder holds that is not looked through; None for one that is. `above`: names of those it lies in."""
    lowered = name.lower()
    for pattern, over, reason in _FOLDERS:
        if fnmatchcase(lowered, pattern) and (not over or any(fnmatchcase(one.lower(), over) for one in above)):
            return reason
    return None


@lru_cache(maxsize=1024)
def why_left_out_below(folder: str) -> str | None:
    """The same for a relative path of folders, each of which may be the reason."""
    names = folder.split("/") if folder else []
    return next(filter(None, (why_left_out(name, names[:level]) for level, name in enumerate(names))), None)


def files_below(folder: str) -> int:
    """How many files lie in a folder that is left out."""
    return sum(len(files) for _, _, files in os.walk(folder))
