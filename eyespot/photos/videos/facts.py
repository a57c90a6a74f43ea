"""What a gallery knows of a frame besides the facts of a picture: its video, its time in it, and the video's length."""

from __future__ import annotations

import os
from collections.abc import Mapping

from eyespot.photos.pictures import id_of
from eyespot.photos.videos.addresses import frame_of

VIDEO_ID, TIME = "video_id", "video_time"
VIDEO_COLUMNS: Mapping[str, str] = {VIDEO_ID: "text", TIME: "float", "video_length": "float"}  # in seconds


def id_at(place: str, data: bytes) -> str:
    """The id of what lies at a full path and was read as these bytes: of a frame, by its video and its time."""
    frame = frame_of(place)
    if frame is None or os.path.isfile(place):
        return id_of(data)
    from eyespot.photos.videos.decoding import frame_id, video_id

    return frame_id(video_id(frame.video), frame.ms)
