"""Ids as tables and JSON give them: texts and whole numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eyespot.storage.text_files import refuse


def id_of(value: Any) -> str | None:
    """An id as text: what is a string or a whole number and not empty; else None."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None


def required(path: Path, line: int, row: dict[str, Any], *names: str) -> str:
    """The id that stands in the first of these columns that is there; `UsageError` names file and line."""
    name = next((name for name in names if name in row), None)
    if name is None:
        refuse(path, f"line {line}", f"has no column {names[0]}; there are: {', '.join(row) or 'none'}")
    id = id_of(row[name])
    if id is None:
        refuse(path, f"line {line}", f"has {row[name]!r} as {name}; expected an id")
    return id
