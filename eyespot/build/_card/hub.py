"""A set's `README.md`: its card under a head by which hubs and `datasets` find the tables, each a configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eyespot.build._card.content import Card
from eyespot.runs.files import write_whole

Tables = Mapping[str, Mapping[str, str]]
"""Configurations: name → split → the table's file, relative to the set."""


def write_readme(card: Card, tables: Tables, folder: Path) -> None:
    """`README.md` out of the `card.md` that lies in the folder, in its place."""
    text = front_matter(card, tables) + (folder / "card.md").read_text(encoding="utf-8")
    write_whole(folder / "README.md", lambda file: file.write(text.encode("utf-8", "replace")))
    (folder / "card.md").unlink()


def front_matter(card: Card, tables: Tables) -> str:
    """The head, in YAML."""
    lines = ["---", f"pretty_name: {json.dumps(card.told.title)}"]
    lines += [f"license: {json.dumps(card.told.licence)}"] if card.told.licence else []
    lines += ["configs:"]
    for name, splits in tables.items():
        lines += [f"- config_name: {name}", "  data_files:"]
        lines += [f"  - {{split: {split}, path: {path}}}" for split, path in splits.items()]
    return "\n".join([*lines, "---", "", ""])
