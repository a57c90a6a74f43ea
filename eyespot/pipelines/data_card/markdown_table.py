"""Markdown tables: cells from text that anyone wrote."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; nothing for no rows."""
    lines = [[cell(value) for value in row] for row in rows]
    names = [cell(value) for value in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (names, ["---"] * len(names), *lines)) if lines else ""


def cell(value: Any) -> str:
    """A value as text that ends no cell, no row, and opens no tag."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")
