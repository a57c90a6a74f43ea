"""Files that are one photo with another beside them: the RAW of a JPEG, and the moment of video of a live photo.

They have the photo's name with another ending, and were written within a minute of it. An export that somebody made
later is a picture of its own, and so is a video of more than a few seconds: its photo is a poster.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from eyespot.photos.kinds import ending_of
from eyespot.photos.raw import RAW_SUFFIXES
from eyespot.photos.videos.metadata import movie_header

BESIDE = "beside"  # the label of a photo that names the other file
SECONDS = 60.0
LONGEST = 6.0  # seconds of a moment; phones film some three
_PHOTOS = frozenset({".jpg", ".jpeg", ".heic", ".heif", ".hif"})
_MOMENTS = frozenset({".mov", ".mp4"})


def pairs_in(entries: Sequence[os.DirEntry[str]]) -> dict[str, str]:
    """The files of a folder that belong to a photo in it, each with that photo, by their names."""
    others = [entry for entry in entries if ending_of(entry.name) in RAW_SUFFIXES | _MOMENTS]
    if not others:
        return {}
    photos = {os.path.splitext(entry.name)[0]: entry for entry in entries if ending_of(entry.name) in _PHOTOS}
    pairs = {}
    for entry in others:
        photo = photos.get(os.path.splitext(entry.name)[0])
        with suppress(OSError):  # a link that leads nowhere
            if photo and entry.is_file() and abs(entry.stat().st_mtime - photo.stat().st_mtime) <= SECONDS:
                if ending_of(entry.name) in _MOMENTS:
                    with open(entry.path, "rb") as file:
                        if (movie_header(file).seconds or 0) > LONGEST:
                            continue
                pairs[entry.name] = photo.name
    return pairs
