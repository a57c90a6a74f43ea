"""`eyespot metrics`: qrels and a run to numbers with their definition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import run_eyespot
from tests.lazy_import import requires


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 c 1\n")
    run.write_text("q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.8 t\nq2 Q0 a 1 0.7 t\n")
    return qrels, run


def test_json_is_as_the_contract_has_it(files: tuple[Path, Path]) -> None:
    words = ("-m", "AP@50", "-m", "RR", "--norm", "min-k", "--ties", "average", "--per-query", "--json")
    shown = run_eyespot("metrics", *files, *words)

    report = json.loads(shown.stdout)

    assert shown.returncode == 0 and shown.stderr == ""
    assert report["measures"]["AP@50"]["mean"] == pytest.approx(0.5)
    assert (
        report["measures"]["AP@50"]["definition"] | {"norm": "min-k", "ties": "average", "cutoff": 50}
        == (report["measures"]["AP@50"]["definition"])
    )
    assert report["queries"] == {"q1": {"AP@50": 0.5, "RR": 0.5}, "q2": {"AP@50": 0.5, "RR": 1.0}}


def test_lines_say_mean_interval_and_definition(files: tuple[Path, Path]) -> None:
    lines = run_eyespot("metrics", *files, "--preset", "inquire").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["AP@50", "nDCG@50", "RR@50"]
    assert lines[0].split()[1] == "0.5000" and "norm=min-k" in lines[0] and "ties=average" in lines[0]


def test_without_measures_the_usual_ones_and_mteb_keys(files: tuple[Path, Path]) -> None:
    report = json.loads(run_eyespot("metrics", *files, "--json", "--keys", "mteb").stdout)

    assert list(report["measures"]) == ["map_at_50", "ndcg_at_50", "mrr", "recall_at_20"]
    assert "queries" not in report


def test_queries_without_results_are_noted_on_stderr(files: tuple[Path, Path]) -> None:
    qrels, run = files
    run.write_text("q1 Q0 a 1 0.8 t\n")

    shown = run_eyespot("metrics", qrels, run, "-m", "RR")

    assert shown.stdout.split()[:2] == ["RR", "0.5000"]
    assert "1 of 2 judged queries missing from the run" in shown.stderr


def test_the_list_names_every_measure_and_preset(tmp_path: Path) -> None:
    lines = run_eyespot("metrics", "list", cwd=tmp_path).stdout.splitlines()
    report = json.loads(run_eyespot("metrics", "list", "--json", cwd=tmp_path).stdout)

    assert [line.split()[1] for line in lines] == [*report["measures"], *report["ir-measures"], *report["presets"]]
    assert {"AP", "Hit", "mAP@R"} <= set(report["measures"]) and {"inquire", "circo"} <= set(report["presets"])


@requires("ir_measures")
def test_measures_of_others_come_with_their_program(files: tuple[Path, Path]) -> None:
    """q1 has one judged other before its relevant image, q2 none, and one relevant image that is not found."""
    shown = run_eyespot("metrics", *files, "-m", "Bpref", "-m", "RR")
    (bpref, rr) = shown.stdout.splitlines()

    assert bpref.split()[:2] == ["Bpref", "0.2500"] and "program='ir-measures" in bpref and "program" not in rr


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("-m", "Foo@3"), 2, "no measure 'Foo'"),
        (("--preset", "foo"), 2, "no preset 'foo'"),
        (("--preset", "inquire", "--norm", "all"), 2, "--norm"),
        (("--keys", "foo", "--json"), 2, "keys"),
        (("--norm", "foo"), 2, "norm of AP"),
    ],
)
def test_errors_are_one_sentence(files: tuple[Path, Path], words: tuple[str, ...], code: int, part: str) -> None:
    shown = run_eyespot("metrics", *files, *words)

    assert shown.returncode == code and part in shown.stderr and "Traceback" not in shown.stderr
    assert shown.stdout == ""


def test_a_run_of_other_queries_finds_nothing(files: tuple[Path, Path]) -> None:
    files[1].write_text("Q1 Q0 a 1 0.8 t\n")

    shown = run_eyespot("metrics", *files)

    assert shown.returncode == 4 and "name queries alike" in shown.stderr


def test_a_missing_run_is_a_usage_error(files: tuple[Path, Path]) -> None:
    shown = run_eyespot("metrics", files[0])

    assert shown.returncode == 2 and "eyespot metrics QRELS RUN" in shown.stderr
