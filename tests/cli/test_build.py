"""`eyespot build rerank`: a run and its judgements to a re-ranking set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot.runs import reranking
from tests.command import run_eyespot


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Five queries; q0 to q3 have one relevant image in their first two, q4 has none."""
    queries = [f"q{at}" for at in range(5)]
    (tmp_path / "run.txt").write_text(
        "".join(f"{q} Q0 {i} 1 {s} t\n" for q in queries for i, s in (("a", 2), ("b", 1)))
    )
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {'a' if q < 'q4' else 'z'} 1\n" for q in queries))
    rows = "".join(f"{q},text of {q},{'x' if q < 'q2' else 'y'},{'val' if q < 'q3' else 'test'}\n" for q in queries)
    (tmp_path / "queries.csv").write_text(f"query_id,query_text,category,split\n{rows}")
    return tmp_path


BUILD = ("build", "rerank", "run.txt", "qrels.txt", "--depth", "2")


def test_a_set_split_by_category(world: Path) -> None:
    shown = run_eyespot(*BUILD, "--queries", "queries.csv", "--val", "2", "--out", "set", "--json", cwd=world)
    report = json.loads(shown.stdout)
    assert shown.returncode == 0 and report["queries"] == 4
    assert report["splits"]["val"] == {"queries": 2, "candidates": 4, "relevant": 2, "unjudged": 2}
    assert report["by"] == {"category": {"x": {"val": 1, "test": 1}, "y": {"val": 1, "test": 1}}}
    assert report["dropped"] == {"none relevant among the candidates": 1}
    assert len(reranking.read(world / "set", "val").queries) == 2
    assert "--keep-split keeps theirs" in shown.stderr and "4 of 8 candidates are unjudged" in shown.stderr


def test_lines_for_people_and_the_split_of_the_queries(world: Path) -> None:
    shown = run_eyespot(*BUILD, "--queries", "queries.csv", "--keep-split", "--out", "set", cwd=world)
    assert shown.stdout.splitlines() == [
        "val    3 queries  6 candidates  3 relevant  3 unjudged",
        "test   1 queries  2 candidates  1 relevant  1 unjudged",
        "out    1 queries: none relevant among the candidates",
    ]
    assert sorted(reranking.read(world / "set", "val").queries) == ["q0", "q1", "q2"]


def test_a_dry_run_writes_nothing(world: Path) -> None:
    before = sorted(world.iterdir())
    shown = run_eyespot(*BUILD, "--out", "set", "--dry-run", cwd=world)
    assert shown.stdout.startswith("val    1 queries") and sorted(world.iterdir()) == before


def test_the_order_of_the_lines_changes_nothing_but_the_digests(world: Path) -> None:
    run_eyespot(*BUILD, "--out", "a", cwd=world)
    for name in ("run.txt", "qrels.txt"):
        lines = (world / name).read_text().splitlines(keepends=True)
        (world / name).write_text("".join(reversed(lines)))
    run_eyespot(*BUILD, "--out", "b", cwd=world)
    names = ("queries.csv", "qrels.parquet", "candidates.parquet", "dropped.csv")
    assert [(world / "a" / name).read_bytes() for name in names] == [
        (world / "b" / name).read_bytes() for name in names
    ]


def test_the_hubs_layout_is_scored_as_the_set(world: Path) -> None:
    run_eyespot(*BUILD, "--out", "hub", "--layout", "inquire-rerank", cwd=world)
    report = json.loads(run_eyespot("metrics", "hub", "hub", "-m", "RR", "--json", cwd=world).stdout)
    assert report["measures"]["RR"] | {"mean": 1.0, "queries": 4} == report["measures"]["RR"]


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("--val", "9"), 2, "9 validation queries are asked for and 4 are kept"),
        (("--val", "1", "--val-share", "0.5"), 2, "exclude each other"),
        (("--by", "category"), 2, "name their file with --queries"),
        (("--layout", "foo"), 2, "there are: rerank-set, inquire-rerank"),
        (("--least", "2", "--most", "2"), 4, "no query is kept"),
    ],
)
def test_errors_are_one_sentence_and_leave_nothing(world: Path, words: tuple[str, ...], code: int, part: str) -> None:
    shown = run_eyespot(*BUILD, "--out", "set", *words, cwd=world)
    assert shown.returncode == code and part in shown.stderr and shown.stderr.count("\n") == 1
    assert not (world / "set").exists() and shown.stdout == ""
