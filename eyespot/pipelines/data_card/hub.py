"""A set's `README.md`: its card under a head by which hubs and `datasets` find the tables, each a configuration.

The first configuration is the one that is loaded if none is named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eyespot.formats.hub import configurations
from eyespot.pipelines.data_card.content import Card
from eyespot.storage.atomic import write_whole

Tables = Mapping[str, Mapping[str, str]]
"""Configurations: name → split → the table's file, relative to the set."""


def write_readme(card: Card, tables: Tables, folder: Path) -> None:
    """`README.md` out of the `card.md` that lies in the folder, in its place."""
    write_head(card, tables, folder, (folder / "card.md").read_text(encoding="utf-8"))
    (folder / "card.md").unlink()


def write_head(card: Card, tables: Tables, folder: Path, text: str) -> None:
    """`README.md` with a text of its own under the head."""
    whole = front_matter(card, tables) + text
    write_whole(folder / "README.md", lambda file: file.write(whole.encode("utf-8", "replace")))


def front_matter(card: Card, tables: Tables) -> str:
    """The head, in YAML."""
    lines = ["---", f"pretty_name: {json.dumps(card.content.title)}"]
    lines += [f"license: {json.dumps(card.content.licence)}"] if card.content.licence else []
    return "\n".join([*lines, *configurations(tables), "---", "", ""])
