"""Names of files as a gallery stores them: text for any bytes, and the same bytes again.

A file system keeps names as bytes, and those of old disks are often not UTF-8. Python reads such a byte as a lone
surrogate (U+DC80 to U+DCFF), which SQLite, parquet and JSON cannot hold. A gallery stores it 0x100000 higher, as one
character of Unicode's last private area, and leaves every other name as it is (docs/decisions/0010-stored-names.md).
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Container, Iterable
from difflib import get_close_matches

_DIGITS = re.compile("[0-9]")
_RAISED = 0x100000  # from a lone surrogate to the character that is stored for it
_RAW = re.compile("[\udc80-\udcff\U0010dc80-\U0010dcff]")
_STORED = re.compile("[\U0010dc80-\U0010dcff]+")


def stored_name(name: str) -> str:
    """A name as Python reads it from the file system, as text that can be written down; any other text stays itself."""

    def raised(match: re.Match[str]) -> str:
        if (char := match[0]) < "\ue000":
            return chr(ord(char) + _RAISED)
        # A name that really has one of these characters: its bytes are stored one by one, so no two names are the same
        return "".join(chr(_RAISED + 0xDC00 + byte) for byte in char.encode())

    return name if name.isascii() else _RAW.sub(raised, name)


def real_name(stored: str) -> str:
    """The name that `stored_name` was given, as functions of the file system take it."""

    def lowered(found: re.Match[str]) -> str:
        return bytes(ord(char) - _RAISED - 0xDC00 for char in found[0]).decode("utf-8", "surrogateescape")

    return stored if stored.isascii() else _STORED.sub(lowered, stored)


def shown_name(stored: str) -> str:
    """A stored name for people: bytes that are not UTF-8 stand as `\\xe9`."""
    return real_name(stored).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def composed(name: str) -> str:
    """A name with accents on their letters (NFC): macOS stored them apart (NFD)."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def folded(name: str) -> str:
    """A name as it is compared where its characters find nothing: composed, in one case."""
    return composed(name).casefold()


class NamedFiles:
    """Files that are found by names: by their characters, else composed (NFC), else in any case.

    among: folded last parts of names; no other file is ever looked for.
    """

    def __init__(self, files: Iterable[str], among: Container[str] | None = None) -> None:
        self._by_end: dict[str, list[str]] = {}
        for file in files:
            parts = folded(file).rsplit("/", 2)
            if among is None or parts[-1] in among:
                # All cameras give the same names, so the last folder counts too
                for end in {parts[-1], "/".join(parts[-2:])}:
                    self._by_end.setdefault(end, []).append(file)

    def called(self, name: str, at_end: bool = False) -> list[str]:
        """The files of this name or path in the best spelling that any has: one, none, or several that fit equally.

        at_end: the files whose paths end so.
        """
        alike = self._by_end.get("/".join(folded(name).rsplit("/", 2)[-2:]), [])
        for spelled in (str, composed, folded):
            wanted = spelled(name)
            found = [one for one in alike if spelled(one) == wanted or (at_end and spelled(one).endswith(f"/{wanted}"))]
            if found:
                return found
        return []


def nearly(name: str, names: Iterable[str]) -> str:
    """`; did you mean b.jpg?` with the name among these that this one nearly is, or nothing."""
    wanted, stems = _stem(name), {_stem(one): one for one in names}
    near = get_close_matches(wanted, list(stems), 3, 0.75)
    # IMG_0007 is another photo than IMG_0008
    other = (one for one in near if one == wanted or _DIGITS.sub("", one) != _DIGITS.sub("", wanted))
    found = next(other, None)
    return f"; did you mean {shown_name(stems[found])}?" if found is not None else ""


def _stem(name: str) -> str:
    return folded(os.path.splitext(name.rpartition("/")[2])[0])
