"""What is wrong with a file is said in one sentence that names the file, the place, and what was expected."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eyespot
from eyespot.metrics import evaluate
from eyespot.runs import inquire_cache, read_judged, read_qrels, read_run
from eyespot.storage import plain_pickles
from eyespot.types import NothingFound, Run, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import check_wording, raises
from tests.worlds.benchmarks import inquire_rerank

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
    "rank.csv": b"query_id,doc_id,rank\nq,a,1\n",
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
    "gold.csv": b"query_id,image_id,gold\n3,7,1\n3,8,0\n",
    "twice.csv": b"query_id,image_id\n3,7\n3,7\n",
    "grade.csv": b"query_id,image_id,grade\nq,a,high\n",
    "grade.jsonl": b'{"qid": "q", "docno": "a", "rel": 1}\n{"qid": "q", "docno": "a"}\n',
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


# -- INQUIRE's released scores become runs, and nothing in their files is run -------------------------------------


PROMPTS = {"P": "USER: a P?", "Q": "USER: a Q?"}
CODE = """
raise SystemExit("this must never run")

def get_lmm_prompt(query, model_name):
    if model_name.startswith("made/up"):
        prompt = f"USER: a {query}?"
    return prompt
"""


BEYOND = {"choices": [{"logprobs": {"content": [{"top_logprobs": [{"token": "Yes", "logprob": 1e4}]}]}}]}


def cached(folder: Path, scores: dict[Any, Any], name: str = "made--up-7b--cache.npy") -> Path:
    with (folder / name).open("wb") as file:
        np.save(file, np.array(scores, object), allow_pickle=True)
    return folder / name


def entry(image: str, query: str) -> str:
    return f"{image}--{PROMPTS[query]}"


@pytest.mark.parametrize("protocol", range(5))
def test_every_protocol_of_npy_files_is_read_as_it_was_written(protocol: int) -> None:
    value = {"a": [1, 2.5, None, True, "é", b"\xff\x00", (1, 2, 3, 4), {}], "b" * 300: -(2**70), "c": np.arange(6.0)}
    value["again"] = value["a"]
    read = plain_pickles.read(pickle.dumps(value, protocol))

    arrays = (read.pop("c"), value.pop("c"))
    assert read == value and read["again"] is read["a"]
    np.testing.assert_array_equal(getattr(arrays[0], "value", arrays[0]), arrays[1])


class Evil:
    """What unpickling would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("was-run",)


@pytest.mark.parametrize(("value", "what"), [(Evil(), "mkdir"), (Path("x"), "pathlib"), (np.array(["a"]), "U1")])
def test_what_is_no_value_is_named(value: Any, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = cached(tmp_path, {entry("a", "P"): value})

    with pytest.raises(UsageError, match=what):
        inquire_cache.read(place, PROMPTS, {})
    assert not (tmp_path / "was-run").exists()


# each pair holds the one before twice: 162 bytes, and half a gigabyte as a text
DOUBLES = b"".join(b"h" + bytes([place]) + b"h" + bytes([place]) + b"\x86\x94" for place in range(25))


@pytest.mark.parametrize(
    "data",
    [
        *(pickle.dumps({"a": 1, key: 2}, protocol) for key in ((), (1,), None) for protocol in (0, 4)),
        b"}(K\x01" + b"\x85" * 500_000 + b"K\x01u.",  # a key nested so deep that hashing it ends the process
        b"\x80\x04\x8c\x01a\x94" + DOUBLES + b"h\x19h\x19\x93.",  # a name of nested tuples
        b"u.",
        b"}K\x01a.",
        b"](K\x01K\x02u.",
    ],
    ids=[*"abcdef", "deep", "doubled", "no mark", "no list", "no dict"],
)
def test_pickles_that_do_not_fit_are_refused(data: bytes) -> None:
    with raises(plain_pickles.NotPlain):
        plain_pickles.read(data)


def test_many_marks_on_a_deep_stack_are_read() -> None:
    """Each takes no longer for those below it."""
    assert plain_pickles.read(b"(" + b"(K\x01t" * 150_000 + b"t.") == ((1,),) * 150_000


def test_keys_that_are_no_texts_are_of_other_prompts(tmp_path: Path) -> None:
    place = cached(tmp_path, {entry("a", "P"): 0.5, 10**5000: 0.5, b"a": 0.5})

    assert inquire_cache.read(place, PROMPTS, {})[1] == 2


def test_a_file_that_is_cut_anywhere_is_a_sentence(tmp_path: Path) -> None:
    place = cached(tmp_path, {entry("a", "P"): 0.5, entry("b", "P"): np.float64(0.25)})
    whole = place.read_bytes()
    for length in range(len(whole) - 1):
        place.write_bytes(whole[:length])
        with pytest.raises((UsageError, NothingFound)):
            inquire_cache.read(place, PROMPTS, {})


@pytest.mark.parametrize("score", [True, "0.5", float("nan"), None, {"choices": []}, 10**400, BEYOND])
def test_what_is_no_score_is_refused(score: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no score"):
        inquire_cache.read(cached(tmp_path, {entry("a", "P"): score}), PROMPTS, {})


def test_numbers_of_another_byte_order_keep_their_value(tmp_path: Path) -> None:
    place = cached(tmp_path, {entry("a", "P"): np.array(0.125, ">f8")[()]})
    scalar = plain_pickles.read(pickle.dumps(np.frombuffer(struct.pack(">d", 0.125), ">f8")[0]))

    assert inquire_cache.read(place, PROMPTS, {})[0]["P"][0].score == scalar == 0.125


@pytest.mark.parametrize(
    ("top", "score"), [({"Yes": 0.3, "No": 0.1}, 0.75), ({"No": 0.9, "yes": 0.1}, 0.0), ({"Yes": 0.2}, 1.0)]
)
def test_replies_of_openai_are_scored_as_released(top: dict[str, float], score: float, tmp_path: Path) -> None:
    tokens = [{"token": token, "logprob": math.log(share)} for token, share in top.items()]
    reply = {"choices": [{"logprobs": {"content": [{"top_logprobs": tokens}]}}]}
    place = cached(tmp_path, {entry("a", "P"): reply}, "openai-gpt4o--nosystem-cache.npy")

    assert inquire_cache.model_of(place) == "openai-gpt4o"
    assert inquire_cache.read(place, PROMPTS, {})[0]["P"][0].score == pytest.approx(score)


@pytest.mark.long
def test_nested_tuples_are_refused_at_once_and_not_spelled_out() -> None:
    data = b"\x80\x02ccollections\nOrderedDict\n](](K\x01" + b"\x85" * 500_000 + b"K\x01ee\x85R."
    with pytest.raises(plain_pickles.NotPlain) as refused:
        plain_pickles.read(data)
    assert len(str(refused.value)) < 200


def test_a_row_is_made_again_from_a_cache(tmp_path: Path) -> None:
    """P ranks its relevant picture second of four; Q has both of its two in front, as equals with one that is not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lmm_utils.py").write_text(CODE)
    judged = read_judged(inquire_rerank(tmp_path / "data"))
    ranks = {"P": [0.9, 0.8, 0.1, 0.0], "Q": [0.5, 0.5, 0.1, 0.5]}
    files = {query: [f"train/x/{10 * ord(query) + at}.jpg" for at in range(4)] for query in "PQ"}
    scores = {
        entry(file, query): score for query in "PQ" for file, score in zip(files[query], ranks[query], strict=True)
    }
    place = cached(tmp_path, {**scores, "train/x/1.jpg--another prompt": 1.0})

    line = ("import", "inquire-cache", place, "--data", "data", "--clone", ".", "--to", "run.parquet", "--json")
    done = run_eyespot(*line, cwd=tmp_path)

    assert json.loads(done.stdout) == {"run": "run.parquet", "queries": 2, "scores": 8, "left_out": 1}
    means = eyespot.evaluate(read_run(tmp_path / "run.parquet"), judged.qrels, "inquire-rerank").means
    average = next(value for name, value in means.items() if str(name).startswith("AP"))
    assert average == pytest.approx((1 / 2 + 2 / 3) / 2)
    refuses(*line, "--model", "other", cwd=tmp_path)


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
