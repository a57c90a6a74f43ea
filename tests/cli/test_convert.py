"""`eyespot convert` keeps what a run or judgements say, in every format that eyespot writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot.runs import beir, read_qrels, read_run
from tests.command import run_eyespot

RUN = "q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq2 Q0 c 1 0.25 t\n"
QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 c 2\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


@pytest.mark.parametrize("out", ["run.json", "run.json.gz", "run.parquet", "run.trec"])
def test_a_run_says_the_same_in_every_format(place: Path, out: str) -> None:
    done = run_eyespot("convert", "run.txt", out, "--json", cwd=place)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"out": out, "holds": "run", "queries": 2, "rows": 3}
    before, after = read_run(place / "run.txt"), read_run(place / out)
    assert {query: before[query] for query in before} == {query: after[query] for query in after}


@pytest.mark.parametrize("out", ["qrels.json", "qrels.parquet", "more.qrels"])
def test_judgements_are_known_by_their_lines(place: Path, out: str) -> None:
    done = run_eyespot("convert", "qrels.txt", out, "--json", cwd=place)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["holds"] == "qrels"
    assert read_qrels(place / out).grades == read_qrels(place / "qrels.txt").grades


def test_judgements_and_texts_become_a_beir_folder(place: Path) -> None:
    (place / "queries.csv").write_text("id,text\nq1,a heron\n")
    done = run_eyespot("convert", "qrels.txt", "set", "--to", "beir", "--queries", "queries.csv", cwd=place)

    assert done.returncode == 0 and "1 queries have no text" in done.stderr
    read = beir.read(place / "set")
    assert read.qrels.grades == read_qrels(place / "qrels.txt").grades
    assert {query: facts["text"] for query, facts in read.queries.items()} == {"q1": "a heron", "q2": "q2"}
    back = run_eyespot("convert", "set", "back.txt", cwd=place)
    assert back.returncode == 0 and (place / "back.txt").read_text() == QRELS


def test_a_format_that_holds_less_says_what_is_lost(place: Path) -> None:
    (place / "long.json").write_text(json.dumps({"1": [str(n) for n in range(60)], "2": []}))
    cut = run_eyespot("convert", "long.json", "cut.json", "--to", "circo", cwd=place)
    lost = run_eyespot("convert", "long.json", "lost.txt", cwd=place)

    assert "10 results below the depth of this format are left out" in cut.stderr
    assert "1 queries have no results" in lost.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run.txt", "qrels.txt"), "is there already; name another file, or replace it with --force"),
        (("run.txt", "."), "is there already; name a new folder"),
        (("run.txt", "out.txt", "--to", "ilias"), "no format 'ilias' here; there are: trec, json, parquet, npz, circo"),
        (("run.txt", "out.txt", "--queries", "q.csv"), "write one with --to beir"),
        (("none.txt", "out.txt"), "there is no file none.txt"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(
    place: Path, words: tuple[str, ...], sentence: str
) -> None:
    done = run_eyespot("convert", *words, cwd=place)

    assert done.returncode == 2 and sentence in done.stderr
    assert sorted(path.name for path in place.iterdir()) == ["qrels.txt", "run.txt"]


def test_a_file_is_replaced_with_force(place: Path) -> None:
    done = run_eyespot("convert", "run.txt", "qrels.txt", "--force", cwd=place)

    assert done.returncode == 0 and read_run(place / "qrels.txt")["q2"][0].image == "c"
