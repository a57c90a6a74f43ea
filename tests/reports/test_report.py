"""A report folder holds what was measured, the same bytes each time, also where figures cannot be drawn."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from eyespot.benchmarks import Evaluation, Printed
from eyespot.extras import install_line
from eyespot.reports.drawing import ReportFigure, figures_of
from eyespot.reports.folder import Pictured, page_of, write
from eyespot.reports.summary import Summary, read_summary, summary_of
from eyespot.runs import read_run
from eyespot.types import UsageError
from tests.pages import ROOT
from tests.wording import raises
from tests.worlds.evaluations import PAPER, POOR, evaluation, task, timed

FILES = {"run.parquet", "per_query.parquet", "tables.md", "tables.tex", "report.html", "summary.json"}


def drawn(made: Evaluation, beside: Sequence[Summary] = ()) -> dict[str, ReportFigure]:
    pytest.importorskip("matplotlib")
    return {one.name: one for one in figures_of(made, [summary_of(made), *beside])}


def texts(one: ReportFigure) -> list[str]:
    """Everything that is written in a figure."""
    from eyespot.reports.figures import as_svg

    return re.findall(r"<text[^>]*>([^<]+)</text>", as_svg(one.figure))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"

    files = write(evaluation(), folder)

    assert {path.name for path in files} >= FILES
    assert set(files) == {path for path in folder.rglob("*") if path.is_file()}
    rows = pq.read_table(folder / "per_query.parquet").to_pylist()
    assert [(row["task"], row["query"], row["text"], row["RR"], row["Hit@1"]) for row in rows] == [
        ("t2i", "q1", "find q1", 1.0, 1.0),
        ("t2i", "q2", "find q2", 0.5, 0.0),
        ("t2i", "q3", "find q3", 0.25, 0.0),
        ("t2i", "q4", "find q4", 0.0, 0.0),
    ]
    assert [hit.image for hit in read_run(folder / "run.parquet")["q3"]] == ["b", "c", "d", "a"]
    assert read_summary(folder)["system"] == "ours"


def test_the_same_evaluation_gives_the_same_bytes_but_for_when(tmp_path: Path) -> None:
    write(evaluation(made={"when": "noon"}), tmp_path / "one")
    write(evaluation(), tmp_path / "two")
    write(evaluation(made={"when": "dusk"}), tmp_path / "two")  # over what is there
    first, second = contents(tmp_path / "one"), contents(tmp_path / "two")

    assert {name for name in first if first[name] != second[name]} == {"summary.json", "report.html"}
    assert first["report.html"].replace(b"noon", b"dusk") == second["report.html"]
    assert first["summary.json"].replace(b"noon", b"dusk") == second["summary.json"]


def test_a_folder_with_other_things_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "thesis.tex").write_text("my own")

    for place in (tmp_path / "report", tmp_path / "report" / "thesis.tex"):
        with raises(UsageError):
            write(evaluation(), place)

    assert contents(tmp_path / "report") == {"thesis.tex": b"my own"}


def test_each_task_has_its_run(tmp_path: Path) -> None:
    write(evaluation(tasks=[task("t2i"), replace(task("i2t"), rules=task().rules)]), tmp_path)

    assert (tmp_path / "run-t2i.parquet").exists() and not (tmp_path / "run.parquet").exists()


def test_the_summary_is_json_without_nan(tmp_path: Path) -> None:
    made = evaluation(made={"loss": float("nan"), "most": [float("inf")]})

    write(made, tmp_path)
    text = (tmp_path / "summary.json").read_text()

    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert (found["made"], found["tasks"][0]["measures"]["RR"]["mean"]) == ({"loss": None, "most": [None]}, 0.4375)


@pytest.mark.parametrize("text", ["{", "[]", '{"benchmark": 1}', "\xff"])
def test_what_is_no_summary_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_bytes(text.encode("latin-1"))

    with raises(UsageError):
        read_summary(tmp_path)


def test_two_systems_of_one_name_stay_two(tmp_path: Path) -> None:
    write(evaluation(), tmp_path, [summary_of(evaluation(POOR)), summary_of(evaluation(POOR))])

    text = (tmp_path / "tables.md").read_text()
    names = re.findall(r"^\| (ours[^|]*?) \(measured\) \|", text, re.M)
    assert names == ["ours", "ours (2)", "ours (3)"]


def test_a_report_on_other_queries_cannot_stand_beside(tmp_path: Path) -> None:
    other = {**summary_of(evaluation()), "split": "val"}

    with raises(UsageError):
        write(evaluation(), tmp_path / "out", [other])

    assert not (tmp_path / "out").exists()


def test_a_breakdown_is_drawn_in_percent_with_the_published_numbers_that_are_compared() -> None:
    about = {"column": "category", "group": "causal"}
    printed = [
        Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.3, **about),
        Printed(PAPER, "GPT", "t2i", "Hit@1", 0.4, **about, wording="inquire"),
    ]
    made = evaluation(printed=printed)
    made.results[0].run.header["judge"] = "openai:gpt-4o"

    words = texts(drawn(made)["by-category"])

    assert {"Hit@1, percent", "CLIP (published)", "n = 3"} <= set(words) and "GPT (published)" not in words


def test_of_many_published_methods_the_best_are_drawn_and_one_called_like_ours_stays_apart() -> None:
    about = {"column": "category", "group": "causal"}
    printed = [
        Printed(PAPER, name, "t2i", "Hit@1", number / 10, **about)
        for number, name in enumerate(["a", "b", "c", "d", "e", "ours"], 1)
    ]

    one = drawn(evaluation(printed=printed))["by-category"]

    assert "6 published" in one.caption and "best 5" in one.caption
    expected = {"ours", f"ours, {PAPER} (published)", *(f"{name} (published)" for name in "bcde")}
    assert expected <= set(texts(one)) and "a (published)" not in texts(one)


def test_sub_tasks_are_drawn_both_ways() -> None:
    both = [task("i2t", "subtask"), task("t2i", "subtask")]

    figures = drawn(evaluation(tasks=both, printed=[]))

    assert {"subtasks-Hit-1", "subtasks-RR"} <= set(figures)
    assert {"image → text", "text → image", "functional"} <= set(texts(figures["subtasks-Hit-1"]))


def test_two_systems_that_were_timed_are_drawn_by_time() -> None:
    other = summary_of(timed(evaluation(POOR, "theirs"), 0.2))

    figures = drawn(timed(evaluation(), 0.1), [other])

    assert {"ours", "theirs"} <= set(texts(figures["time"])) & set(texts(figures["by-category"]))
    assert "time" not in drawn(timed(evaluation(), 0.1))


WITHOUT = """
from pathlib import Path
from eyespot.reports.folder import write
from tests.wording import raises
from tests.worlds.evaluations import evaluation
write(evaluation(), Path("report"))
"""


@pytest.mark.long
def test_without_matplotlib_all_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "stub").mkdir()
    missing = "raise ModuleNotFoundError(\"No module named 'matplotlib'\", name='matplotlib')\n"
    (tmp_path / "stub" / "matplotlib.py").write_text(missing)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "stub"), str(ROOT)])}

    child = subprocess.run([sys.executable, "-c", WITHOUT], cwd=tmp_path, env=env, capture_output=True, text=True)

    assert child.returncode == 0, child.stderr
    assert {path.name for path in (tmp_path / "report").rglob("*")} == FILES
    assert escape(install_line("plots")) in (tmp_path / "report" / "report.html").read_text()


def test_what_users_name_cannot_become_a_tag_and_the_page_needs_nothing_beside_it() -> None:
    html = page_of(evaluation(system="<script>alert(1)</script>"), Pictured([("<b>", "<svg></svg>")]))

    assert "<script" not in html and "<b>" not in html
    assert not re.search(r"<(?:link|script|img|iframe)\b|url\(|@import", html)
