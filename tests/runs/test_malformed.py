"""What is wrong with a file is said in one sentence that names the file, the place, and what was expected."""

from __future__ import annotations

import gzip
import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.metrics import evaluate
from eyespot.runs import read_qrels, read_run
from eyespot.types import Run, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises

RUNS = {
    "few.txt": b"q Q0 a 1 2 t\n\nq Q0 b\n",
    "score.txt": b"q Q0 a 1 high t\n",
    "inf.txt": b"q Q0 a 1 -inf t\n",
    "tabs.txt": b"q\tQ0\ta\tb\t1\t2\tt\n",
    "empty.txt": b"q\tQ0\t\t1\t2\tt\n",
    "spaces.txt": b"q my long id 1 2 3 t\n",
    "cut.json": b'{"q": {"a": 1,\n',
    "list.json": b"[1, 2]",
    "text.json": b'{"q": {"a": "high"}}',
    "true.json": b'{"q": {"a": true}}',
    "nan.json": b'{"q": {"a": NaN}}',
    "huge.json": b'{"q": {"a": 1' + b"0" * 400 + b"}}",
    "twice.json": b'{"q": {"a": 1, "a": 2}}',
    "deep.json": b'{"q": ' * 100_000,
    "mixed.json": b'{"q": {"a": 1}, "p": ["a"]}',
    "listed.json": b'{"q": ["a", 1, "1"]}',
    "object.json": b'{"q": ["a", {}]}',
    "none.json": b'{"": {"a": 1}}',
    "rows.json": b'[{"query_id": "q", "doc_id": "a", "score": 1}, 7]',
    "twice.jsonl": b'{"qid": "q", "docno": "a", "score": 1}\n' * 2,
    "high.csv": b"query_id,doc_id,score\nq,a,high\n",
    "not.parquet": b"PAR1 hardly",
    "not.npz": b"PK hardly",
    "cut.json.gz": gzip.compress(b'{"q": {"a": 1}}')[:-6],
}
QRELS = {
    "few.txt": b"q a\n",
    "grade.txt": b"q 0 a 1\nq 0 b high\n",
    "twice.txt": b"q 0 a 1\nq 0 a 0\n",
    "grade.json": b'{"q": {"a": "0.5"}}',
    "fields.csv": b"query_id,image_id,image_path\n3,7\n",
    "column.csv": b"query,image\n3,7\n",
    "blank.csv": b"query_id,image_id\n3,\n",
    "relevant.csv": b"query_id,image_id,relevant\n3,7,maybe\n",
    "twice.csv": b"query_id,image_id\n3,7\n3,7\n",
    "score.tsv": b"query-id\tcorpus-id\tscore\nq\ta\tx\n",
    "circo.json": b'[{"id": 1}]',
    "split.json": b'{"images": [], "dataset": "coco"}',
}


@pytest.mark.parametrize(
    ("read", "name", "content"),
    [*((read_run, *one) for one in RUNS.items()), *((read_qrels, *one) for one in QRELS.items())],
    ids=[*RUNS, *(f"judgements-{name}" for name in QRELS)],
)
def test_a_malformed_file(read: Callable[[Path], object], name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)
    check_wording(str(caught.value))


def test_files_that_are_not_there_and_folders_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.txt").touch()
    assert len(read_run(tmp_path / "run.txt")) == 0
    for name in ("no.txt", "no.json", "no.parquet", "no.npz"):
        with raises(UsageError):
            read_run(tmp_path / name)
    with raises(UsageError):
        read_qrels(tmp_path)
    with raises(UsageError):
        read_run(tmp_path, "trek")


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyespot.storage.text_files.ALLOWANCE", 1 << 10)
    monkeypatch.setattr("eyespot.runs.matrix.ALLOWANCE", 1 << 10)
    (tmp_path / "run.json.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    np.savez_compressed(tmp_path / "run.npz", scores=np.zeros((1000, 1000)))
    for name in ("run.json.gz", "run.npz"):
        with raises(UsageError):
            read_run(tmp_path / name)


MATRICES: list[dict[str, object]] = [
    {"scores": [[1.0]], "queries": ["q"]},
    {"scores": [1.0], "queries": ["q"], "images": ["a"]},
    {"scores": [[np.nan]], "queries": ["q"], "images": ["a"]},
    {"scores": [["a"]], "queries": ["q"], "images": ["a"]},
    {"scores": [[1.0, 2.0]], "queries": ["q"], "images": ["a", "a"]},
    {"scores": [[1.0]], "queries": ["q"], "images": [0.5]},
    {"ids": [["a", "a"]], "queries": ["q"]},
    {"ids": [["a", "b"]], "queries": ["q"], "scores": [[1.0]]},
    {"scores": [[1.0]], "queries": np.array(["q"], dtype=object), "images": ["a"]},  # a pickle
]
TABLES: list[dict[str, list[object]]] = [
    {"query": ["q"], "image": ["a"]},
    {"query": ["q", None], "image": ["a", "b"], "score": [1.0, 2.0]},
    {"query": ["q"], "image": [""], "score": [1.0]},
    {"query": [0.5], "image": ["a"], "score": [1.0]},
    {"query": ["q"], "image": ["a"], "score": ["1"]},
    {"query": ["q"], "image": ["a"], "score": [np.inf]},
    {"query": ["q", "q"], "image": ["a", "a"], "score": [1.0, 2.0]},
]


@pytest.mark.parametrize("columns", [*MATRICES, *TABLES], ids=range(16))
def test_a_malformed_matrix_or_table(tmp_path: Path, columns: dict[str, Any]) -> None:
    if columns in TABLES:
        pq.write_table(pa.table(columns), tmp_path / "run.parquet")
    else:
        np.savez(tmp_path / "run.npz", **{name: np.asarray(array) for name, array in columns.items()})
    (place,) = tmp_path.iterdir()
    with raises(UsageError):
        read_run(place)


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 20, 1 << 24)})
    with zipfile.ZipFile(tmp_path / "run.npz", "w") as archive:
        archive.writestr("scores.npy", file.getvalue())
    with pytest.raises(UsageError, match="npz"):
        read_run(tmp_path / "run.npz")


def test_tables_of_other_tools_are_read_by_their_names(tmp_path: Path) -> None:
    pq.write_table(pa.table({"qid": [3, 3], "docno": [7, 8], "sim": [1, 2]}), tmp_path / "run.parquet")
    assert dict(read_run(tmp_path / "run.parquet")) == {"3": [("8", 2.0), ("7", 1.0)]}
    pq.write_table(pa.table({"query-id": ["q"], "corpus-id": ["a"], "score": [1.0]}), tmp_path / "qrels.parquet")
    assert read_qrels(tmp_path / "qrels.parquet").grades == {"q": {"a": 1}}


ROWS = [{"query_id": 3, "doc_id": "a", "score": 1}, {"query_id": 3, "doc_id": "b", "score": 2.5}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.json", json.dumps(ROWS)),
        ("run.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("run.csv", "score,doc_id,query_id\n1,a,3\n2.5,b,3\n"),
        ("run.tsv", "query_id\tdoc_id\tscore\n3\ta\t1\n3\tb\t2.5\n"),
    ],
)
def test_rows_are_a_run_by_the_names_of_their_columns(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    assert dict(read_run(tmp_path / name)) == {"3": [("b", 2.5), ("a", 1.0)]}


def test_the_documented_parquet_of_judgements_is_read_with_fractions_as_grades(tmp_path: Path) -> None:
    """Columns query, image, relevant, of which INQUIRE-Rerank has two beside its own; a grade may be a mean."""
    pq.write_table(pa.table({"query": ["q"] * 2, "image": ["a", "b"], "relevant": [0.5, 2]}), tmp_path / "q.parquet")
    qrels = read_qrels(tmp_path / "q.parquet")
    scores = evaluate(
        Run.from_orders({"q": ["a", "b"]}), qrels, ["nDCG", "AP", "nDCG(gain='binary')", "nDCG(gain='exponential')"]
    )

    assert qrels.grades == {"q": {"a": 0.5, "b": 2}} and qrels.relevant("q") == {"b"}
    half = 1 / math.log2(3)
    assert list(scores.means.values()) == pytest.approx(
        [(0.5 + 2 * half) / (2 + 0.5 * half), 0.5, half, (2**0.5 - 1 + 3 * half) / (3 + (2**0.5 - 1) * half)]
    )


def test_json_of_numbers_as_ids(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"0": [57, 49], "1": [3]}))
    assert dict(read_run(tmp_path / "run.json")) == {"0": [("57", -1.0), ("49", -2.0)], "1": [("3", -1.0)]}


@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("txt:q Q0 a 1 2.0 t\nq Q0 b 2 1.0 t\n", "txt:q 0 a 1\nq 0 b 0\n"),
        ("txt:q Q0 a 1 2.0 t\np Q0 b 2 1.0 t\n", "txt:q 0 a 1\np 0 b 1\n"),
        ('json:{"q": {"a": 1.5, "b": 0.25}}', 'json:{"q": {"a": 1, "b": 0}}'),
        ("csv:query,image,score\nq,a,0.5\n", "txt:q 0 a 1\n"),
    ],
    ids=["columns", "one judgement a query", "json", "table"],
)
def test_judgements_and_a_ranking_that_are_swapped(qrels: str, run: str, tmp_path: Path) -> None:
    named = []
    for name, given in (("qrels", qrels), ("run", run)):
        ending, _, text = given.partition(":")
        named.append(tmp_path / f"{name}.{ending}")
        named[-1].write_text(text)

    assert "swapped" in refuses("metrics", *named)
    assert run_eyespot("metrics", *reversed(named)).returncode == 0
    assert "swapped" in refuses("compare", named[1], named[1], "--qrels", named[0])
