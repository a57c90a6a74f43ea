"""A data card as one page that needs nothing beside it: light or dark, on paper, on a telephone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path

from eyespot.html import photo_address, render
from eyespot.photos.pictures import id_of
from eyespot.pipelines.data_card.content import Card, CardTable
from eyespot.pipelines.data_card.datasheet import parted
from eyespot.pipelines.data_card.sankey import NARROW, WIDE, sankey

UNREADABLE = "unreadable"


def as_page(card: Card, thumbnails: Sequence[Sequence[bytes | None]], page: str = "") -> str:
    """The card; `thumbnails` are JPEGs of each sample's pictures, None where one cannot be read.

    `page` is the address of a running page over a gallery of these pictures, which they link into.
    """
    closing = (("Cite", card.content.citation), ("Licence", card.content.licence))
    content = {
        "title": card.content.title,
        "footer": " ".join(f"{what}: {text}." for what, text in closing if text),
        "broad": sankey(card.stages, WIDE),
        "narrow": sankey(card.stages, NARROW),
        "samples": list(zip(card.content.samples, thumbnails, strict=True)),
        "content": [table for table in (card.reading, *card.content.tables) if table.rows],
        "datasheet": [
            (section, *parted(answers)) for section, answers in groupby(card.datasheet, key=lambda one: one.section)
        ],
    }
    address = partial(_address, page)
    return render("data_card.html", card=card, address=address, numeric=_numeric, unreadable=UNREADABLE, **content)


def _address(page: str, path: Path) -> str:
    """Where the running page shows a picture, whose id is the digest of its bytes; "" where it cannot be read."""
    with suppress(OSError):
        return photo_address(page, id_of(path.read_bytes())) if page else ""
    return ""


def _numeric(table: CardTable) -> list[bool]:
    """Of each column whether all its values begin with a digit."""
    columns = zip(*table.rows, strict=True)
    return [all(str(value).lstrip("+-")[:1].isdigit() for value in column) for column in columns]
