"""The page on what lies in a gallery: a gallery made by the commands holds no file, table or column that it lacks."""

from __future__ import annotations

import csv
import filecmp
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot import sample
from tests.command import run_eyespot
from tests.made_once import made_once
from tests.pages import ROOT
from tests.worlds import draw_photos, index_gallery

TEXT = (ROOT / "docs" / "how" / "layout.md").read_text(encoding="utf-8")
PLACEHOLDERS = {"SPACE": "*", "NAME": "*", "00000-00127": "?????-?????"}


def rows() -> Iterator[str]:
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
    for line in (["map"], ["compact"]):
        done = run_eyespot(*line, "-g", gallery)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def gallery() -> Path:
    return made_once("layout-page", make) / "gallery"


def test_every_file_of_a_gallery_stands_on_the_page(gallery: Path) -> None:
    files = [path.relative_to(gallery).as_posix() for path in gallery.rglob("*") if path.is_file()]
    plain = [name for name in files if not re.search(r"(^|/)\.|(^|[./])lock$", name)]

    assert "shards/00000-00001/members.json" in plain and "shards/00000-00001/words.sqlite" in plain
    assert [name for name in plain if not any(fnmatchcase(name, pattern) for pattern in patterns())] == []


def test_every_table_of_the_index_and_every_column_of_the_facts_stands_there(gallery: Path) -> None:
    with closing(sqlite3.connect(f"file:{gallery / 'index.sqlite'}?mode=ro", uri=True)) as sql:
        tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
    (line,) = [line for line in TEXT.splitlines() if line.startswith("| `index.sqlite`")]
    (items,) = [line for line in TEXT.splitlines() if line.startswith("| `items.parquet`")]
    (place,) = gallery.glob("shards/*/items.parquet")

    assert tables == set(re.findall(r"`([^`]+)`", line)[1].split()) | {"files"}
    assert set(pq.read_schema(place).names) == set(re.findall(r"`([^`]+)`", items)[1:-1])


# -- the sample photographs ---------------------------------------------------------------------------------------


REPO = Path(__file__).resolve().parent.parent
SOURCE = REPO.parent / "shared" / "data" / "commons_gcompris"
COLUMNS = ["file_name", "title", "category", "scientific_name", "text", "author", "source", "licence"]


@pytest.fixture(scope="module")
def sample_rows() -> list[dict[str, str]]:
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_picture_has_its_row_and_every_row_its_picture(sample_rows: list[dict[str, str]]) -> None:
    assert list(sample_rows[0]) == COLUMNS
    names = [row["file_name"] for row in sample_rows]
    pictures = sorted(path.name for path in sample.photos().iterdir() if path.name != "metadata.csv")
    assert names == pictures
    assert len(names) == 208


def test_every_licence_asks_for_nothing_and_everyone_is_named(sample_rows: list[dict[str, str]]) -> None:
    assert {row["licence"] for row in sample_rows} == {"Public Domain", "CC0-1.0"}
    assert all(row["title"] and row["author"] and row["category"] for row in sample_rows)
    sources = [row["source"] for row in sample_rows if row["source"]]
    assert len(sources) >= len(sample_rows) - 1  # one picture's page is not known
    assert all(source.startswith("https://") for source in sources)


def test_every_picture_is_a_whole_small_jpeg_without_a_position(sample_rows: list[dict[str, str]]) -> None:
    for row in sample_rows:
        with Image.open(sample.photos() / row["file_name"], formats=["JPEG"]) as image:
            image.load()
            assert image.mode == "RGB"
            assert max(image.size) <= 500
            assert not image.getexif().get_ifd(0x8825)
    assert sum(path.stat().st_size for path in sample.photos().iterdir()) < 7_000_000


def test_the_page_names_every_picture_with_its_facts(sample_rows: list[dict[str, str]]) -> None:
    page = (sample.photos().parent / "ATTRIBUTION.md").read_text(encoding="utf-8")
    lines = [line.replace("\\", "") for line in page.splitlines() if line.startswith("| [")]
    assert len(lines) == len(sample_rows)
    for line, row in zip(lines, sample_rows, strict=True):
        source = f"<{row['source']}>" if row["source"] else "no page given by GCompris"
        facts = (row["title"], row["author"], source, row["licence"])
        assert line == f"| [{row['file_name']}](photos/{row['file_name']}) | {' | '.join(facts)} |"


@pytest.mark.skipif(not SOURCE.is_dir(), reason="needs the GCompris pictures in `shared` beside the checkout")
def test_the_script_makes_these_very_files(tmp_path: Path) -> None:
    script = str(REPO / "scripts" / "make_sample.py")
    subprocess.run([sys.executable, script, str(SOURCE), "--out", str(tmp_path)], check=True)
    here = sample.photos().parent
    assert (tmp_path / "ATTRIBUTION.md").read_bytes() == (here / "ATTRIBUTION.md").read_bytes()
    names = sorted(path.name for path in sample.photos().iterdir())
    assert sorted(path.name for path in (tmp_path / "photos").iterdir()) == names
    assert filecmp.cmpfiles(tmp_path / "photos", sample.photos(), names, shallow=False) == (names, [], [])
