"""What is written is what is read, in every format that can hold it."""

from __future__ import annotations

import codecs
import csv
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from eyespot.runs import read_qrels, read_run, trec, write_qrels, write_run
from eyespot.storage.tables import escape_cell, rows_of, write_csv
from eyespot.types import IdColumn, Qrels, Run, UsageError
from tests.wording import raises
from tests.worlds.runs import judgements, plain, rankings, run_of


@pytest.mark.parametrize("name", ["run.trec", "run.txt.gz", "run.json", "run.json.gz", "run.parquet"])
@given(rankings)
def test_a_run_comes_back(name: str, drawn: dict[str, dict[str, float]]) -> None:
    run = run_of(drawn)
    with tempfile.TemporaryDirectory() as folder:
        write_run(run, Path(folder, name))
        assert plain(read_run(Path(folder, name))) == plain(run)


@pytest.mark.parametrize("name", ["qrels.txt", "qrels.json", "qrels.json.gz", "qrels.parquet"])
@given(judgements)
def test_judgements_come_back(name: str, drawn: dict[str, dict[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_qrels(Qrels(drawn), Path(folder, name))
        assert read_qrels(Path(folder, name)).grades == drawn


@given(rankings)
def test_an_npz_of_the_best_comes_back(drawn: dict[str, dict[str, float]]) -> None:
    least = min(map(len, drawn.values()), default=0)
    run = run_of({query: dict(list(images.items())[:least]) for query, images in drawn.items()})
    with tempfile.TemporaryDirectory() as folder:
        write_run(run, Path(folder, "run.npz"))
        assert plain(read_run(Path(folder, "run.npz"))) == plain(run)


def test_parquet_keeps_how_the_run_was_made_and_queries_without_hits(tmp_path: Path) -> None:
    run = Run({"b": [], "a": [("x y", 0.5)], "c": []})
    run.header, run.notes = {"encoder": "starter", "depth": 10}, ["exact"]
    write_run(run, tmp_path / "run.parquet")
    back = read_run(tmp_path / "run.parquet")
    assert (back.queries, back.notes) == (["b", "a", "c"], ["exact"])
    assert back.header == {"source": str(tmp_path / "run.parquet"), "encoder": "starter", "depth": 10}


@pytest.mark.parametrize("id", ["tab\there", "line\nbreak", "return\rhere", " outer", "outer ", "", "two\u2028lines"])
def test_ids_that_no_line_can_hold_are_refused_for_trec(tmp_path: Path, id: str) -> None:
    for write, rows in ((write_run, Run({"q": [(id, 1.0)]})), (write_qrels, Qrels({id: {"x": 1}}))):
        with raises(UsageError):
            write(rows, tmp_path / "rows.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_fails_to_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    write_run(Run({"q": [("x", 1.0)]}), tmp_path / "run.npz")
    with raises(UsageError):
        write_run(Run({"q": [("x", 1.0)], "p": []}), tmp_path / "run.npz")
    assert plain(read_run(tmp_path / "run.npz")) == {"q": [("x", 1.0)]}
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    with raises(UsageError):
        write_run(Run({"q": [("x", 1.0)]}), tmp_path / "nowhere" / "run.txt")


def test_columns_refuse_repeated_images_and_endless_scores() -> None:
    with raises(UsageError):
        Run.from_columns(["q", "p", "q"], ["x", "x", "x"], [1, 2, 3])
    with raises(UsageError):
        Run.from_columns(["q"], ["x"], [np.inf])
    for hits in ([("x", 2.0), ("x", 1.0)], [("x", math.nan), ("y", 1.0)], {"x": -math.inf}):
        with raises(UsageError):
            Run({"p": [("x", 1.0)], "q": hits})
    with raises(UsageError):
        Run.from_orders({"q": ["x", "y", "x"]})
    for grade in (math.nan, math.inf, 2.0**31):
        with raises(UsageError):
            Qrels({"q": {"x": grade, "y": 1}})
    with raises(UsageError):
        Qrels.from_columns(["q", "q"], ["x", "x"], [1, 0])


def test_coded_columns_may_name_queries_without_rows() -> None:
    coded = IdColumn(np.array(["a", "b", "c"], dtype=object), np.array([2, 0]))
    run = Run.from_columns(coded, ["x", "y"], [1.0, 2.0])
    assert plain(run) == {"a": [("y", 2.0)], "b": [], "c": [("x", 1.0)]}
    assert run.rank.tolist() == [1, 1]


# -- large TREC files come by columns, and say what the loop over lines says -------------------------------------


@pytest.fixture(params=["columns", "lines"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is read in one of both ways."""
    monkeypatch.setattr(trec, "LARGE", 1 if request.param == "columns" else 1 << 40)
    monkeypatch.setattr(trec, "BLOCK", 64)  # bytes: a query goes on in the next block
    return tmp_path / "file.txt"


BOTH = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(drawn=rankings)
@BOTH
def test_a_run_is_what_was_written(path: Path, drawn: dict[str, dict[str, float]]) -> None:
    run = run_of(drawn)
    write_run(run, path)

    assert plain(read_run(path)) == plain(run)


@given(judged=judgements)
@BOTH
def test_judgements_are_what_was_written(path: Path, judged: dict[str, dict[str, int]]) -> None:
    write_qrels(Qrels(judged), path)

    assert read_qrels(path).grades == judged


@pytest.mark.parametrize(
    ("text", "ranked"),
    [
        (b"q Q0 a 1 1 t\r\nq Q0 b 2 3 t\r\n\r\nq Q0 c 3 1.0 t\nq Q0 d 4 3 t", {"q": ["b", "d", "a", "c"]}),
        (codecs.BOM_UTF8 + b"heron Q0 a 1 2 t\nheron Q0 b 2 1 t\n", {"heron": ["a", "b"]}),
        (b"q Q0 a 1 2 t\np Q0 a 1 1 t\nq Q0 b 2 1 t\n", {"q": ["a", "b"], "p": ["a"]}),
        (b"q Q0 a 1 2 t\nq Q0 my b 2 1 t\n", {"q": ["a", "my b"]}),
        (b"q Q0 a 1 2 t\nq\tQ0\tb\t2\t1\tt\n", {"q": ["a", "b"]}),
        (b"q\tQ0\ta\t1\t2\tt\nq Q0 b 2 1 t\n", {"q": ["a", "b"]}),
        (b"q Q0  a 1 2 t\nq Q0 b 2 1 t\n", {"q": ["a", "b"]}),
        (b"q\tQ0\ta \t1\t 2 \tt\n", {"q": ["a"]}),
        (b'q Q0 "a 1 2 t\nq Q0 NA 2 1 t\n', {"q": ['"a', "NA"]}),
        (b"q Q0 a 1 0." + b"1" * 500 + b" t\n", {"q": ["a"]}),
        (b"q a 1 2 t\n", {"q": ["a"]}),
        (b"  q   Q0 a 1 2 t  \n \nq Q0 b 2 1 t\n", {"q": ["a", "b"]}),
        (b"q Q0 a 1 +2\nq q0 b 2 1e0\n", {"q": ["a", "b"]}),
        (b"q a 1 2\nq\tb\t2\t1\n", {"q": ["a", "b"]}),
    ],
)
def test_both_ways_read_a_file_alike(path: Path, text: bytes, ranked: dict[str, list[str]]) -> None:
    path.write_bytes(text)

    assert {query: [image for image, _ in hits] for query, hits in plain(read_run(path)).items()} == ranked


@pytest.mark.parametrize("score", ["0.1", "-3.25", "1e-05", "9.5367431640625e-07", repr(2 / 3), "1.", ".5", "+7"])
def test_a_score_is_read_to_its_last_bit(path: Path, score: str) -> None:
    path.write_text(f"q Q0 a 1 {score} t\n")

    assert read_run(path).score.tolist() == [float(score)]


@pytest.mark.parametrize(
    "text",
    [
        b"q Q0 a 1 2 t\nq Q0 2 t\n",
        b"q Q0 a 1 2 t\nq Q0 a 2 1 t\n",
        b"q Q0 a 1 2 t\nq Q0 b  1 t\n",
        b"q Q0 a 1 nan t\n",
        b"q Q0 a 1 1_0 t\n",
        b"q Q0 a 1 0x10 t\n",
        b"q Q0 \xff 1 2 t\n",
    ],
)
def test_both_ways_refuse_a_file_with_the_same_sentence(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    with raises(UsageError):
        read_run(path)


@pytest.mark.parametrize("grade", ["nan", "3000000000", "x"])
def test_a_grade_is_a_number(path: Path, grade: str) -> None:
    path.write_text(f"q 0 a {grade}\n")
    with raises(UsageError):
        read_qrels(path)


FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TEXTS = st.text(st.sampled_from("'=+-@＝＠ab \t\n,\";é"), max_size=6)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_a_table_comes_back_but_for_outer_spaces(pairs: list[tuple[str, str]]) -> None:
    rows = [("id", text.strip(), other.strip()) for text, other in pairs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_csv(path, [("id", "=text", "other"), *rows])

        assert [tuple(row.values()) for _, row in rows_of(path)] == rows
        with path.open(newline="", encoding="utf-8") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
    assert [cell for cell in cells if cell.startswith(FORMULAS)] == []


def test_numbers_stay_numbers_and_tabbed_files_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\ttext\n1\t'=x\n")

    assert (escape_cell(-1.5), escape_cell(None)) == (-1.5, None)
    assert [row for _, row in rows_of(tmp_path / "a.tsv")] == [{"id": "1", "text": "'=x"}]
