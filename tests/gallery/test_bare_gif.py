"""A GIF that goes out bare: without XMP and comments, and with every frame as it was."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from PIL import Image, ImageSequence

from eyespot.gallery.exports._pictures import bare_gif, picture_of


def animated() -> bytes:
    """Three frames that repeat, with a comment, the XMP of Adobe's programs, and something behind the end."""
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "green", "blue")]
    out = BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], loop=0, duration=80, comment=b"by Ada")
    xmp = b"<x:xmpmeta><exif:GPSLatitude>53,5N</exif:GPSLatitude></x:xmpmeta>"
    block = b"\x21\xff\x0bXMP DataXMP" + xmp + b"\x01" + bytes(range(255, -1, -1)) + b"\x00"
    data = out.getvalue()
    at = data.index(b"\x21\xff\x0bNETSCAPE2.0")
    return data[:at] + block + data[at:] + b"GPS behind the end"


def pictures(data: bytes) -> list[bytes]:
    with Image.open(BytesIO(data)) as image:
        return [frame.convert("RGB").tobytes() for frame in ImageSequence.Iterator(image)]


def test_what_tells_goes_and_every_frame_stays() -> None:
    data = animated()
    bare = bare_gif(data)

    assert b"GPS" in data and b"Ada" in data and b"GPS" not in bare and b"Ada" not in bare
    assert pictures(bare) == pictures(data) and b"NETSCAPE2.0" in bare and bare_gif(bare) == bare


def test_an_export_without_all_columns_leaves_it_out(tmp_path: Path) -> None:
    place = tmp_path / "a.gif"
    place.write_bytes(animated())
    bare, whole = picture_of([str(place)], True), picture_of([str(place)], False)

    assert not isinstance(bare, str) and not isinstance(whole, str)
    assert b"GPS" not in bare.data and b"GPS" in whole.data and bare.suffix == ".gif"


def test_a_gif_that_is_cut_short_ends_without_an_error() -> None:
    for length in range(0, 300, 7):
        assert bare_gif(animated()[:length]).endswith(b";")
