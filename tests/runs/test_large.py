"""Large TREC files come by columns, and say what the loop over lines says."""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from eyespot.runs import read_qrels, read_run, trec, write_qrels, write_run
from eyespot.types import Qrels, UsageError
from tests.wording import raises
from tests.worlds.runs import judgements, plain, rankings, run_of


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


@pytest.mark.parametrize("grade", ["1.5", "3000000000", "x"])
def test_a_grade_is_a_whole_number(path: Path, grade: str) -> None:
    path.write_text(f"q 0 a {grade}\n")
    with raises(UsageError):
        read_qrels(path)


def test_a_file_of_many_megabytes_is_read_and_its_fault_named(tmp_path: Path) -> None:
    path, count = tmp_path / "large.txt", 60_000
    lines = [f"q{at // 1000} Q0 image{at % 5000:05d}.jpg {at % 1000} {1 - at % 1000 / 1000} t\n" for at in range(count)]
    path.write_text("".join(lines))
    assert path.stat().st_size > trec.LARGE
    run = read_run(path)
    assert len(run.score) == count and run["q7"][:2] == [("image02000.jpg", 1.0), ("image02001.jpg", 0.999)]
    assert np.diff(run.offsets).tolist() == [1000] * 60

    lines[40_000] = "q40 Q0 image 1 none t\n"
    path.write_text("".join(lines))
    with raises(UsageError):
        read_run(path)
