"""`eyespot search --by` on the sample photos: titles and names find photos, each hit says why, and `eval` may read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eyespot.runs import read_run
from tests.command import run_eyespot


def search(gallery: Path, *words: object) -> dict[str, Any]:
    done = run_eyespot("search", *words, "-g", gallery, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def codes(item: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in item["why"]]


def test_a_title_finds_its_photos_and_each_says_why(sample_gallery: Path) -> None:
    found = search(sample_gallery, "Brandenburg Gate", "-k", 6, "--ungrouped")

    first, second, *_, last = found["items"]
    assert found["by"] == "both"
    assert all("brandenburgGate" in item["path"] for item in (first, second))
    assert "file name" in codes(first) and "look" in codes(first)
    assert codes(last)[0] == "look" or "Gate" in json.dumps(last)


def test_words_alone_find_nothing_else(sample_gallery: Path) -> None:
    found = search(sample_gallery, "gate", "--by", "words", "-k", 50)
    assert found["by"] == "words" and 0 < len(found["items"]) < 50
    assert all("gate" in json.dumps([item["path"], item.get("title")]).lower() for item in found["items"])

    for options in ((), ("--rerank", "person:ada", "--calibrate", "10")):
        none = run_eyespot("search", "zyzzyva", "--by", "words", *options, "-g", sample_gallery)
        assert (none.returncode, none.stdout) == (4, "") and "--by look" in none.stderr


def test_look_reads_no_word_and_both_ranks_other_words_as_look(sample_gallery: Path) -> None:
    look, both = (search(sample_gallery, "something hot and bright", "--by", by)["items"] for by in ("look", "both"))
    assert [item["id"] for item in look] == [item["id"] for item in both]
    assert "why" not in look[0] and codes(both[0]) == ["look"]

    gate = search(sample_gallery, "Brandenburg Gate", "--by", "look", "-k", 1)
    assert gate["by"] == "look" and "why" not in gate["items"][0]


def test_no_teach_leaves_out_what_labelled_photos_look_like(sample_gallery: Path) -> None:
    words = ("search", "Brandenburg Gate", "-g", sample_gallery, "-k", 9)
    taught, untaught = run_eyespot(*words, "--teach"), run_eyespot(*words, "--no-teach")

    assert "photos bear these words" in taught.stderr and "leave it out with --no-teach" in taught.stderr
    assert "bear these words" not in untaught.stderr
    assert "[" in taught.stdout.splitlines()[0] and taught.stdout != untaught.stdout


def test_words_obey_filters(sample_gallery: Path) -> None:
    found = search(sample_gallery, "gate", "--by", "words", "--where", "path LIKE '%India%'")

    assert ["India" in item["path"] for item in found["items"]] == [True]


@pytest.mark.parametrize("option", [("--neighbours", 3), ("--rerank-local", "chamfer"), ("--adapt", "nowhere")])
def test_what_compares_looks_reads_no_words(sample_gallery: Path, option: tuple[object, ...]) -> None:
    refused = run_eyespot("search", "gate", "--by", "both", *option, "-g", sample_gallery)

    assert refused.returncode == 2 and "--by look" in refused.stderr


@pytest.mark.parametrize("text", ['"NEAR" OR *', "title : gate", "'gate", "gate AND NOT", "c0:gate -x"])
def test_operators_of_the_table_are_words(sample_gallery: Path, text: str) -> None:
    assert run_eyespot("search", text, "--by", "words", "-g", sample_gallery).returncode in (0, 4)


@pytest.mark.long
def test_eval_reads_words_when_asked(sample_gallery: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("id\ttext\nq1\tBrandenburg Gate\n")
    items = search(sample_gallery, "Brandenburg Gate", "--by", "words", "-k", 2)["items"]
    (tmp_path / "qrels.txt").write_text("".join(f"q1 0 {item['id']} 1\n" for item in items))
    line = ("eval", "own", "--data", tmp_path, "-g", sample_gallery, "--json")

    look, both = run_eyespot(*line), run_eyespot(*line, "--by", "both", "--out", tmp_path / "out")

    assert look.returncode == both.returncode == 0, look.stderr + both.stderr
    assert "words and look" in both.stdout and "words and look" not in look.stdout
    (written,) = (tmp_path / "out").rglob("run*.parquet")
    assert read_run(written).header["by"] == "both"


def test_a_read_only_copy_is_searched_by_words(sample_gallery: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(sample_gallery, tmp_path / "copy"))
    (copy / "words.sqlite").unlink(missing_ok=True)
    (copy / "words.sqlite" / "in the way").mkdir(parents=True)

    done = run_eyespot("search", "gate", "--by", "words", "-g", copy, "--paths", HOME=str(tmp_path / "home"))

    assert done.returncode == 0 and "Gate" in done.stdout
