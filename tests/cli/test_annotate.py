"""`eyespot annotate` as users run it: from a file of queries to an exported set."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from PIL import Image

from tests.command import run_eyespot
from tests.worlds import annotation as world
from tests.worlds import draw

QUERIES = ",query_id,query_text,category,visible\n0,1,a heron,Species,yes\n1,2,a thought,Context,no\n"


def write_marks(path: Path, listed: list[str]) -> Path:
    rows = (f"{image},{'y' if at < 10 else 'n'}\n" for at, image in enumerate(listed))
    path.write_text("image,mark\n" + "".join(rows))
    return path


def listed(folder: Path) -> list[str]:
    return list(json.loads((folder / "candidates.json").read_text())["1"])


@pytest.mark.long
def test_from_queries_to_a_set_and_its_rerank_subset(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 60, 10))
    (tmp_path / "queries.csv").write_text(QUERIES)

    added = run_eyespot("annotate", "add", tmp_path / "queries.csv", "--json", *where)
    assert json.loads(added.stdout) == {"taken": ["1"], "left_out": {"2": ["visible"]}}, added.stderr
    run_eyespot("annotate", "list", "1", "--label", "kind=heron", "--label", "kind=other", *where)
    ids = [f"clip-retrieval:pictures/{number:04d}.jpg" for number in range(60)]
    marks = write_marks(tmp_path / "marks.csv", ids)
    marked = run_eyespot("annotate", "mark", "1", marks, "--as", "Ada", "--json", *where)
    assert json.loads(marked.stdout)["changed"] == 60, marked.stderr
    status = json.loads(run_eyespot("annotate", "status", "1", "--json", *where).stdout)
    assert status["1"]["annotators"]["Ada"]["relevant"] == 10 and status["1"]["annotators"]["Ada"]["stopped"]
    made = run_eyespot("annotate", "export", tmp_path / "out", "--rerank", tmp_path / "rerank", *where)
    assert made.returncode == 0 and (tmp_path / "rerank" / "qrels.parquet").exists(), made.stderr
    with (tmp_path / "out" / "annotations.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 10
    assert len(listed(tmp_path / "out")) == 60


@pytest.mark.long
def test_what_cannot_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 12, 2))
    cases = {
        ("status",): (4, "no query was taken in yet"),
        ("list", "1"): (2, "say which photos"),
        ("add",): (2, "name a CSV of queries"),
        ("export", str(tmp_path / "out")): (4, "no query is labelled yet"),
    }
    results = {words: run_eyespot("annotate", *words, *where) for words in cases}
    assert {words: (one.returncode, cases[words][1] in one.stderr) for words, one in results.items()} == {
        words: (code, True) for words, (code, _) in cases.items()
    }


@pytest.mark.long
def test_a_mistyped_query_is_removed_and_a_labelled_one_is_not(tmp_path: Path) -> None:
    where = ("-g", world.gallery(tmp_path, 12, 3))
    run_eyespot("annotate", "add", "--id", "1", "--text", "a hreon", *where)
    removed = run_eyespot("annotate", "remove", "1", *where)
    again = run_eyespot("annotate", "remove", "1", *where)
    run_eyespot("annotate", "add", "--id", "1", "--text", "a heron", *where)
    run_eyespot("annotate", "list", "1", "--nearest", "3", *where)
    marks = write_marks(tmp_path / "marks.csv", ["clip-retrieval:pictures/0000.jpg"])
    run_eyespot("annotate", "mark", "1", marks, "--as", "Ada", *where)
    labelled = run_eyespot("annotate", "remove", "1", *where)

    assert removed.returncode == 0 and "removed" in removed.stdout, removed.stderr
    assert again.returncode == 2 and "no query '1'" in again.stderr
    assert labelled.returncode == 2 and "marks stay" in labelled.stderr


@pytest.mark.long
def test_a_table_without_marks_takes_none_back_and_empty_ones_do(tmp_path: Path) -> None:
    where, photo = ("-g", world.gallery(tmp_path, 12, 3)), "clip-retrieval:pictures/0000.jpg"
    run_eyespot("annotate", "add", "--id", "1", "--text", "a heron", *where)
    run_eyespot("annotate", "list", "1", "--nearest", "3", *where)
    ways = {"image,mark\n{},y\n": 0, "image,Mark\n{},n\n": 2, "image,mark\n{},\n": 0}
    labelled = []
    for table, code in ways.items():
        (tmp_path / "marks.csv").write_text(table.format(photo))
        done = run_eyespot("annotate", "mark", "1", tmp_path / "marks.csv", "--as", "Ada", *where)
        assert done.returncode == code, done.stderr
        annotators = json.loads(run_eyespot("annotate", "status", "1", "--json", *where).stdout)["1"]["annotators"]
        labelled.append(annotators["Ada"]["labelled"] if annotators else 0)

    assert labelled == [1, 1, 0]
    assert "takes back" in done.stderr


@pytest.mark.long
def test_status_counts_copies_once_where_wanted(tmp_path: Path) -> None:
    for seed in range(6):
        draw(tmp_path / "photos" / f"{seed}.png", seed)
    for turn in (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180):
        with Image.open(tmp_path / "photos" / "0.png") as photo:
            photo.transpose(turn).save(tmp_path / "photos" / f"0 {turn.name}.png")
    where = ("-g", tmp_path / "gallery")
    run_eyespot("index", tmp_path / "photos", *where)
    found = json.loads(run_eyespot("search", "stripes", "--ungrouped", "--json", *where).stdout)["items"]
    run_eyespot("annotate", "add", "--text", "stripes", "--id", "1", *where)
    run_eyespot("annotate", "list", "1", "--nearest", "8", *where)
    rows = (f"{item['id']},{'y' if Path(item['path']).name[0] in '012' else 'n'}\n" for item in found)
    (tmp_path / "marks.csv").write_text("image,mark\n" + "".join(rows))
    marked = run_eyespot("annotate", "mark", "1", tmp_path / "marks.csv", "--as", "Ada", "--json", *where)
    assert marked.returncode == 0, marked.stderr

    status = json.loads(run_eyespot("annotate", "status", "1", "--grouped", "--json", *where).stdout)["1"]
    assert (status["annotators"]["Ada"]["relevant"], status["annotators"]["Ada"]["labelled"]) == (5, 8)
    groups = {"labelled": 6, "relevant": 3, "audited": 0, "audited_relevant": 0}
    assert status["annotators"]["Ada"]["groups"] == groups
    shown = run_eyespot("annotate", "status", "--grouped", *where).stdout
    assert "5 relevant of 8 (3 of 6 where copies and bursts count once)" in shown
    assert "count once" not in run_eyespot("annotate", "status", *where).stdout
