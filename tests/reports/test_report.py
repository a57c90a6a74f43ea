"""A report folder holds what was measured, the same bytes each time, also where figures cannot be drawn."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from eyespot.benchmarks import Around, Evaluation, Printed
from eyespot.benchmarks.rmir import ByKind
from eyespot.extras import install_line
from eyespot.reports.drawing import ReportFigure, Summary, figures_of, map_of
from eyespot.reports.folder import write
from eyespot.reports.page import Pictured, page_of
from eyespot.reports.summary import read_summary, summary_of
from eyespot.runs import read_run
from eyespot.types import UsageError
from tests.pages import ROOT
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


# -- the folder -------------------------------------------------------------------------------------------------


def test_everything_is_written(tmp_path: Path) -> None:
    files = write(evaluation(), tmp_path / "new" / "report")

    assert {path.name for path in files} >= FILES
    assert set(files) == {path for path in (tmp_path / "new" / "report").rglob("*") if path.is_file()}


def test_the_same_evaluation_gives_the_same_bytes_but_for_when(tmp_path: Path) -> None:
    write(evaluation(made={"when": "noon"}), tmp_path / "one")
    write(evaluation(made={"when": "dusk"}), tmp_path / "two")
    first, second = contents(tmp_path / "one"), contents(tmp_path / "two")

    assert {name for name in first if first[name] != second[name]} == {"summary.json", "report.html"}
    assert first["report.html"].replace(b"noon", b"dusk") == second["report.html"]
    assert first["summary.json"].replace(b"noon", b"dusk") == second["summary.json"]


def test_a_report_may_be_written_over(tmp_path: Path) -> None:
    write(evaluation(), tmp_path)
    before = contents(tmp_path)

    write(evaluation(), tmp_path)

    assert contents(tmp_path) == before


def test_a_folder_with_other_things_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("my own")

    with pytest.raises(UsageError, match="holds other things; name a new folder with --out"):
        write(evaluation(), tmp_path)

    assert contents(tmp_path) == {"thesis.tex": b"my own"}


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("")

    with pytest.raises(UsageError, match="is a file; name a folder"):
        write(evaluation(), tmp_path / "report")


def test_values_of_queries_are_the_scores(tmp_path: Path) -> None:
    write(evaluation(), tmp_path)

    rows = pq.read_table(tmp_path / "per_query.parquet").to_pylist()

    assert [(row["task"], row["query"], row["text"], row["RR"], row["Hit@1"]) for row in rows] == [
        ("t2i", "q1", "find q1", 1.0, 1.0),
        ("t2i", "q2", "find q2", 0.5, 0.0),
        ("t2i", "q3", "find q3", 0.25, 0.0),
        ("t2i", "q4", "find q4", 0.0, 0.0),
    ]


def test_the_run_can_be_scored_again(tmp_path: Path) -> None:
    write(evaluation(), tmp_path)

    assert [hit.image for hit in read_run(tmp_path / "run.parquet")["q3"]] == ["b", "c", "d", "a"]


def test_each_task_has_its_run(tmp_path: Path) -> None:
    write(evaluation(tasks=[task("t2i"), replace(task("i2t"), rules=task().rules)]), tmp_path)

    assert (tmp_path / "run-t2i.parquet").exists() and not (tmp_path / "run.parquet").exists()


def test_the_summary_is_json_without_nan(tmp_path: Path) -> None:
    made = evaluation(made={"loss": float("nan"), "most": [float("inf")]})

    write(made, tmp_path)
    text = (tmp_path / "summary.json").read_text()

    found = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert (found["made"], found["tasks"][0]["measures"]["RR"]["mean"]) == ({"loss": None, "most": [None]}, 0.4375)


def test_the_summary_has_published_numbers_with_ours() -> None:
    (first, *_) = summary_of(evaluation())["tasks"][0]["published"]

    assert (first["method"], first["value"], first["measured"]) == ("CLIP", 0.342, 0.25)
    assert first["difference"] == pytest.approx(-0.092)


def test_a_summary_is_read_back(tmp_path: Path) -> None:
    write(evaluation(), tmp_path)

    assert read_summary(tmp_path)["system"] == "ours"


@pytest.mark.parametrize("text", ["{", "[]", '{"benchmark": 1}', "\xff"])
def test_what_is_no_summary_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "summary.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(UsageError, match="is no summary of eyespot eval"):
        read_summary(tmp_path)


# -- other systems ----------------------------------------------------------------------------------------------


def test_both_systems_are_drawn(tmp_path: Path) -> None:
    one = drawn(evaluation(), [summary_of(evaluation(POOR, "theirs"))])["by-category"]

    assert {"ours", "theirs"} <= set(texts(one))


def test_two_systems_of_one_name_stay_two(tmp_path: Path) -> None:
    write(evaluation(), tmp_path, [summary_of(evaluation(POOR)), summary_of(evaluation(POOR))])

    text = (tmp_path / "tables.md").read_text()
    names = re.findall(r"^\| (ours[^|]*?) \(measured\) \|", text, re.M)
    assert names == ["ours", "ours (2)", "ours (3)"]


def test_a_report_on_other_queries_cannot_stand_beside(tmp_path: Path) -> None:
    other = {**summary_of(evaluation()), "split": "val"}

    with pytest.raises(UsageError, match="a report on heron val cannot stand beside one on heron test"):
        write(evaluation(), tmp_path / "out", [other])

    assert not (tmp_path / "out").exists()


# -- figures ----------------------------------------------------------------------------------------------------


def test_a_breakdown_is_drawn_in_percent_with_what_papers_print() -> None:
    printed = [Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.3, column="category", group="Causal")]

    words = texts(drawn(evaluation(printed=printed))["by-category"])

    assert {"Hit@1, percent", "CLIP (published)", "n = 3"} <= set(words)


def test_a_published_number_that_is_not_compared_is_not_drawn() -> None:
    about = {"column": "category", "group": "causal"}
    printed = [
        Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.3, **about),
        Printed(PAPER, "GPT", "t2i", "Hit@1", 0.4, **about, wording="inquire"),
    ]
    made = evaluation(printed=printed)
    made.results[0].run.header["judge"] = "openai:gpt-4o"

    words = texts(drawn(made)["by-category"])

    assert "CLIP (published)" in words and "GPT (published)" not in words


@pytest.mark.long
def test_of_many_published_methods_the_best_are_drawn_and_the_rest_counted() -> None:
    printed = [
        Printed(PAPER, f"model {number}", "t2i", "Hit@1", number / 10, column="category", group="causal")
        for number in range(1, 9)
    ]

    one = drawn(evaluation(printed=printed))["by-category"]

    assert "Of 8 published methods the best 5 are drawn." in one.caption
    assert [f"model {number} (published)" in texts(one) for number in (3, 4, 8)] == [False, True, True]


def test_a_published_method_called_like_ours_stays_apart() -> None:
    printed = [Printed(PAPER, "ours", "t2i", "Hit@1", 0.3, column="category", group="causal")]

    assert f"ours, {PAPER} (published)" in texts(drawn(evaluation(printed=printed))["by-category"])


def test_sub_tasks_are_drawn_both_ways() -> None:
    both = [task("i2t", "subtask"), task("t2i", "subtask")]

    figures = drawn(evaluation(tasks=both, printed=[]))

    assert {"subtasks-Hit-1", "subtasks-RR"} <= set(figures)
    assert {"image → text", "text → image", "functional"} <= set(texts(figures["subtasks-Hit-1"]))


def test_sub_tasks_of_one_way_are_drawn_alone() -> None:
    figures = drawn(evaluation(tasks=[task("t2i", "subtask")], printed=[]))

    assert "image → text" not in texts(figures["subtasks-RR"])


def test_kinds_are_drawn_with_both_means() -> None:
    printed = [
        Printed(PAPER, "CLIP", "it2i", "Hit@1", 0.3, column="kind", group="functional"),
        Printed(PAPER, "CLIP", "it2i", "Hit@1", 0.1, column="kind", group="causal"),
        Printed(PAPER, "CLIP", "it2i", "Hit@1", 0.25),
    ]
    kinds = replace(task("it2i", "kind"), by=(ByKind(),))

    words = texts(drawn(evaluation(tasks=[kinds], printed=printed))["by-kind"])

    assert {"mean over queries", "mean over kinds", "functional", "CLIP (published)", "Hit@1"} <= set(words)


def test_two_systems_that_were_timed_are_drawn_by_time() -> None:
    other = summary_of(timed(evaluation(POOR, "theirs"), 0.2))

    figures = drawn(timed(evaluation(), 0.1), [other])

    assert {"ours", "theirs"} <= set(texts(figures["time"]))


def test_one_system_alone_has_no_figure_of_time() -> None:
    assert "time" not in drawn(timed(evaluation(), 0.1))


def test_a_map_has_the_query_and_its_images() -> None:
    pytest.importorskip("sklearn")
    vectors = np.eye(8, dtype=np.float32)
    around = Around(np.arange(8) < 2, vectors, vectors[0])

    one = map_of("a/heron", around)

    assert (one.name, "relevant images (2)" in texts(one)) == ("map-a-heron", True)


def test_a_map_that_cannot_be_drawn_costs_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    def unknown() -> Iterator[ReportFigure]:
        raise UsageError("there is no query 'heron'")
        yield

    with pytest.raises(UsageError, match="there is no query 'heron'; all else is in"):
        write(evaluation(), tmp_path, more=unknown)

    assert (tmp_path / "figures" / "by-category.svg").exists() and (tmp_path / "summary.json").exists()


WITHOUT = """
from pathlib import Path
from eyespot.reports.folder import write
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


# -- the page ---------------------------------------------------------------------------------------------------


def test_the_page_goes_from_results_to_how_they_were_made() -> None:
    html = page_of(evaluation(), Pictured([("A caption.", "<svg></svg>")]))

    assert re.findall(r"<h2>(.*?)</h2>", html) == [
        "Results",
        "Figures",
        "Beside other systems and papers",
        "Broken down",
        "How these numbers were made",
    ]


def test_breakdowns_are_folded() -> None:
    html = page_of(evaluation(), Pictured())

    assert '<details><summary dir="auto">Heron, by category <small>(2 rows)</small></summary>' in html


def test_numbers_stand_to_the_right_and_what_is_behind_them_apart() -> None:
    html = page_of(evaluation(), Pictured())

    assert '<td class="n">34.2</td><td class="behind">(−9.2)</td>' in html
    assert '<tr class="measured"><td dir="auto">ours (measured)</td><td class="n">25.0</td>' in html


def test_what_users_name_cannot_become_a_tag() -> None:
    html = page_of(evaluation(system="<script>alert(1)</script>"), Pictured([("<b>", "<svg></svg>")]))

    assert "<script" not in html and "<b>" not in html


def test_the_page_needs_nothing_beside_it() -> None:
    html = page_of(evaluation(), Pictured())

    assert not re.search(r"<(?:link|script|img|iframe)\b|url\(|@import", html)
