"""Names of files as a gallery stores them: text for any bytes, and the same bytes again.

A file system keeps names as bytes, and those of old disks are often not UTF-8. Python reads such a byte as a lone
surrogate (U+DC80 to U+DCFF), which SQLite, parquet and JSON cannot hold. A gallery stores it 0x100000 higher, as one
character of Unicode's last private area, and leaves every other name as it is (docs/decisions/0010-stored-names.md).
"""

from __future__ import annotations

import re
import unicodedata

_RAISED = 0x100000  # from a lone surrogate to the character that is stored for it
_RAW = re.compile("[\udc80-\udcff\U0010dc80-\U0010dcff]")
_STORED = re.compile("[\U0010dc80-\U0010dcff]+")


def stored_name(name: str) -> str:
    """A name as Python reads it from the file system, as text that can be written down; any other text stays itself."""
    return name if name.isascii() else _RAW.sub(_raised, name)


def real_name(stored: str) -> str:
    """The name that `stored_name` was given, as functions of the file system take it."""
    return stored if stored.isascii() else _STORED.sub(_lowered, stored)


def shown_name(stored: str) -> str:
    """A stored name for people: bytes that are not UTF-8 stand as `\\xe9`."""
    return real_name(stored).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def folded(name: str) -> str:
    """A name as it is compared where its bytes find nothing: composed, in one case."""
    return unicodedata.normalize("NFC", name).casefold()


def _lowered(match: re.Match[str]) -> str:
    return bytes(ord(char) - _RAISED - 0xDC00 for char in match[0]).decode("utf-8", "surrogateescape")


def _raised(match: re.Match[str]) -> str:
    char = match[0]
    if char < "\ue000":
        return chr(ord(char) + _RAISED)
    # A name that really has one of these characters: its bytes are stored one by one, so that no two names are the same
    return "".join(chr(_RAISED + 0xDC00 + byte) for byte in char.encode())
