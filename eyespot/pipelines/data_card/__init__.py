"""Data cards: what a collection holds, what was left out and why, what it cost, and how it was made.

`card_of` puts one together from the finished steps and what the pipeline tells; `write_card` lays it out as `card.md`
and `card.html`, with the thumbnails that the Markdown shows in a folder `card` beside it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.html import checked_address, photo_address, render, tidy
from eyespot.photos.pictures import id_of
from eyespot.pipelines.data_card import markdown
from eyespot.pipelines.data_card.content import (
    Card,
    CardContent,
    CardTable,
    Level,
    QualityCheck,
    SampleRecord,
    card_of,
    content_of,
    level_of,
    licence_check,
    wilson,
)
from eyespot.pipelines.data_card.datasheet import to_fill
from eyespot.pipelines.data_card.hub import Tables, write_croissant, write_head, write_readme
from eyespot.search.contact_sheet import thumbnail_of
from eyespot.storage.atomic import make_folder, new_folder, write_whole

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "Card",
    "CardContent",
    "CardTable",
    "Level",
    "QualityCheck",
    "SampleRecord",
    "Tables",
    "card_of",
    "content_of",
    "level_of",
    "licence_check",
    "wilson",
    "write_card",
    "write_croissant",
    "write_head",
    "write_readme",
]


def write_card(card: Card, out: Path) -> list[Path]:
    """`card.md`, `card.html` and the folder `card` in the folder `out`; the two files' paths.

    The pictures of the page link into the running `eyespot serve` that the environment names with EYESPOT_PAGE.
    """
    page = checked_address(os.environ.get("EYESPOT_PAGE"))
    make_folder(out)
    samples: list[tuple[SampleRecord, list[bytes | None], list[str]]] = []
    with new_folder(out / "card") as folder:
        for number, sample in enumerate(card.content.samples, 1):
            thumbnails = [thumbnail_of(str(path)) for _, path in sample.pictures]
            names = [f"{number:03d}-{place}.jpg" for place in range(1, len(thumbnails) + 1)]
            for name, jpeg in zip(names, thumbnails, strict=True):
                if jpeg is not None:
                    (folder / name).write_bytes(jpeg)
            files = [f"card/{name}" if jpeg else "" for name, jpeg in zip(names, thumbnails, strict=True)]
            samples.append((sample, thumbnails, files))
        tables = [table for table in (card.reading, *card.content.tables) if table.rows]
        drawings: dict[str, tuple[str, str]] = {}  # by the title of their table: file and drawing
        for number, table in enumerate((one for one in tables if one.drawn is not None), 1):
            drawings[table.title] = f"card/chart-{number}.svg", render("bars.svg", table=table)
            (folder / f"chart-{number}.svg").write_text(drawings[table.title][1], encoding="utf-8")

    def address(path: Path) -> str:
        """Where the running page shows a picture, whose id is the digest of its bytes; "" where it cannot be read."""
        with suppress(OSError):
            return photo_address(page, id_of(path.read_bytes())) if page else ""
        return ""

    paths = [out / "card.md", out / "card.html"]
    for path in paths:
        parts = {"samples": samples, "address": address, "content": tables, "drawings": drawings}
        text = _rendered(f"data_{path.name}", card, **parts).rstrip()
        write_whole(path, methodcaller("write", f"{text}\n".encode("utf-8", "replace")))
    return paths


def _rendered(template: str, card: Card, **more: Any) -> str:
    from markupsafe import Markup

    closing = [
        (what, text) for what, text in (("Licence", card.content.licence), ("Cite", card.content.citation)) if text
    ]

    def numeric(table: CardTable) -> list[bool]:
        """Of each column whether all its values begin with a digit."""
        columns = zip(*table.rows, strict=True)
        return [all(str(value).lstrip("+-")[:1].isdigit() for value in column) for column in columns]

    def raw(function: Callable[..., str]) -> Callable[..., Markup]:
        """The text of a function that has made it safe for Markdown, where a page would escape it once more."""
        return lambda *values: Markup(function(*values))

    return render(
        template,
        card=card,
        title=card.content.title,
        footer=" ".join(f"{what}: {text}." for what, text in reversed(closing)),
        closing=closing,
        checks=[[check.level, check.what, markdown.plain(check.text)] for check in card.content.checks],
        datasheet=groupby((one for one in card.datasheet if one.answer), key=lambda one: one.section),
        unanswered=to_fill(card.datasheet),
        numeric=numeric,
        # Ten pictures open a card: two of a sample, where it has more than one
        opening=5 if any(files[1:] for *_, files in more["samples"]) else 10,
        unreadable="unreadable",
        tidy=tidy,
        rows=raw(markdown.table),
        **{
            function.__name__: raw(function)
            for function in (markdown.cell, markdown.plain, markdown.picture_links, markdown.fenced)
        },
        **more,
    )
