"""`eyespot stats`: what judgements hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run_eyespot


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 b 1\nq1 0 c 0\nq2 0 a 1\nq3 0 c 0\n")
    (tmp_path / "queries.csv").write_text("query_id,kind\nq1,Social\nq2,social\nq3,\n")
    (tmp_path / "run.txt").write_text("q1 Q0 a 1 3 t\nq1 Q0 x 2 2 t\nq2 Q0 a 1 1 t\n")
    return tmp_path


def test_json_holds_the_whole_the_parts_and_what_of_a_run_is_judged(world: Path) -> None:
    words = ("--queries", "queries.csv", "--run", "run.txt", "--by", "kind", "--json")
    shown = run_eyespot("stats", "qrels.txt", *words, cwd=world)
    report = json.loads(shown.stdout)
    assert (report["queries"], report["judged"], report["relevant"], report["barren"]) == (3, 5, 3, ["q3"])
    assert report["matches"]["mean"] == 1 and report["pool"] is None
    assert report["run"] == {"Judged@10": 0.75, "Judged@50": 0.75, "Judged@100": 0.75}
    assert list(report["by"]["kind"]) == ["", "Social"]
    assert report["by"]["kind"]["Social"]["relevant"] == 3 and report["by"]["kind"][""]["run"]["Judged@10"] is None
    assert shown.stderr == "eyespot: 1 of 3 queries are missing from the run; its shares leave them out\n"


def test_lines_for_people(world: Path) -> None:
    shown = run_eyespot("stats", "qrels.txt", "--queries", "queries.csv", "--by", "kind", cwd=world)
    lines = shown.stdout.splitlines()
    assert lines[0].split() == ["queries", "3"] and "images to search   not listed" in lines
    assert "matches per query  mean 1.00, median 1, quartiles 0.5 and 1.5, 0 to 2" in lines
    bars = lines[lines.index("matches   queries") + 1 :][:3]
    assert [bar.split() for bar in bars] == [["0", "1", "#" * 40], ["1", "1", "#" * 40], ["2–3", "1", "#" * 40]]
    assert lines[-2].split() == ["(none)", "1", "1", "0", "0.00", "0", "0", "0"]
    assert lines[-1].split() == ["Social", "2", "4", "3", "1.50", "1.5", "1", "2"]


def test_queries_that_differ_are_noted(world: Path) -> None:
    (world / "queries.csv").write_text("query_id\nq1\nnew\n")
    shown = run_eyespot("stats", "qrels.txt", "--queries", "queries.csv", "--json", cwd=world)
    assert (json.loads(shown.stdout)["queries"], json.loads(shown.stdout)["barren"]) == (2, ["new"])
    assert "2 of 3 judged queries are not in queries.csv" in shown.stderr and "1 of 2 queries of" in shown.stderr


def test_a_collection_that_lists_its_images_tells_the_pool(world: Path) -> None:
    (world / "set" / "qrels").mkdir(parents=True)
    (world / "set" / "queries.jsonl").write_text('{"_id": "q", "text": "a lark"}\n')
    (world / "set" / "corpus.jsonl").write_text('{"_id": "a"}\n{"_id": "b"}\n{"_id": "c"}\n')
    (world / "set" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    report = json.loads(run_eyespot("stats", "set", "--json", cwd=world).stdout)
    assert (report["pool"], report["judged"]) == (3, 1)


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("qrels.txt", "--by", "kind"), 2, "name their file with --queries"),
        (("qrels.txt", "--queries", "queries.csv", "--by", "foo"), 2, "no column 'foo'; there are: kind"),
        (("qrels.txt", "--queries", "none.csv"), 2, "there is no file none.csv"),
        (("empty.txt",), 4, "judges no query"),
        (("qrels.txt", "--queries", "others.csv"), 4, "name queries alike"),
    ],
)
def test_errors_are_one_sentence(world: Path, words: tuple[str, ...], code: int, part: str) -> None:
    (world / "empty.txt").write_text("")
    (world / "others.csv").write_text("query_id\nQ1\n")
    shown = run_eyespot("stats", *words, cwd=world)
    assert shown.returncode == code and part in shown.stderr and shown.stderr.count("\n") == 1 and shown.stdout == ""
