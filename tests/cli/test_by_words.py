"""`eyespot search --by` on the sample photos: titles and names find photos, each hit says why, and `eval` may read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyespot.runs import read_run
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.worlds import copy_of_sample_gallery


def search(gallery: Path, *words: object) -> Any:
    return run_json("search", *words, "-g", gallery)


def codes(item: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in item["why"]]


def test_a_title_finds_its_photos_and_each_says_why(sample_gallery: Path) -> None:
    found = search(sample_gallery, "Brandenburg Gate", "-k", 6, "--ungrouped")

    first, second, *_, last = found["items"]
    assert found["by"] == "both"
    assert all("brandenburgGate" in item["path"] for item in (first, second))
    assert "file name" in codes(first) and "look" in codes(first)
    assert codes(last)[0] == "look" or "Gate" in json.dumps(last)


def test_words_alone_find_nothing_else_and_obey_filters(sample_gallery: Path) -> None:
    found = search(sample_gallery, "gate", "--by", "words", "-k", 50)
    india = search(sample_gallery, "gate", "--by", "words", "--where", "path LIKE '%India%'")

    assert found["by"] == "words" and 0 < len(found["items"]) < 50
    assert all("gate" in json.dumps([item["path"], item.get("title")]).lower() for item in found["items"])
    assert ["India" in item["path"] for item in india["items"]] == [True]
    for options in ((), ("--rerank", "person:ada", "--calibrate", "10")):
        none = done("search", "zyzzyva", "--by", "words", *options, "-g", sample_gallery, code=4)
        assert none.stdout == "" and "--by look" in none.stderr


# -- names that are given ---------------------------------------------------------------------------------------


def test_names_are_given_listed_used_and_removed(tmp_path: Path) -> None:
    gallery = copy_of_sample_gallery(tmp_path / "gallery")
    (tmp_path / "gates.csv").write_text("latin,english\nporta maxima,gate\none\n")
    wanted = ("search", "porta maxima", "--by", "words", "-g", gallery, "-k", 3)
    done(*wanted, code=4)

    given = done("names", tmp_path / "gates.csv", "-g", gallery, code=3)
    found = done(*wanted)

    assert given.stdout == "gates.csv: 2 names of 1 taxa\n"
    assert "gates.csv:3 has 1 fields where the header has 2" in given.stderr
    assert "Gate" in found.stdout and "porta maxima = gate, by gates.csv" in found.stderr
    assert run_json("names", "-g", gallery)["files"] == [{"name": "gates.csv", "taxa": 1, "names": 2}]
    done("names", "--remove", "gates.csv", "-g", gallery)
    done(*wanted, code=4)


@pytest.mark.parametrize("words", ["empty.csv", "--remove other.csv", "empty.csv one/empty.csv"])
def test_what_is_no_table_of_names_is_refused(words: str, sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "empty.csv").write_text("a,b")

    refuses("names", *words.split(), "-g", sample_gallery, cwd=tmp_path)


@pytest.mark.long
def test_eval_reads_words_when_asked(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("id\ttext\nq1\tBrandenburg Gate\n")
    items = search(sample_gallery, "Brandenburg Gate", "--by", "words", "-k", 2)["items"]
    (tmp_path / "qrels.txt").write_text("".join(f"q1 0 {item['id']} 1\n" for item in items))
    line = ("eval", "own", "--data", tmp_path, "-g", sample_gallery, "--json")

    look, both = done(*line), done(*line, "--by", "both", "--out", tmp_path / "out")

    assert "words and look" in both.stdout and "words and look" not in look.stdout
    (written,) = (tmp_path / "out").rglob("run*.parquet")
    assert read_run(written).header["by"] == "both"
