"""`eyespot compare`: two runs and their judgements to differences, tests and a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.command import run_eyespot


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    """By RR: q1 rises from 1/2 to 1, q2 falls from 1 to 0, q3 stays at 1."""
    qrels, first, second = (tmp_path / name for name in ("qrels.txt", "first.txt", "second.txt"))
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq3 0 a 1\n")
    first.write_text("q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 a 1 0.7 t\nq3 Q0 a 1 0.7 t\n")
    second.write_text("q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.8 t\nq2 Q0 c 1 0.7 t\nq3 Q0 a 1 0.7 t\n")
    return qrels, first, second


def compare(files: tuple[Path, Path, Path], *words: object, **more: Any) -> Any:
    return run_eyespot("compare", files[1], files[2], "--qrels", files[0], *words, **more)


def test_json_holds_every_test_and_the_queries_that_moved(files: tuple[Path, Path, Path]) -> None:
    shown = compare(files, "-m", "RR", "-m", "Hit@1", "--per-query", "--json")

    report = json.loads(shown.stdout)
    rr, hit = report["comparisons"]

    assert shown.returncode == 0
    assert (report["baseline"], report["samples"], report["seed"], report["correction"]) == (
        "first.txt",
        10000,
        0,
        "holm",
    )
    assert report["measures"]["Hit@1"]["cutoff"] == 1
    assert (rr["run"], rr["measure"], rr["queries"]) == ("second.txt", "RR", 3)
    assert rr["baseline"] == pytest.approx(5 / 6) and rr["mean"] == pytest.approx(2 / 3)
    assert rr["difference"] == pytest.approx(-1 / 6) and rr["interval"] == pytest.approx([-1, 0.5])
    assert (rr["p"], rr["exact"], rr["corrected_p"]) == (1, True, 1)
    assert [(each["wins"], each["losses"], each["ties"]) for each in (rr, hit)] == [(1, 1, 1), (1, 1, 1)]
    assert rr["up"] == [{"query": "q1", "baseline": 0.5, "value": 1.0, "difference": 0.5}]
    assert [move["query"] for move in rr["down"]] == ["q2"]
    assert hit["per_query"]["q1"] == {"baseline": 0.0, "value": 1.0, "difference": 1.0}


def test_lines_hold_a_table_and_the_moves_of_the_first_measure(files: tuple[Path, Path, Path]) -> None:
    table, _, moves = compare(files, "-m", "RR", "-m", "Hit@1").stdout.partition("\n\n")

    head, rr, hit = table.splitlines()
    assert head.split()[:4] == ["measure", "run", "baseline", "mean"]
    assert rr.split()[:5] == ["RR", "second.txt", "0.8333", "0.6667", "-0.1667"] and hit.split()[0] == "Hit@1"
    assert moves.splitlines() == [
        "RR\tsecond.txt\tq2\t1.000000\t0.000000\t-1.000000",
        "RR\tsecond.txt\tq1\t0.500000\t1.000000\t+0.500000",
    ]


def test_per_query_prints_all_queries_by_all_measures(files: tuple[Path, Path, Path]) -> None:
    moves = compare(files, "-m", "RR", "-m", "Hit@1", "--per-query").stdout.partition("\n\n")[2]

    assert [tuple(line.split("\t")[::2][:2]) for line in moves.splitlines()] == [
        (measure, query) for measure in ("RR", "Hit@1") for query in ("q1", "q2", "q3")
    ]


def test_a_third_run_is_compared_with_the_first_and_makes_more_tests(files: tuple[Path, Path, Path]) -> None:
    shown = run_eyespot("compare", files[1], files[2], files[1], "--qrels", files[0], "-m", "RR", "--json")

    report = json.loads(shown.stdout)
    assert [each["run"] for each in report["comparisons"]] == ["second.txt", "first.txt (2)"]
    assert report["comparisons"][1]["p"] == 1 and report["comparisons"][1]["wins"] == 0


def test_runs_of_one_file_name_are_told_by_their_paths(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = files[2].rename(tmp_path / "b" / "first.txt")

    report = json.loads(compare((files[0], files[1], other), "-m", "RR", "--json").stdout)

    assert [report["baseline"], report["comparisons"][0]["run"]] == [str(files[1]), str(other)]


def test_missing_queries_and_weak_tests_are_noted_on_stderr(files: tuple[Path, Path, Path]) -> None:
    files[2].write_text("q1 Q0 a 1 0.9 t\nq3 Q0 a 1 0.9 t\n")

    shown = compare(files, "--preset", "trec")

    assert "second.txt: 1 of 3 judged queries missing from the run; they are left out" in shown.stderr
    assert "second.txt: compared on the 2 queries that first.txt has values for, too" in shown.stderr
    assert "which cannot give a p below 1" in shown.stderr


def test_the_page_shows_pictures_of_a_folder_and_says_what_it_lacks(
    files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(tmp_path / "photos" / "a.png")
    (tmp_path / "queries.csv").write_text("id,text\nq1,a red door\n")
    words = ("--images", tmp_path / "photos", "--queries", tmp_path / "queries.csv", "--html", tmp_path / "page.html")

    shown = compare(files, "-m", "RR", *words, cwd=tmp_path)
    page = (tmp_path / "page.html").read_text()

    assert shown.returncode == 0 and "2 of the page's 3 images were not found" in shown.stderr
    assert "second.txt against first.txt" in page and "a red door" in page
    assert page.index(">q2<") < page.index("a red door")  # losses first
    assert page.count("data:image/jpeg") == 3  # `a`: in both runs of q1 and the first of q2


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("--correction", "sidak"), 2, "holm, bonferroni, none"),
        (("--html", "page.html", "-g", "none"), 2, "none"),
        (("--queries", "none.csv", "--html", "page.html"), 2, "there is no file none.csv"),
    ],
)
def test_errors_are_one_sentence(
    files: tuple[Path, Path, Path], tmp_path: Path, words: tuple[str, ...], code: int, part: str
) -> None:
    shown = compare(files, *words, cwd=tmp_path)

    assert shown.returncode == code and part in shown.stderr and "Traceback" not in shown.stderr
    assert shown.stdout == "" and not (tmp_path / "page.html").exists()


def test_one_run_is_not_enough(files: tuple[Path, Path, Path]) -> None:
    shown = run_eyespot("compare", files[1], "--qrels", files[0])

    assert shown.returncode == 2 and "two runs or more" in shown.stderr


def test_a_damaged_run_is_named(files: tuple[Path, Path, Path]) -> None:
    files[2].write_text("q1 Q0\n")

    shown = compare(files)

    assert shown.returncode == 2 and "second.txt, line 1" in shown.stderr and shown.stdout == ""


def test_a_run_of_other_queries_finds_nothing(files: tuple[Path, Path, Path]) -> None:
    files[2].write_text("Q1 Q0 a 1 0.8 t\n")

    shown = compare(files)

    assert shown.returncode == 4 and "second.txt ranks none of the judged queries" in shown.stderr


def test_the_page_links_into_a_running_one(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("id,text\nq1,a red door\n")
    words = ("-m", "RR", "--queries", tmp_path / "queries.csv", "--html", tmp_path / "page.html")

    assert compare(files, *words, "--page", "http://127.0.0.1:8000", cwd=tmp_path).returncode == 0
    assert 'href="http://127.0.0.1:8000/?q=a+red+door"' in (tmp_path / "page.html").read_text()
    assert "is the address of a running eyespot serve" in compare(files, *words, "--page", "here", cwd=tmp_path).stderr
