"""INQUIRE's released scores become runs, and nothing in their files is run: caches made up in that layout."""

from __future__ import annotations

import json
import math
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot.runs import inquire_cache, read_judged, read_run
from eyespot.storage import plain_pickles
from eyespot.types import NothingFound, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import raises
from tests.worlds.benchmarks import inquire_rerank

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


def test_scores_of_python_and_of_numpy_are_read(tmp_path: Path) -> None:
    kinds: list[Any] = [0.25, np.float32(0.5), np.float64(0.75), 1, np.int64(0)]
    place = cached(tmp_path, {entry(f"train/{number}.jpg", "P"): value for number, value in enumerate(kinds)})

    run, other = inquire_cache.read(place, PROMPTS, {"train/0.jpg": "zero"})

    assert {hit.image: hit.score for hit in run["P"]} == {
        **{"train/3.jpg": 1.0, "train/2.jpg": 0.75, "train/1.jpg": 0.5, "zero": 0.25, "train/4.jpg": 0.0}
    }
    assert [hit.score for hit in run["P"]] == [1.0, 0.75, 0.5, 0.25, 0.0] and other == 0


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
def test_what_is_no_plain_value_is_named_and_not_made(
    value: Any, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
