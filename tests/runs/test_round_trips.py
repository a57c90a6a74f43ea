"""What is written is what is read, in every format that can hold it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from eyespot.runs import read_qrels, read_run, write_qrels, write_run
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


@given(rankings)
def test_columns_in_any_order_make_the_run(drawn: dict[str, dict[str, float]]) -> None:
    rows = [(query, image, score) for query, images in drawn.items() for image, score in images.items()]
    turned = rows[::-1]
    made = Run.from_columns(*zip(*turned, strict=True)) if turned else Run.from_columns([], [], [])
    expected = run_of({query: dict(reversed(images.items())) for query, images in reversed(drawn.items())})
    assert plain(made) == plain(expected)


def test_parquet_keeps_how_the_run_was_made_and_queries_without_hits(tmp_path: Path) -> None:
    run = Run.from_rankings({"b": [], "a": [("x y", 0.5)], "c": []})
    run.header, run.notes = {"encoder": "starter", "depth": 10}, ["exact"]
    write_run(run, tmp_path / "run.parquet")
    back = read_run(tmp_path / "run.parquet")
    assert (back.queries, back.notes) == (["b", "a", "c"], ["exact"])
    assert back.header == {"source": str(tmp_path / "run.parquet"), "encoder": "starter", "depth": 10}


@pytest.mark.parametrize("id", ["tab\there", "line\nbreak", "return\rhere", " outer", "outer ", "", "two\u2028lines"])
def test_ids_that_no_line_can_hold_are_refused_for_trec(tmp_path: Path, id: str) -> None:
    for write, rows in ((write_run, Run.from_rankings({"q": [(id, 1.0)]})), (write_qrels, Qrels({id: {"x": 1}}))):
        with raises(UsageError):
            write(rows, tmp_path / "rows.txt")
    assert list(tmp_path.iterdir()) == []


def test_equal_scores_keep_the_order_of_the_file_whatever_its_ranks(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("q Q0 late 1 1.0 t\nq Q0 a 3 2.0 t\nq Q0 b 2 2.0 t\n")
    assert [hit.image for hit in read_run(tmp_path / "run.txt")["q"]] == ["a", "b", "late"]


def test_a_run_that_fails_to_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    write_run(Run.from_rankings({"q": [("x", 1.0)]}), tmp_path / "run.npz")
    with raises(UsageError):
        write_run(Run.from_rankings({"q": [("x", 1.0)], "p": []}), tmp_path / "run.npz")
    assert plain(read_run(tmp_path / "run.npz")) == {"q": [("x", 1.0)]}
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    with raises(UsageError):
        write_run(Run.from_rankings({"q": [("x", 1.0)]}), tmp_path / "nowhere" / "run.txt")


def test_columns_refuse_repeated_images_and_endless_scores() -> None:
    with raises(UsageError):
        Run.from_columns(["q", "p", "q"], ["x", "x", "x"], [1, 2, 3])
    with raises(UsageError):
        Run.from_columns(["q"], ["x"], [np.inf])
    with raises(UsageError):
        Qrels.from_columns(["q", "q"], ["x", "x"], [1, 0])


def test_coded_columns_may_name_queries_without_rows() -> None:
    coded = IdColumn(np.array(["a", "b", "c"], dtype=object), np.array([2, 0]))
    run = Run.from_columns(coded, ["x", "y"], [1.0, 2.0])
    assert plain(run) == {"a": [("y", 2.0)], "b": [], "c": [("x", 1.0)]}
    assert run.rank.tolist() == [1, 1]
