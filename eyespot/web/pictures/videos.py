"""Videos of a gallery's frames, as their files are. Browsers ask for parts of them by HTTP ranges.

A file is sent only if it is the video that was indexed: the id of the frame follows from its content and the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from fastapi.responses import FileResponse

from eyespot.photos.videos.addresses import frame_of
from eyespot.photos.videos.facts import id_at
from eyespot.web._problems import Problem
from eyespot.web.found.snapshot import PicturePlace

_TYPES = {".m4v": "video/mp4", ".mkv": "video/x-matroska", ".mov": "video/quicktime", ".mp4": "video/mp4"}
_TYPES |= {".ogv": "video/ogg", ".webm": "video/webm"}


def video_response(id: str, places: Iterable[PicturePlace]) -> FileResponse:
    """The first of these files that holds the frame with this id; `Problem` where none does."""
    for placed in places:
        frame = frame_of(placed.place)
        with suppress(OSError):
            if frame is not None and id_at(placed.place, b"") == id:
                ending = os.path.splitext(frame.video)[1].lower()
                return FileResponse(
                    frame.video,
                    media_type=_TYPES.get(ending, "video/mpeg"),
                    stat_result=os.stat(frame.video),
                    headers={"Content-Disposition": "inline"},
                )
    raise Problem(404, "there is no such video, or it has changed since it was indexed; bring the gallery up to date")
