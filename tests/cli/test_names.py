"""`eyespot names` and what it does to a search, by the command line and the API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import copy_of_sample_gallery
from tests.command import run_eyespot


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_sample_gallery(tmp_path_factory.mktemp("names") / "gallery")


def test_names_are_given_listed_used_and_removed(gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "gates.csv").write_text("latin,english\nporta maxima,gate\none\n")
    none = run_eyespot("search", "porta maxima", "--by", "words", "-g", gallery)
    given = run_eyespot("names", tmp_path / "gates.csv", "-g", gallery)

    assert none.returncode == 4
    assert given.returncode == 3 and given.stdout == "gates.csv: 2 names of 1 taxa\n"
    assert "gates.csv:3 has 1 fields where the header has 2" in given.stderr
    found = run_eyespot("search", "porta maxima", "--by", "words", "-g", gallery, "-k", 3)
    assert found.returncode == 0 and "Gate" in found.stdout
    assert "porta maxima = gate, by gates.csv" in found.stderr

    listed = json.loads(run_eyespot("names", "-g", gallery, "--json").stdout)
    assert listed["files"] == [{"name": "gates.csv", "taxa": 1, "names": 2}]
    removed = run_eyespot("names", "--remove", "gates.csv", "-g", gallery)
    assert removed.returncode == 0 and "no names" in removed.stderr
    assert run_eyespot("search", "porta maxima", "--by", "words", "-g", gallery).returncode == 4


def test_what_is_no_table_of_names_is_refused(gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    refused = run_eyespot("names", tmp_path / "empty.csv", "-g", gallery)
    assert refused.returncode == 2 and "holds no names" in refused.stderr

    unknown = run_eyespot("names", "--remove", "other.csv", "-g", gallery)
    assert unknown.returncode == 2 and "other.csv" in unknown.stderr
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "empty.csv").write_text("a,b")
    twice = run_eyespot("names", tmp_path / "empty.csv", tmp_path / "one" / "empty.csv", "-g", gallery)
    assert twice.returncode == 2 and "one name" in twice.stderr
