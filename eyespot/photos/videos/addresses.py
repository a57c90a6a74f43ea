"""How a frame of a video is named: the path of the file and a time, as `clip.mp4#t=00:01:23.500`.

The part from `#` on is a media fragment of the W3C: browsers and players open the file at that time. It always has the
same length, so that frames are in order by name. In the ledger a frame, a video and a picture differ by their `place`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

_ENDINGS = """.3g2 .3gp .asf .avi .flv .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .ogv .vob .webm .wmv"""
VIDEO_SUFFIXES = frozenset(_ENDINGS.split())
VIDEO = -2  # the place of a video; those of its frames lie below
FRAGMENT = len("#t=00:00:00.000")
VIDEO_ID, TIME = "video_id", "video_time"
# What a gallery knows of a frame besides the facts of a picture; times in seconds
VIDEO_COLUMNS: Mapping[str, str] = {VIDEO_ID: "text", TIME: "float", "video_length": "float"}
LATEST = 100 * 3_600_000  # milliseconds that the name of a frame can say, and more
_FRAME = re.compile(r"(.+)#t=([0-9]{2}):([0-5][0-9]):([0-5][0-9])\.([0-9]{3})", re.DOTALL)


class FrameAddress(NamedTuple):
    """The file of a video, and a time in it in milliseconds."""

    video: str
    ms: int


def reads_video() -> bool:
    """Whether the reader is installed."""
    return find_spec("av") is not None


def is_video(path: str) -> bool:
    """Whether a file is a video by its ending, and the reader is installed."""
    return os.path.splitext(path)[1].lower() in VIDEO_SUFFIXES and reads_video()


def frame_path(video: str, ms: int) -> str:
    """The path of a frame of a video."""
    return f"{video}#t={clock(ms)}.{ms % 1000:03}"


def frame_of(path: str) -> FrameAddress | None:
    """The video and the time that a path names; None for one of no frame."""
    found = _FRAME.fullmatch(path)
    if found is None or os.path.splitext(found[1])[1].lower() not in VIDEO_SUFFIXES:
        return None
    hours, minutes, seconds, ms = map(int, found.groups()[1:])
    return FrameAddress(found[1], ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms)


def frame_at(place: str) -> FrameAddress | None:
    """The same, and None where a file has this very name."""
    frame = frame_of(place)
    return None if frame is None or os.path.isfile(place) else frame


def file_of(path: str) -> str:
    """The file that a path leads to: of a frame its video, else the path itself."""
    frame = frame_at(path)
    return path if frame is None else frame.video


def title_of(path: str) -> str:
    """What a picture is called by its path: the name of its file, and of a frame the time, `clip 00:01:23`."""
    frame = frame_of(path)
    stem = os.path.splitext(os.path.basename(path if frame is None else frame.video))[0]
    return stem if frame is None else f"{stem} {clock(frame.ms)}"


def place_of_frame(ms: int) -> int:
    """The place of a frame in the ledger."""
    return VIDEO - 1 - ms


def clock(ms: int) -> str:
    """A time as people read it: 00:01:23."""
    seconds = ms // 1000
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
