"""What is wrong with a file is said in one sentence that names the file, the place, and what was expected."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eyespot.runs import read_qrels, read_run
from eyespot.types import UsageError

RUNS = {
    "few.txt": (b"q Q0 a 1 2 t\n\nq Q0 b\n", r"few.txt, line 3: has 3 fields, 'q Q0 b'; expected: query Q0 image rank"),
    "score.txt": (b"q Q0 a 1 high t\n", r"line 1: has 'high' where a score must be a finite number"),
    "nan.txt": (b"q Q0 a 1 NaN t\n", r"line 1: has 'NaN' where a score must be a finite number"),
    "inf.txt": (b"q Q0 a 1 -inf t\n", r"line 1: has '-inf'"),
    "scored.txt": (b"q Q0 a 1 1_0 t\n", r"line 1: has '1_0'"),
    "twice.txt": (b"q Q0 a 1 2 t\np Q0 a 1 2 t\nq Q0 a 2 1 t\n", r"line 3: query 'q' ranks image 'a' twice; keep one"),
    "tabs.txt": (b"q\tQ0\ta\tb\t1\t2\tt\n", r"line 1: has 7 fields"),
    "empty.txt": (b"q\tQ0\t\t1\t2\tt\n", r"line 1: has 6 fields"),
    "spaces.txt": (b"q my long id 1 2 3 t\n", r"line 1: has 8 fields"),
    "latin.txt": ("q Q0 a 1 2 t\nq Q0 é 2 1 t\n".encode("latin-1"), r"line 2: is not UTF-8; save the file as UTF-8"),
    "cut.json": (b'{"q": {"a": 1,\n', r"cut.json, line \d: is no JSON"),
    "list.json": (b"[1, 2]", r"holds a list; expected an object {query: {image: score}}"),
    "text.json": (b'{"q": {"a": "high"}}', r"query 'q': gives image 'a' the score 'high'; expected a finite number"),
    "true.json": (b'{"q": {"a": true}}', r"the score True; expected a finite number"),
    "nan.json": (b'{"q": {"a": NaN}}', r"holds NaN, which ranks nothing"),
    "huge.json": (b'{"q": {"a": 1' + b"0" * 400 + b"}}", r"expected a finite number"),
    "twice.json": (b'{"q": {"a": 1, "a": 2}}', r"has the key 'a' twice in one object"),
    "deep.json": (b'{"q": ' * 100_000, r"is (nested too deeply|no JSON)"),
    "mixed.json": (b'{"q": {"a": 1}, "p": ["a"]}', r"query 'p': holds a list; expected {image: score}"),
    "listed.json": (b'{"q": ["a", 1, "1"]}', r"ranks image '1' twice"),
    "object.json": (b'{"q": ["a", {}]}', r"ranks {}; expected an id"),
    "none.json": (b'{"": {"a": 1}}', r"has an empty query id"),
    "not.parquet": (b"PAR1 hardly", r"not.parquet: is no parquet file"),
    "not.npz": (b"PK hardly", r"not.npz: is no .npz file"),
    "cut.json.gz": (gzip.compress(b'{"q": {"a": 1}}')[:-6], r"cut.json.gz cannot be read"),
}
QRELS = {
    "few.txt": (b"q a\n", r"few.txt, line 1: has 2 fields, 'q a'; expected: query 0 image grade"),
    "grade.txt": (b"q 0 a 1\nq 0 b 0.5\n", r"line 2: has '0.5' where a grade must be a whole number"),
    "twice.txt": (b"q 0 a 1\nq 0 a 0\n", r"line 2: query 'q' judges image 'a' twice"),
    "grade.json": (b'{"q": {"a": 0.5}}', r"gives image 'a' the grade 0.5; expected a whole number"),
    "fields.csv": (b"query_id,image_id,image_path\n3,7\n", r"fields.csv, line 2: has 2 fields where the header has 3"),
    "column.csv": (b"query,image\n3,7\n", r"line 2: has no column query_id; there are: query, image"),
    "blank.csv": (b"query_id,image_id\n3,\n", r"line 2: has '' as image_id; expected an id"),
    "relevant.csv": (b"query_id,image_id,relevant\n3,7,maybe\n", r"has 'maybe' as relevant; expected 0 or 1"),
    "twice.csv": (b"query_id,image_id\n3,7\n3,7\n", r"line 3: judges query '3', image '7' a second time"),
    "score.tsv": (b"query-id\tcorpus-id\tscore\nq\ta\tx\n", r"line 2: has 'x' as score; expected a whole number"),
    "circo.json": (b'[{"id": 1}]', r"entry 1: has no text as relative_caption"),
    "split.json": (b'{"images": [], "dataset": "coco"}', r"has no images in the split 'test'"),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_malformed_run(tmp_path: Path, name: str) -> None:
    content, message = RUNS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_run(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", QRELS)
def test_malformed_judgements(tmp_path: Path, name: str) -> None:
    content, message = QRELS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_qrels(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "q Q0 a 1 2 t\nq Q0 b 2 1 t\n",
        "\ufeffq Q0 a 1 2 t\r\nq Q0 b 2 1 t\r\n\r\n",
        "q\tQ0\ta\t1\t  2.0\tt\t\nq\tQ0\tb\t2\t1\tt",
        "  q   Q0 a 1 2 t  \n \nq Q0 b 2 1 t\n",
        "q a 1 2 t\nq b 2 1 t\n",
        "q Q0 a 1 +2\nq q0 b 2 1e0\n",
        "q a 1 2\nq\tb\t2\t1\n",
    ],
)
def test_all_these_say_the_same(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.txt").write_bytes(text.encode())
    (tmp_path / "run.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("run.txt", "run.gz"):
        assert dict(read_run(tmp_path / name)) == {"q": [("a", 2.0), ("b", 1.0)]}


def test_ids_with_spaces_survive_without_tabs_where_the_line_is_whole(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("q Q0 my long photo.jpg 1 2 t\n")
    (tmp_path / "qrels.txt").write_text("q 0 my long photo.jpg 1\n")
    assert read_run(tmp_path / "run.txt")["q"][0].image == "my long photo.jpg"
    assert read_qrels(tmp_path / "qrels.txt").grades == {"q": {"my long photo.jpg": 1}}


@pytest.mark.parametrize("name", ["run.txt", "run.json"])
def test_nothing_is_an_empty_run_only_where_a_format_has_one(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    if name == "run.txt":
        assert len(read_run(tmp_path / name)) == 0
    else:
        with pytest.raises(UsageError, match="is no JSON"):
            read_run(tmp_path / name)


def test_files_that_are_not_there_and_folders_of_nothing(tmp_path: Path) -> None:
    for name in ("no.txt", "no.json", "no.parquet", "no.npz"):
        with pytest.raises(UsageError, match=f"there is no file .*{name}"):
            read_run(tmp_path / name)
    with pytest.raises(UsageError, match="has no layout that eyespot knows; name it with --format: trec, json"):
        read_qrels(tmp_path)
    with pytest.raises(UsageError, match="no format 'trek' here; there are: trec, json, parquet"):
        read_run(tmp_path, "trek")


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyespot.storage.files.ALLOWANCE", 1 << 10)
    monkeypatch.setattr("eyespot.runs.matrix.ALLOWANCE", 1 << 10)
    (tmp_path / "run.json.gz").write_bytes(gzip.compress(b" " * (4 << 20)))
    np.savez_compressed(tmp_path / "run.npz", scores=np.zeros((1000, 1000)))
    for name in ("run.json.gz", "run.npz"):
        with pytest.raises(UsageError, match="unfolds to more than 100 times its size"):
            read_run(tmp_path / name)


def npz(path: Path, **arrays: object) -> Path:
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"scores": [[1.0]], "queries": ["q"]}, "has no array 'images'"),
        ({"scores": [1.0], "queries": ["q"], "images": ["a"]}, r"scores of shape \(1,\); .* make \(1, 1\)"),
        ({"scores": [[np.nan]], "queries": ["q"], "images": ["a"]}, "no finite numbers"),
        ({"scores": [["a"]], "queries": ["q"], "images": ["a"]}, "no finite numbers"),
        ({"scores": [[1.0, 2.0]], "queries": ["q"], "images": ["a", "a"]}, "has the id 'a' twice among its images"),
        ({"scores": [[1.0]], "queries": ["q"], "images": [0.5]}, "has float64 of shape .* as images"),
        ({"ids": [["a", "a"]], "queries": ["q"]}, "query 'q' ranks image 'a' twice"),
        ({"ids": [["a", "b"]], "queries": ["q"], "scores": [[1.0]]}, r"expected \(queries, k\) for both"),
    ],
)
def test_a_malformed_matrix(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_run(npz(tmp_path / "run.npz", **arrays))


def test_pickles_in_an_npz_are_refused(tmp_path: Path) -> None:
    path = npz(tmp_path / "run.npz", scores=[[1.0]], queries=np.array(["q"], dtype=object), images=["a"])
    with pytest.raises(UsageError, match="holds Python objects, which are not read; save ids as text"):
        read_run(path)


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (1 << 20, 1 << 24)})
    with zipfile.ZipFile(tmp_path / "run.npz", "w") as archive:
        archive.writestr("scores.npy", file.getvalue())
    with pytest.raises(UsageError, match=r"is no \.npz file"):
        read_run(tmp_path / "run.npz")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query": ["q"], "image": ["a"]}, "has no column score; there are: query, image"),
        ({"query": ["q", None], "image": ["a", "b"], "score": [1.0, 2.0]}, "row 2: has no query"),
        ({"query": ["q"], "image": [""], "score": [1.0]}, "row 1: has an empty image"),
        ({"query": [0.5], "image": ["a"], "score": [1.0]}, "has double in the column query; expected text or whole"),
        ({"query": ["q"], "image": ["a"], "score": ["1"]}, "has string in the column score; expected numbers"),
        ({"query": ["q"], "image": ["a"], "score": [np.inf]}, "query 'q' has the score inf"),
        ({"query": ["q", "q"], "image": ["a", "a"], "score": [1.0, 2.0]}, "query 'q' ranks image 'a' twice"),
    ],
)
def test_a_malformed_table(tmp_path: Path, columns: dict[str, list[object]], message: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "run.parquet")
    with pytest.raises(UsageError, match=message):
        read_run(tmp_path / "run.parquet")


def test_tables_of_other_tools_are_read_by_their_names(tmp_path: Path) -> None:
    pq.write_table(pa.table({"qid": [3, 3], "docno": [7, 8], "sim": [1, 2]}), tmp_path / "run.parquet")
    assert dict(read_run(tmp_path / "run.parquet")) == {"3": [("8", 2.0), ("7", 1.0)]}
    pq.write_table(pa.table({"query-id": ["q"], "corpus-id": ["a"], "score": [1.0]}), tmp_path / "qrels.parquet")
    assert read_qrels(tmp_path / "qrels.parquet").grades == {"q": {"a": 1}}


def test_json_of_numbers_as_ids(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"0": [57, 49], "1": [3]}))
    assert dict(read_run(tmp_path / "run.json")) == {"0": [("57", -1.0), ("49", -2.0)], "1": [("3", -1.0)]}
