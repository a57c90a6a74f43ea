"""What lies in a folder that goes out: names of files, and what the hub and `datasets` read there.

Names stay inside the folder, every system can hold them, and no two are alike. The hub reads the head of README.md, and
the kinds of columns in parquet.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import write_whole

SHOWN = "Image"
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


def configurations(tables: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Lines of YAML: configurations, name → split → path of the files; the first is the default."""
    lines = ["configs:"]
    for at, (name, splits) in enumerate(tables.items()):
        lines += [f"- config_name: {name}", *["  default: true"] * (at == 0), "  data_files:"]
        lines += [f"  - {{split: {split}, path: {path}}}" for split, path in splits.items()]
    return lines


def write_card(folder: Path, tables: Mapping[str, Mapping[str, str]], text: str, licences: Iterable[str] = ()) -> None:
    """README.md: how to load the tables, the licences of the pictures, and a text for people."""
    named = sorted(set(licences))
    rights = ["", "Licences of the pictures: " + ", ".join(named) + "."] if named else []
    lines = ["---", *configurations(tables), "---", "", text, *rights, ""]
    write_whole(folder / "README.md", lambda file: file.write("\n".join(lines).encode("utf-8", "replace")))


def features(kinds: Mapping[str, str], lists: Mapping[str, tuple[str, int]]) -> dict[bytes | str, bytes | str]:
    """Metadata of a parquet schema by which `datasets` knows its pictures.

    kinds: `SHOWN`, or a dtype, by column; lists: dtype and length by column.
    """
    columns: dict[str, Any] = {
        name: {"_type": SHOWN} if kind == SHOWN else {"_type": "Value", "dtype": kind} for name, kind in kinds.items()
    }
    for name, (kind, length) in lists.items():
        columns[name] = {"_type": "List", "feature": {"_type": "Value", "dtype": kind}, "length": length}
    return {"huggingface": json.dumps({"info": {"features": columns}})}
