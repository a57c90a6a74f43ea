"""Whether a file is a picture, by its first bytes."""

from __future__ import annotations

import struct

HEAD = 64  # bytes that show what a file is
_SIGNS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_BRANDS = {b"avif", b"avis", b"heic", b"heim", b"heis", b"heix", b"hevc", b"hevm", b"hevs", b"hevx", b"mif1", b"msf1"}
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)  # bytes


def is_picture(head: bytes) -> bool:
    """Whether a file that begins so is a picture of a format that eyespot reads."""
    if head.startswith(_SIGNS) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return True
    if head[4:8] == b"ftyp":
        end = min(int.from_bytes(head[:4]), len(head))
        return not _BRANDS.isdisjoint(head[at : at + 4] for at in range(8, end, 4) if at != 12)
    return head[:2] == b"BM" and len(head) >= 18 and struct.unpack_from("<I", head, 14)[0] in _BMP_HEADERS
