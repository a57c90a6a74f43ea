"""Data cards: what a collection holds, what was left out and why, what it cost, and how it was made.

`card_of` puts one together from the finished steps and what the pipeline tells; `write_card` lays it out as `card.md`
and `card.html`, with the thumbnails and drawings that the Markdown shows in a folder `card` beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

from eyespot.html import checked_address
from eyespot.pipelines.data_card.checks import Level, QualityCheck, level_of, licence_check, wilson, worst
from eyespot.pipelines.data_card.content import Card, CardContent, CardFigure, CardTable, SampleRecord, card_of
from eyespot.pipelines.data_card.croissant import CROISSANT, write_croissant
from eyespot.pipelines.data_card.datasheet import QUESTIONS, joined
from eyespot.pipelines.data_card.hub import Tables, write_head, write_readme
from eyespot.pipelines.data_card.markdown import LOSSES, as_markdown
from eyespot.pipelines.data_card.page import as_page
from eyespot.pipelines.data_card.sankey import sankey
from eyespot.pipelines.data_card.wording import TextStatistics, wording
from eyespot.search.sheets import thumbnail_of
from eyespot.storage.atomic import make_folder, new_folder, write_whole

__all__ = [
    "CROISSANT",
    "QUESTIONS",
    "Card",
    "CardContent",
    "CardFigure",
    "CardTable",
    "Level",
    "QualityCheck",
    "SampleRecord",
    "Tables",
    "TextStatistics",
    "card_of",
    "joined",
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
        _put(folder, f"{LOSSES}.svg", sankey(card.stages).encode())
        for drawing in card.content.drawings:
            _put(folder, f"{drawing.name}.svg", drawing.svg.encode())
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
