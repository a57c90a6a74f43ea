"""What the hub and `datasets` read of a folder: the head of its README.md, and the kinds of columns in parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import write_whole

SHOWN = "Image"


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
