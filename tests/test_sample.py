"""The sample photographs: pictures, labels and attribution page agree, and every licence asks for nothing."""

from __future__ import annotations

import csv
import filecmp
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from eyespot import sample

REPO = Path(__file__).resolve().parent.parent
SOURCE = REPO.parent / "shared" / "data" / "commons_gcompris"
COLUMNS = ["file_name", "title", "category", "scientific_name", "text", "author", "source", "licence"]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def page() -> str:
    return (sample.photos().parent / "ATTRIBUTION.md").read_text(encoding="utf-8")


def test_every_picture_has_its_row_and_every_row_its_picture(rows: list[dict[str, str]]) -> None:
    assert list(rows[0]) == COLUMNS
    names = [row["file_name"] for row in rows]
    pictures = sorted(path.name for path in sample.photos().iterdir() if path.name != "metadata.csv")
    assert names == pictures
    assert len(names) == 208


def test_every_licence_asks_for_nothing_and_everyone_is_named(rows: list[dict[str, str]]) -> None:
    assert {row["licence"] for row in rows} == {"Public Domain", "CC0-1.0"}
    assert all(row["title"] and row["author"] and row["category"] for row in rows)
    sources = [row["source"] for row in rows if row["source"]]
    assert len(sources) >= len(rows) - 1  # one picture's page is not known
    assert all(source.startswith("https://") for source in sources)


def test_every_picture_is_a_whole_small_jpeg_without_a_position(rows: list[dict[str, str]]) -> None:
    for row in rows:
        with Image.open(sample.photos() / row["file_name"], formats=["JPEG"]) as image:
            image.load()
            assert image.mode == "RGB"
            assert max(image.size) <= 500
            assert not image.getexif().get_ifd(0x8825)
    assert sum(path.stat().st_size for path in sample.photos().iterdir()) < 7_000_000


def test_the_page_names_every_picture_with_its_facts(rows: list[dict[str, str]], page: str) -> None:
    lines = [line.replace("\\", "") for line in page.splitlines() if line.startswith("| [")]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        source = f"<{row['source']}>" if row["source"] else "no page given by GCompris"
        facts = (row["title"], row["author"], source, row["licence"])
        assert line == f"| [{row['file_name']}](photos/{row['file_name']}) | {' | '.join(facts)} |"


def test_the_page_counts_right(rows: list[dict[str, str]], page: str) -> None:
    counted = re.search(r"(\d+) photographs, (\d+) in the public domain and (\d+) under", page)
    domain = sum(row["licence"] == "Public Domain" for row in rows)
    assert counted and [int(number) for number in counted.groups()] == [len(rows), domain, len(rows) - domain]


@pytest.mark.skipif(not SOURCE.is_dir(), reason="needs the GCompris pictures in `shared` beside the checkout")
def test_the_script_makes_these_very_files(tmp_path: Path) -> None:
    script = str(REPO / "scripts" / "make_sample.py")
    subprocess.run([sys.executable, script, str(SOURCE), "--out", str(tmp_path)], check=True)
    here = sample.photos().parent
    assert (tmp_path / "ATTRIBUTION.md").read_bytes() == (here / "ATTRIBUTION.md").read_bytes()
    names = sorted(path.name for path in sample.photos().iterdir())
    assert sorted(path.name for path in (tmp_path / "photos").iterdir()) == names
    assert filecmp.cmpfiles(tmp_path / "photos", sample.photos(), names, shallow=False) == (names, [], [])
