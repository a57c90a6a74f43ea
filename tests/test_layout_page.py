"""The page on what lies in a gallery: a gallery made by the commands holds no file, table or column that it lacks."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.command import run_eyespot
from tests.made_once import made_once
from tests.pages import ROOT
from tests.worlds import draw_photos, index_gallery

TEXT = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8")
PLACEHOLDERS = {"SPACE": "*", "NAME": "*", "00000-00127": "?????-?????"}


def rows() -> Iterator[str]:
    """The first cell of each row of the page's tables."""
    return (line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `"))


def patterns() -> list[str]:
    names = [name for row in rows() for name in re.findall(r"`([^`]+)`", row)]
    for word, pattern in PLACEHOLDERS.items():
        names = [name.replace(word, pattern) for name in names]
    return [*names, *(f"shards/*/{name}" for name in names)]


def make(folder: Path) -> None:
    """Two shards of drawn photos that are merged, with codes, words and a map."""
    gallery = folder / "gallery"
    draw_photos(folder / "photos", 12)
    index_gallery(gallery, folder / "photos", shard_rows=6, codes=True)
    for line in (["map"], ["search", "a red square", "--json"], ["compact"]):
        done = run_eyespot(*line, "-g", gallery)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def gallery() -> Path:
    return made_once("layout-page", make) / "gallery"


def test_every_file_of_a_gallery_stands_on_the_page(gallery: Path) -> None:
    files = [path.relative_to(gallery).as_posix() for path in gallery.rglob("*") if path.is_file()]
    plain = [name for name in files if not re.search(r"(^|/)\.|(^|[./])lock$", name)]

    assert "shards/00000-00001/members.json" in plain and "words.sqlite" in plain
    assert [name for name in plain if not any(fnmatchcase(name, pattern) for pattern in patterns())] == []


def test_every_table_of_the_index_and_every_column_of_the_facts_stands_there(gallery: Path) -> None:
    with closing(sqlite3.connect(f"file:{gallery / 'index.sqlite'}?mode=ro", uri=True)) as sql:
        tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    (line,) = [line for line in TEXT.splitlines() if line.startswith("| `index.sqlite`")]
    (items,) = [line for line in TEXT.splitlines() if line.startswith("| `items.parquet`")]
    (place,) = gallery.glob("shards/*/items.parquet")

    assert tables == set(re.findall(r"`([^`]+)`", line)[1].split()) | {"files"}
    assert set(pq.read_schema(place).names) == set(re.findall(r"`([^`]+)`", items)[1:-1])
