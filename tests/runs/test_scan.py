"""Compiled scans of large files must say what the loop over lines says, or leave the file to it."""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.runs import read_qrels, read_run, scan, scanning, trec, write_qrels, write_run
from eyespot.types import Qrels, Run, UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds.runs import judgements, plain, rankings, run_of

DECIMALS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=6).map(str),
    st.from_regex(r"[-+]?[0-9]{1,19}(\.[0-9]{0,19})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
)


@given(DECIMALS)
@settings(max_examples=examples(500), deadline=None)  # the first call compiles
def test_a_number_is_read_to_its_last_bit_or_left_to_python(text: str) -> None:
    found = scanning.number_in(np.frombuffer(text.encode(), np.uint8))
    assert np.isnan(found) or found == float(text)


def test_usual_scores_need_no_python() -> None:
    texts = ["0.5", "12", "-3.25", "17.123456", repr(2 / 3), repr(0.1 + 0.2), "1e-05", "9.5367431640625e-07", "0"]
    found = [scanning.number_in(np.frombuffer(text.encode(), np.uint8)) for text in texts]
    assert found == [float(text) for text in texts]


@pytest.mark.parametrize("text", ["", "-", ".", "1.2.3", "0x10", "1e", "nan", "inf", "1_0", "1 2"])
def test_what_is_no_number_is_left_to_python(text: str) -> None:
    assert np.isnan(scanning.number_in(np.frombuffer(text.encode(), np.uint8)))


@given(rankings, judgements)
@settings(deadline=None)  # the first call compiles
def test_scans_say_what_the_loop_says(drawn: dict[str, dict[str, float]], judged: dict[str, dict[str, int]]) -> None:
    folder = Path(trec.__file__).parent  # never written to
    run, qrels = run_of(drawn), Qrels(judged)
    found, known = scan.run_in(_trec(run)), scan.qrels_in(_trec(qrels))
    if run.queries:
        assert isinstance(found, scan.ScannedRun) and plain(found) == plain(run)
        looped = Run.from_columns(*trec._line_by_line(folder, _trec(run), trec._RUN))
        assert found.graded(qrels).tolist() == looped.graded(qrels).tolist()
        if known is not None:
            assert found.graded(known).tolist() == looped.graded(qrels).tolist()
    if qrels.queries:
        assert known is not None and known.grades == judged


def _trec(rows: Run | Qrels) -> bytes:
    values = rows.score if isinstance(rows, Run) else rows.grade
    tail = "\t1\t{!r}\ttag\n" if isinstance(rows, Run) else "\t{!r}\n"
    lines = zip(rows.query, rows.image, values.tolist(), strict=True)
    return "".join(f"{query}\tQ0\t{image}" + tail.format(value) for query, image, value in lines).encode()


def test_rankings_out_of_order_are_ordered_and_ties_stay() -> None:
    found = scan.run_in(b"q Q0 a 1 1 t\r\nq Q0 b 2 3 t\r\n\r\nq Q0 c 3 1.0 t\nq Q0 d 4 3 t")
    assert found is not None
    assert plain(found) == {"q": [("b", 3.0), ("d", 3.0), ("a", 1.0), ("c", 1.0)]}


def test_a_byte_order_mark_is_no_part_of_the_first_query() -> None:
    run = scan.run_in(codecs.BOM_UTF8 + b"heron Q0 a 1 2 t\nheron Q0 b 2 1 t\n")
    qrels = scan.qrels_in(codecs.BOM_UTF8 + b"heron 0 a 1\nowl 0 b 2\n")

    assert run is not None and plain(run) == {"heron": [("a", 2.0), ("b", 1.0)]}
    assert qrels is not None and qrels.grades == {"heron": {"a": 1}, "owl": {"b": 2}}


def test_a_query_that_goes_on_in_another_part_is_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "CHUNK", 64)
    lines = [f"q{at // 50} Q0 image{at} 1 {1000 - at} t\n" for at in range(200)]
    found = scan.run_in("".join(lines).encode())
    assert found is not None
    assert found.queries == ["q0", "q1", "q2", "q3"]
    assert found.image.tolist() == [f"image{at}" for at in range(200)]


@pytest.mark.parametrize(
    "text",
    [
        b"q Q0 a 1 2 t\nq Q0 b 2 t\n",  # a field is missing
        b"q Q0 a 1 2 t\nq Q0 my b 2 1 t\n",  # one too many
        b"q Q0 a 1 2 t\nq\tQ0\tb\t2\t1\tt\n",  # other marks
        b"q Q0 a 1 2 t\nq Q0  b 2 1 t\n",  # two spaces
        b"q\tQ0\ta \t1\t2\tt\n",  # padded ids
        b"q Q0 a 1 2 t\nq Q0 a 2 1 t\n",  # an image twice
        b"q Q0 a 1 2 t\np Q0 a 1 1 t\nq Q0 b 2 1 t\n",  # a query in two places
        b"q Q0 a 1 nan t\n",
        b"q Q0 a 1 x t\n",
        b"q Q0 \xff 1 2 t\n",
        b"q Q0 a 1 0." + b"1" * 500 + b" t\n",  # digits without end
    ],
)
def test_what_is_odd_is_left_to_the_loop(text: bytes) -> None:
    assert scan.run_in(text) is None


@pytest.mark.long
def test_large_files_are_scanned_and_their_faults_named(tmp_path: Path) -> None:
    path, count = tmp_path / "large.txt", 450_000
    lines = [
        f"q{at // 1000} Q0 image{at % 5000:05d}.jpg {at % 1000 + 1} {1 - at % 1000 / 1000} t\n" for at in range(count)
    ]
    path.write_text("".join(lines))
    assert path.stat().st_size > trec.LARGE
    run = read_run(path)
    assert isinstance(run, scan.ScannedRun) and len(run.score) == count
    assert run["q7"][:2] == [("image02000.jpg", 1.0), ("image02001.jpg", 0.999)]
    lines[400_000] = "q400 Q0 image 1 none t\n"
    path.write_text("".join(lines))
    with raises(UsageError):
        read_run(path)


def test_scanned_judgements_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = Qrels({"a": {"x": 1, "y": 0}, "é": {"x": 2, "漢": -1}})
    write_qrels(qrels, tmp_path / "qrels.txt")
    run = Run.from_rankings({"é": [("漢", 2.0), ("z", 1.0), ("x", 0.5)], "b": [("x", 1.0)], "a": [("y", 3.0)]})
    write_run(run, tmp_path / "run.txt")
    monkeypatch.setattr(trec, "LARGE", 1)
    scanned, judged = read_run(tmp_path / "run.txt"), read_qrels(tmp_path / "qrels.txt")
    assert isinstance(scanned, scan.ScannedRun) and isinstance(judged, scan.ScannedQrels)
    assert judged.grades == qrels.grades
    assert scanned.graded(judged).tolist() == run.graded(qrels).tolist() == [-1, -1, 2, -1, 0]
    assert scanned.graded(qrels).tolist() == run.graded(judged).tolist() == [-1, -1, 2, -1, 0]
