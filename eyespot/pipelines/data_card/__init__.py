"""Data cards: what a collection holds, what was left out and why, what it cost, and how it was made.

`card_of` puts one together from the finished steps and what the pipeline tells; `write_card` lays it out as `card.md`
and `card.html`, with the thumbnails that the Markdown shows in a folder `card` beside it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from eyespot.html import checked_address, photo_address, render
from eyespot.photos.pictures import id_of
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
    worst,
)
from eyespot.pipelines.data_card.datasheet import QUESTIONS, parted
from eyespot.pipelines.data_card.hub import Tables, write_croissant, write_head, write_readme
from eyespot.pipelines.data_card.markdown import as_markdown
from eyespot.pipelines.data_card.wording import wording
from eyespot.search.contact_sheet import thumbnail_of
from eyespot.storage.atomic import make_folder, new_folder, write_whole

__all__ = [
    "QUESTIONS",
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
    "wording",
    "worst",
    "write_card",
    "write_croissant",
    "write_head",
    "write_readme",
]

UNREADABLE = "unreadable"


def write_card(card: Card, out: Path) -> list[Path]:
    """`card.md`, `card.html` and the folder `card` in the folder `out`; the two files' paths.

    The pictures of the page link into the running `eyespot serve` that the environment names with EYESPOT_PAGE.
    """
    page = checked_address(os.environ.get("EYESPOT_PAGE"))
    make_folder(out)
    thumbnails = [[thumbnail_of(str(path)) for _, path in sample.pictures] for sample in card.content.samples]
    with new_folder(out / "card") as folder:
        names = [
            [_put(folder, f"{sample:03d}-{number}.jpg", jpeg) for number, jpeg in enumerate(jpegs, 1)]
            for sample, jpegs in enumerate(thumbnails, 1)
        ]
    texts = {"card.md": as_markdown(card, names), "card.html": as_page(card, thumbnails, page)}
    for name, text in texts.items():
        write_whole(out / name, lambda file, text=text: file.write(text.encode("utf-8", "replace")))  # type: ignore[misc]
    return [out / name for name in texts]


def _put(folder: Path, name: str, data: bytes | None) -> str:
    """The file's place as the Markdown names it; "" where there is nothing to show."""
    if data is None:
        return ""
    (folder / name).write_bytes(data)
    return f"card/{name}"


def as_page(card: Card, thumbnails: Sequence[Sequence[bytes | None]], page: str = "") -> str:
    """The card; `thumbnails` are JPEGs of each sample's pictures, None where one cannot be read.

    `page` is the address of a running page over a gallery of these pictures, which they link into.
    """
    closing = (("Cite", card.content.citation), ("Licence", card.content.licence))
    content = {
        "title": card.content.title,
        "footer": " ".join(f"{what}: {text}." for what, text in closing if text),
        "samples": list(zip(card.content.samples, thumbnails, strict=True)),
        "content": [table for table in (card.reading, *card.content.tables) if table.rows],
        "datasheet": [
            (section, *parted(answers)) for section, answers in groupby(card.datasheet, key=lambda one: one.section)
        ],
    }

    def address(path: Path) -> str:
        """Where the running page shows a picture, whose id is the digest of its bytes; "" where it cannot be read."""
        with suppress(OSError):
            return photo_address(page, id_of(path.read_bytes())) if page else ""
        return ""

    def numeric(table: CardTable) -> list[bool]:
        """Of each column whether all its values begin with a digit."""
        columns = zip(*table.rows, strict=True)
        return [all(str(value).lstrip("+-")[:1].isdigit() for value in column) for column in columns]

    return render("data_card.html", card=card, address=address, numeric=numeric, unreadable=UNREADABLE, **content)
