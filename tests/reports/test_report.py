"""A report folder holds what was measured, the same bytes each time, also where figures cannot be drawn."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from eyespot.benchmarks import Evaluation, Printed, Task, scored
from eyespot.extras import install_line
from eyespot.metrics import parse
from eyespot.reports.drawing import ReportFigure, figures_of
from eyespot.reports.folder import Pictured, page_of, write
from eyespot.reports.summary import Summary, read_summary, summary_of
from eyespot.reports.tables import (
    ReportTable,
    as_latex,
    as_markdown,
    as_text,
    breakdowns_of,
    comparisons_of,
    format_mean,
    halves,
    numeric,
    results_of,
    tables_of,
)
from eyespot.runs import read_run
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, RankedImage, Run, UsageError
from tests.pages import ROOT, blocks, run_code, run_page
from tests.wording import raises
from tests.worlds.benchmarks import PAPER, POOR, evaluation, heron, task, timed

FILES = {"run.parquet", "per_query.parquet", "tables.md", "tables.tex", "report.html", "summary.json"}


def drawn(made: Evaluation, beside: Sequence[Summary] = ()) -> dict[str, ReportFigure]:
    pytest.importorskip("matplotlib")
    return {one.name: one for one in figures_of(made, [summary_of(made), *beside])}


def texts(one: ReportFigure) -> list[str]:
    from eyespot.reports.figures.sheet import as_svg

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


@pytest.mark.usefixtures("without_figures")
def test_each_task_has_its_run(tmp_path: Path) -> None:
    write(evaluation(tasks=[task("t2i"), replace(task("i2t"), rules=task().rules)]), tmp_path)

    assert (tmp_path / "run-t2i.parquet").exists() and not (tmp_path / "run.parquet").exists()


@pytest.mark.usefixtures("without_figures")
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


@pytest.mark.usefixtures("without_figures")
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
    counted = texts(figures["subtasks"])  # pictures, of which several captions are one
    assert {"sub-tasks: 4 pictures", "3 (75%)", "1 (25%)"} <= set(counted)
    for facts in both[1].judged.queries.values():
        facts["image"] = facts["subtask"]
    assert "sub-tasks: 2 pictures" in texts(drawn(evaluation(tasks=both[1:], printed=[]))["subtasks"])
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
from tests.worlds.benchmarks import evaluation
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


# -- tables say what was measured, what papers print, and how far apart they are, in three ways of writing --------


ODD = r"a&b%c_d#e$f~g^h\i{j}k|l"
TABLE = ReportTable(
    "Birds", ("method", "AP", "said"), [["heron", "9.5 (+1.0)", "yes"], ["wasp", "10.25", "no"]], "Percent."
)


def cell(table: ReportTable, row: str, column: str) -> str:
    (found,) = (each for each in table.rows if each[0] == row)
    return found[list(table.columns).index(column)]


def named(tables: list[ReportTable], title: str) -> ReportTable:
    (found,) = (table for table in tables if table.title == title)
    return found


@pytest.mark.parametrize(
    ("label", "value", "text"),
    [("AP@50", 0.12345, "12.35"), ("RR@50", 0.12345, "0.123"), ("Rprec", 1.0, "100.00"), ("AP", math.nan, "–")],
)
def test_means_are_shown_as_papers_print_them(label: str, value: float, text: str) -> None:
    assert format_mean(label, value) == text
    rows = results_of(evaluation()).rows
    assert [(row[1], row[2], row[5]) for row in rows] == [("Hit@1", "25.00", "4"), ("RR", "0.438", "4")]


@pytest.mark.parametrize(("size", "chance"), [(8, "12.50"), (1_000_000, "0.0001")])
def test_chance_is_that_of_one_relevant_image_in_the_pool_and_no_zero(size: int, chance: str) -> None:
    assert results_of(evaluation(tasks=[task(size=size)])).rows[0][4] == chance


def test_the_most_that_a_measure_can_be_is_said_where_it_is_not_all() -> None:
    """Four relevant images and two places: R@2 is at most a half; one for ten places: P@10 is at most a tenth."""
    queries: dict[str, dict[str, object]] = {"q1": {"text": "birds"}, "q2": {"text": "a bird"}}
    judged = JudgedQueries(queries, Qrels({"q1": dict.fromkeys("abcd", 1), "q2": {"a": 1, "z": 0}}))
    made = evaluation(tasks=[Task("t2i", judged, [parse("R@2"), parse("P@10"), parse("RR")])])

    (recall, precision, rank) = (row[6] for row in results_of(made).rows)

    assert (recall[-13:], precision[-13:]) == ("at most 75.00", "at most 25.00") and "at most" not in rank
    assert "first 10 hits of a query: 62%" in page_of(made, Pictured())  # four of four, and one of four


def test_measured_minus_published_by_hand() -> None:
    table = named(comparisons_of(evaluation()), f"Heron, beside {PAPER}")

    assert cell(table, "CLIP", "Hit@1") == "34.2 (−9.2)"  # 25 is measured
    assert cell(table, "CLIP", "RR") == "0.47 (−0.03)"  # 0.4375 is measured
    assert cell(table, "BLIP", "RR") == "–"
    assert cell(table, "ours (measured)", "Hit@1") == "25.0"


@pytest.mark.parametrize(("value", "shown"), [(0.3446, "34.46 (−9.46)"), (0.25, "25.0 (0.0)"), (0.242, "24.2 (+0.8)")])
def test_differences_have_a_sign_and_as_many_digits_as_the_paper(value: float, shown: str) -> None:
    table = comparisons_of(evaluation(printed=[Printed(PAPER, "CLIP", "t2i", "Hit@1", value)]))[0]

    assert cell(table, "CLIP", "Hit@1") == shown


def test_what_the_data_do_not_say_is_not_available() -> None:
    printed = [
        Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.3, column="category", group="Causal"),
        Printed(PAPER, "CLIP", "t2i", "Hit@1", 0.2, column="lingo", group="yes"),
    ]

    table = named(comparisons_of(evaluation(printed=printed)), f"Heron, Hit@1 by category and lingo, beside {PAPER}")

    assert cell(table, "CLIP", "Causal") == "30.0 (−30.0)"
    assert (cell(table, "ours (measured)", "lingo: yes"), cell(table, "CLIP", "lingo: yes")) == ("–", "20.0")
    assert "lingo: yes" in table.note
    assert comparisons_of(evaluation(printed=printed[1:])) == []  # no query has such a group


def test_a_breakdown_has_a_row_for_each_group() -> None:
    table = named(breakdowns_of(evaluation()), "Heron, by category")

    assert [row[:2] for row in table.rows] == [["causal", "1"], ["functional", "3"]]
    assert cell(table, "causal", "Hit@1") == "0.00"  # one query has no interval
    assert cell(table, "functional", "Hit@1").startswith("33.33 [")


def test_systems_stand_side_by_side_ours_first() -> None:
    others = [summary_of(evaluation(POOR, "theirs"))]

    tables = comparisons_of(evaluation(), others)

    assert [row[0] for row in named(tables, "Heron, side by side").rows] == ["ours", "theirs"]
    beside = named(tables, f"Heron, beside {PAPER}")
    assert [row[0] for row in beside.rows] == ["ours (measured)", "theirs (measured)", "CLIP", "BLIP"]
    assert cell(beside, "theirs (measured)", "Hit@1") == "0.0"
    others[0]["tasks"][0]["published"] = []  # as the rule of `beside` leaves it where other images were ranked
    beside = named(comparisons_of(evaluation(), others), f"Heron, beside {PAPER}")
    assert [row[0] for row in beside.rows] == ["ours (measured)", "CLIP", "BLIP"]


DEFINITIONS = ("AP@2", "AP(norm='min-k')@2", "AP(norm='min-k', ties='average')@2", "RR@2", "RR(ties='average')@2")
ASKED = [combination for count in (1, 2) for combination in combinations(DEFINITIONS, count)]
TIED = {"q1": "bacd", "q2": "abcd", "q3": "bcd", "q4": "bad"}


def measured(asked: Sequence[str], system: str, images: Sequence[str] = "acd") -> Evaluation:
    """A system's evaluation by the measures that were asked for, where these images are relevant."""
    level = {"b": 0.0, "a": 0.0, "c": -1.0, "d": -2.0}  # b and a are equal
    run = Run({query: [RankedImage(image, level[image]) for image in order] for query, order in TIED.items()})
    judged = JudgedQueries({query: {} for query in TIED}, Qrels({query: dict.fromkeys(images, 1) for query in TIED}))
    made = scored(Task("t2i", judged, [parse(spelling) for spelling in asked]), run)
    return Evaluation(heron(()), "test", system, [made])


@pytest.mark.parametrize("ours", ASKED, ids=range(len(ASKED)))
def test_systems_are_joined_by_definition_and_judgements_whatever_else_was_measured(ours: tuple[str, ...]) -> None:
    """All pairs of what was asked for here (`-m`) and in the reports beside: no column holds two definitions."""
    mine = measured(ours, "ours")
    means = {
        spelling: measured([spelling], "x").results[0].scores.mean(str(parse(spelling))) for spelling in DEFINITIONS
    }
    others = [json.loads(json.dumps(summary_of(measured(asked, str(at))))) for at, asked in enumerate(ASKED)]
    strangers = [summary_of(measured(ours, "strangers", images="ac"))]

    table = named(comparisons_of(mine, [*others, *strangers]), "Heron, side by side")

    assert len(set(means.values())) == len(means)
    for label, measure in mine.results[0].scores.measures.items():
        spelling = next(one for one in DEFINITIONS if parse(one) == measure)
        for at, asked in enumerate(ASKED):
            shown = format_mean(label, means[spelling]) if spelling in asked else "–"
            assert cell(table, str(at), label).split(" ")[0] == shown
    assert "strangers" not in [row[0] for row in table.rows] and "strangers was evaluated on other" in table.note


def test_several_tasks_are_told_in_titles() -> None:
    titles = [table.title for table in tables_of(evaluation(tasks=[task("t2i"), task("i2t")]))]

    assert titles[0] == "Heron, test: ours"
    assert titles[1:] == [f"Heron t2i, beside {PAPER}", "Heron t2i, by category", "Heron i2t, by category"]


def test_a_name_cannot_act_on_the_terminal_or_break_a_line() -> None:
    made = evaluation(system="red\x1b[31m\nsystem\u202e")

    assert results_of(made).title == "Heron, test: red[31m system"


def test_text_and_markdown_put_numbers_under_numbers() -> None:
    assert as_text(TABLE).splitlines() == [
        "Birds",
        "method     AP         said",
        "heron     9.5 (+1.0)  yes",
        "wasp    10.25         no",
        "Percent.",
    ]
    assert as_markdown([TABLE]).splitlines()[2:6] == [
        "| method | AP | said |",
        "| --- | ---: | --- |",
        "| heron | 9.5 (+1.0) | yes |",
        "| wasp | 10.25 | no |",
    ]


def test_markdown_keeps_pipes_stars_and_tags_as_text() -> None:
    (row,) = re.findall(r"^\| (.*) \| 1 \|$", as_markdown([ReportTable("t", ("m", "n"), [["a|b*c<d\\e", "1"]])]), re.M)

    assert row == r"a\|b\*c\<d\\e"


def test_latex_escapes_what_it_would_take_for_its_own() -> None:
    text = as_latex([ReportTable("t", ("m", "n"), [[ODD, "−1"]])])

    escaped = r"a\&b\%c\_d\#e\$f\textasciitilde{}g\textasciicircum{}h\textbackslash{}i\{j\}k\textbar{}l & $-$1 \\"
    assert escaped in text.splitlines()
    assert "\\begin{tabular}{lrl}\n\\toprule\nmethod & AP & said \\\\\n\\midrule" in as_latex([TABLE])


@pytest.mark.parametrize("name", ["[1] CLIP", "*CLIP"])
def test_a_latex_row_does_not_begin_like_an_argument(name: str) -> None:
    (row,) = (line for line in as_latex([ReportTable("t", ("m", "n"), [[name, "1"]])]).splitlines() if "CLIP" in line)

    assert row == f"{{}}{name} & 1 \\\\"


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        *((one, True) for one in ("36.21 [23.78, 49.34]", "35 of 36", "1e-06", "−0.5", "–", "24.13 to 49.43", "5,000")),
        *((one, False) for one in ("10-spheniscus", "7B", "", "norm min-k")),
    ],
)
def test_what_begins_with_a_number_is_one(cells: str, expected: bool) -> None:
    assert numeric(ReportTable("t", ("m", "n"), [["x", cells]])) == [False, expected]
    assert (halves("24.1 to 49.4"), halves("24.1 (+1.0)")) == (("24.1 to 49.4", ""), ("24.1", "(+1.0)"))


OWN, EVAL = (ROOT / "docs" / "research" / f"{name}.md" for name in ("own", "eval"))


@pytest.mark.long
@pytest.mark.usefixtures("without_figures")
def test_the_page_on_evaluation_runs_as_it_stands(tmp_path: Path) -> None:
    run_page(OWN, tmp_path, EVAL)
    printed = run_code("\n".join(blocks(EVAL, "python")), tmp_path)

    assert printed.splitlines()[-1] == "10"
    reports = {name: json.loads((tmp_path / name / "summary.json").read_text()) for name in ("starter", "again")}
    means = [one["tasks"][0]["measures"]["RR@50"]["mean"] for one in reports.values()]
    assert means[0] == means[1] > 0.5
