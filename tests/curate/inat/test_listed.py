"""Lists that a user gives, whatever the case of their header; a list that names nothing is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from eyespot.curate.inat.settings import PHOTOS, TAXA, listed
from eyespot.types import UsageError
from tests.wording import raises


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "name\nParus major\n"),
        ("l.csv", "id,Species\n7,Parus major\n"),
        ("l.csv", "Scientific Name,why\nParus major,rare\n"),
        ("l.tsv", "why\tSCIENTIFICNAME\nrare\tParus  major\n"),
        ("l.jsonl", '{"Scientific_Name": "Parus major", "id": 7}\n'),
        ("l.txt", "\nParus major \n"),
        ("list", "Parus major"),
    ],
)
def test_names_are_read_however_the_header_is_spelled(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert listed(tmp_path / name, TAXA) == {"Parus major"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", "bird\nParus major\n"),
        ("l.csv", "name\n"),
        ("l.csv", "name,why\n,rare\n"),
        ("l.csv", ""),
        ("l.txt", "\n \n"),
    ],
)
def test_a_list_that_names_nothing_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with raises(UsageError):
        listed(tmp_path / name, TAXA)


def test_photos_have_columns_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("Photo ID,File Name,name\n7,train/a/b.jpg,Ann\n")
    assert listed(tmp_path / "l.csv", PHOTOS) == {"7", "train/a/b.jpg"}
