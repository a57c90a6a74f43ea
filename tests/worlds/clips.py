"""Small videos made of pictures, each of which is shown for a while and moved a little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

FPS = 10
_TAGS = {ending: {"movflags": "use_metadata_tags"} for ending in (".mp4", ".mov")}
_FORMATS = {".mts": "mpegts", ".m4v": "mp4"}


def clip(
    place: Path,
    pictures: Sequence[Image.Image],
    seconds: float = 2,
    metadata: Mapping[str, str] | None = None,
    **options: str,
) -> Path:
    """Write a video of 320 x 240 pixels with a cut after each picture; its ending says the format.

    metadata: tags of the file. options: of the format.
    """
    import av

    ending = place.suffix.lower()
    place.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(place), "w", format=_FORMATS.get(ending), options={**_TAGS.get(ending, {}), **options}) as out:
        out.metadata.update(metadata or {})
        stream: Any = out.add_stream({".avi": "mpeg4", ".webm": "libvpx-vp9"}.get(ending, "libx264"), rate=FPS)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        count = 0
        for picture in pictures:
            large = picture.convert("RGB").resize((360, 270))
            for number in range(round(seconds * FPS)):
                frame = av.VideoFrame.from_image(large.crop((number % 40, 10, number % 40 + 320, 250)))
                frame.pts, frame.time_base = count, Fraction(1, FPS)
                out.mux(stream.encode(frame))
                count += 1
        out.mux(stream.encode())
    return place


def large_clip(place: Path, side: int, size: int) -> Path:
    """A video whose frames are squares of `side` pixels, and whose header says `size`."""
    import av

    made = BytesIO()
    Image.new("L", (side, side)).save(made, "JPEG")
    with av.open(str(place), "w") as out:
        stream: Any = out.add_mux_stream("mjpeg", rate=1, width=size, height=size)
        for number in range(3):
            packet = av.Packet(made.getvalue())
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, number, number, Fraction(1, 1)
            packet.is_keyframe = True
            out.mux(packet)
    return place


def sound(place: Path) -> Path:
    """A file of sound alone."""
    import av
    import numpy as np

    with av.open(str(place), "w") as out:
        stream: Any = out.add_stream("aac", rate=44_100)
        for number in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 44_100, number * 1024
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return place


def turned(place: Path) -> Path:
    """The same video with a header that says it was filmed on its side: a quarter turn clockwise shows it upright."""
    data = place.read_bytes()
    upright = b"".join(number.to_bytes(4) for number in (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30))
    minus = (-(1 << 16)).to_bytes(4, signed=True)
    quarter = b"".join((bytes(4), (1 << 16).to_bytes(4), bytes(4), minus, bytes(8), bytes(8), (1 << 30).to_bytes(4)))
    at = data.index(upright, data.index(b"tkhd"))
    place.write_bytes(data[:at] + quarter + data[at + 36 :])
    return place
