"""Names of files in an export: they stay inside its folder, every system can hold them, and no two are alike."""

from __future__ import annotations

import os
import re
import unicodedata

LONGEST = 120  # characters; in UTF-8 at most 480 bytes are cut to what a name may have
_BYTES = 200
_RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}  # Windows


class FileNames:
    """Names that were given out; upper and lower case do not make a difference, as on macOS and Windows."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, wanted: str, suffix: str) -> str:
        """A name like this one, with this suffix, that nobody has yet."""
        stem = safe_name(wanted)
        name, key = f"{stem}{suffix}", f"{stem}{suffix}".casefold()
        number = self._next.get(key, 2)
        while name.casefold() in self.taken:
            name, number = f"{stem}-{number}{suffix}", number + 1
        self._next[key] = number
        self.taken.add(name.casefold())
        return name


def safe_name(text: str) -> str:
    """One part of a path, without separators, control characters and what Windows refuses; never empty or hidden."""
    text = unicodedata.normalize("NFC", os.fsencode(text).decode("utf-8", "replace"))
    text = "".join("_" if unicodedata.category(sign).startswith(("C", "Z")) and sign != " " else sign for sign in text)
    text = re.sub(r'[/\\:*?"<>|]', "_", text)[:LONGEST].encode()[:_BYTES].decode(errors="ignore").strip(" .")
    return f"_{text}" if text.partition(".")[0].casefold() in _RESERVED or text.startswith("-") else text or "_"
