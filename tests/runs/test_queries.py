"""Queries from any table, and their groups."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.runs import read_queries
from eyespot.runs.judged import groups
from eyespot.types import UsageError
from tests.wording import raises


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "query_id,query_text,category\n3,a lark,Social\n"),
        ("q.csv", ",id,text,category\n0,3,a lark,Social\n"),
        ("q.tsv", "query-id\tquery\tcategory\n3\ta lark\tSocial\n"),
        ("q.jsonl", '{"_id": "3", "text": "a lark", "category": "Social"}\n'),
        ("q.jsonl", '{"id": 3, "question": "a lark", "category": "Social"}\n'),
    ],
)
def test_a_table_by_its_usual_names(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_queries(tmp_path / name) == {"3": {"text": "a lark", "category": "Social"}}


def test_parquet_without_a_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"query_id": [3, 4], "split": ["val", None]}), tmp_path / "q.parquet")
    assert read_queries(tmp_path / "q.parquet") == {"3": {"split": "val"}, "4": {"split": None}}


def test_the_folder_of_a_test_collection(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a lark", "kind": "x"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    assert read_queries(tmp_path) == {"q": {"text": "a lark", "kind": "x"}}


@pytest.mark.parametrize("text", ["query_id,text\n3,a\n3,b\n", "name,text\n3,a\n", "query_id,text\n,a\n"])
def test_what_is_wrong_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "q.csv").write_text(text)
    with raises(UsageError):
        read_queries(tmp_path / "q.csv")


def test_groups_compare_without_case_and_keep_the_empty_one() -> None:
    queries = {"1": {"kind": "social"}, "2": {"kind": " Social "}, "3": {"kind": ""}, "4": {}, "5": {"kind": None}}
    assert groups(queries, "kind") == {"": ["3", "4", "5"], "Social": ["1", "2"]}
    with raises(UsageError):
        groups({"1": {"text": "a", "category": "b"}}, "kind")
