"""A re-ranking set on disk: what is written is what is read, whole or not at all."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot.curate.rerank import (
    Division,
    RerankInputs,
    RerankLimits,
    RerankSet,
    digest,
    divide,
    select,
    write,
)
from eyespot.runs import read_judged, read_qrels, read_run, reranking
from eyespot.runs.judged import JudgedQueries
from eyespot.types import Qrels, Run, UsageError
from tests.wording import raises

TEXTS = {"3": 'A mongoose, "standing"', "4": "A lark\nsinging", "11": "Ein Käfer | <b>"}


def set_of(images: tuple[str, ...] = ("70", "71", "72")) -> RerankSet:
    """Three queries with two candidates each of which the second is unjudged; a fourth is left out."""
    kinds = {"3": "Social", "4": "Social", "11": ""}
    queries = {query: {"text": TEXTS[query], "category": kinds[query]} for query in TEXTS} | {"5": {"text": "none"}}
    run = Run.from_rankings({query: [(images[0], 0.5), (images[1], 0.25), (images[2], 0.125)] for query in queries})
    run.header = {"source": "/home/ann/run.txt", "encoder": "starter"}
    qrels = Qrels({"3": {images[0]: 1}, "4": {images[0]: 1}, "11": {images[0]: 2}, "5": {images[2]: 1}})
    return divide(
        select(run, JudgedQueries(queries, qrels), RerankLimits(depth=2, most=1)), Division(val=1), "category"
    )


def making(folder: Path) -> RerankInputs:
    (folder / "run.txt").write_bytes(b"q Q0 a 1 0.5 t\n")
    return RerankInputs({"run": folder / "run.txt"}, {"seed": 0}, "category")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The set, written."""
    write(set_of(), tmp_path / "set", making(tmp_path))
    return tmp_path / "set"


def test_the_folder_comes_back(folder: Path) -> None:
    """With zeros that are no judgements, what was left out, and how the run was made but not where it lay."""
    made, found = set_of(), reranking.read(folder)
    assert {query: facts["text"] for query, facts in found.queries.items()} == TEXTS
    wanted = {"category": "Social", "relevant": "1", "candidates": "2", "split": made.judged.queries["3"]["split"]}
    assert found.queries["3"] == {"text": TEXTS["3"]} | wanted
    assert found.qrels.grades == made.judged.qrels.grades and found.candidates is not None
    assert dict(found.candidates) == dict(made.run) and list(found.images) == ["70", "71"]
    rows = pq.read_table(folder / "qrels.parquet").to_pylist()
    assert [(row["image"], row["grade"], row["judged"]) for row in rows[:2]] == [("70", 1, True), ("71", 0, False)]
    assert read_qrels(folder).header["unjudged"] == 3
    with (folder / "dropped.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    reason = "none relevant among the candidates"
    assert row == {"query_id": "5", "reason": reason, "relevant": "0", "candidates": "2"}
    assert read_run(folder / "candidates.parquet").header == {"source": "run.txt", "encoder": "starter"}


def test_no_text_of_the_folder_is_a_formula_and_all_come_back(tmp_path: Path) -> None:
    run = Run.from_rankings({"=1": [("a", 0.5), ("b", 0.25)], "-2": [("a", 0.5)]})
    queries = {"=1": {"text": "@SUM(1)", "category": "-"}, "-2": {"text": "+x"}}
    judged = JudgedQueries(queries, Qrels({"=1": {"a": 1}, "-2": {"a": 1}}))
    made = divide(select(run, judged, RerankLimits(depth=2, most=1)), Division(val=1), None)
    write(made, tmp_path / "set", making(tmp_path))

    texts = [(tmp_path / "set" / name).read_text() for name in ("queries.csv", "dropped.csv")]
    cells = [cell for text in texts for row in csv.reader(text.splitlines()) for cell in row]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert reranking.read(tmp_path / "set").queries["=1"]["text"] == "@SUM(1)"


def test_it_is_known_by_its_look_and_by_split(folder: Path) -> None:
    made = set_of()
    (val,) = made.split("val").queries
    assert dict(read_run(folder)) == dict(made.run)
    assert list(read_qrels(folder)) == ["3", "4", "11"]
    assert list(read_qrels(folder, "rerank-set:val")) == [val]
    assert list(read_run(folder, "rerank-set:val")) == [val]
    assert list(read_judged(folder).queries) == ["3", "4", "11"]


def test_an_unknown_split_tables_of_different_sets_and_a_folder_with_something_are_refused(
    folder: Path,
) -> None:
    with raises(UsageError):
        reranking.read(folder, "dev")
    (folder / "queries.csv").write_text("query_id,split\n3,val\n4,test\n")
    with raises(UsageError):
        reranking.read(folder)
    before = sorted(folder.iterdir())
    with raises(UsageError):
        write(set_of(), folder, RerankInputs({}))
    assert sorted(folder.iterdir()) == before


def test_the_card_counts_and_names_its_sources(folder: Path) -> None:
    card = (folder / "card.md").read_text()
    sha = hashlib.sha256(b"q Q0 a 1 0.5 t\n").hexdigest()
    for line in (
        *("# set", "| val | 1 | 2 | 1 | 1 |", "| test | 2 | 4 | 2 | 2 |"),
        "| test | 0.7500 | 0.8155 | 0.7500 |",  # one of two is relevant: first or second, (1 + 1/2) / 2
        *("| none relevant among the candidates | 1 |", "| seed | 0 |", f"| run | run.txt | {sha} |"),
    ):
        assert line in card.splitlines()


def test_the_same_set_is_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write(set_of(), tmp_path / "again" / "set", making(tmp_path))
    assert digest(folder) == digest(tmp_path / "again" / "set")


def test_the_digest_of_a_folder_tells_names_and_contents(tmp_path: Path) -> None:
    for folder, name, text in (("a", "x", "1"), ("b", "y", "1"), ("c", "x", "2"), ("d", "x", "1")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    a, b, c, d = (digest(tmp_path / folder) for folder in "abcd")
    assert a == d and len({a, b, c}) == 3


def test_what_cannot_be_written_leaves_no_folder_behind(tmp_path: Path) -> None:
    run, qrels = Run.from_orders({" q": ["a", "b"]}), Qrels({" q": {"a": 1}})
    made = select(run, JudgedQueries({" q": {}}, qrels), RerankLimits(2))
    with raises(UsageError):
        write(divide(made, Division()), tmp_path / "set", RerankInputs({}))
    assert list(tmp_path.iterdir()) == []


def test_columns_of_the_users_come_along_and_do_not_pass_for_others(tmp_path: Path) -> None:
    queries = {"q": {"text": "a lark", "question": "which?", "id": 7, "relevant": "yes", "tags": ["x", "é"], "n": None}}
    made = select(Run.from_orders({"q": ["a", "b"]}), JudgedQueries(queries, Qrels({"q": {"a": 1}})), RerankLimits(2))
    write(divide(made, Division(val=0)), tmp_path / "set", RerankInputs({}))
    assert reranking.read(tmp_path / "set").queries["q"] == {
        **{"text": "a lark", "question": "which?", "id": "7", "tags": '["x", "é"]', "n": ""},
        **{"split": "test", "relevant": "1", "candidates": "2"},
    }
