"""What a data card in Markdown needs: tables of cells that anyone wrote, plain words, and blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from eyespot.pipelines.data_card.content import SampleRecord


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; nothing for no rows."""
    lines = [[cell(value) for value in row] for row in rows]
    names = [cell(value) for value in head]
    return "\n".join("| " + " | ".join(line) + " |" for line in (names, ["---"] * len(names), *lines)) if lines else ""


def cell(value: Any) -> str:
    """A value as text that ends no cell, no row, and opens no tag."""
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def plain(text: str) -> str:
    """Words of a model or of people, which make no link, picture or code."""
    return re.sub(r"([\[\]`])", r"\\\1", cell(text))


def picture_links(sample: SampleRecord, files: Sequence[str]) -> str:
    """The pictures of a sample, or the first ones, by their files, "" where one cannot be read."""
    labels = [re.sub(r"[\[\]\\]", "", cell(label)) for label, _ in sample.pictures[: len(files)]]
    pairs = zip(labels, files, strict=True)
    return " ".join(f"![{label}]({file})" if file else f"({label}: unreadable)" for label, file in pairs)


def fenced(text: str, language: str) -> str:
    """A block of code that no line of its own can end."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text)), 3)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
