"""A person who is asked: what each key means, and that there must be a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from eyespot import rooms
from eyespot.llms.budget import BudgetSpent
from eyespot.search.judge_rerank import SecondModel
from eyespot.types import EyespotError, Pair, Query, Space, UsageError, Vectors, Verdict
from tests.wording import raises

PAIRS = [Pair(Query.words("a heron"), name, Path(f"photos/{name}.jpg")) for name in "abc"]
AT_A_TERMINAL = """
from pathlib import Path
from eyespot import rooms
from eyespot.types import Pair, Query
pairs = [Pair(Query.words("a heron"), name, Path(name)) for name in "ab"]
print([answer.verdict.probability for answer in rooms.load("judges", "person:ada").judge(pairs)])
"""


class Typing:
    def __init__(self, *lines: str) -> None:
        self.lines, self.shown = list(lines), []

    def __call__(self, shown: str) -> str:
        self.shown.append(shown)
        return self.lines.pop(0) if self.lines else ""


def ada(*lines: str) -> tuple[list[Verdict | None], Typing]:
    typing = Typing(*lines)
    answers = list(rooms.load("judges", "person:ada", ask=typing).judge(PAIRS[: len(lines)]))
    return [answer.verdict for answer in answers], typing


def test_yes_no_and_doubt_which_counts_as_no() -> None:
    verdicts, typing = ada("y\n", "No\n", " d \n")

    assert verdicts == [Verdict(1.0, 1), Verdict(0.0, 0), Verdict(0.0, 0, "doubt", 0.5)]
    assert '2 of 3: "a heron"' in typing.shown[1] and "photos/b.jpg" in typing.shown[1]


def test_another_key_is_asked_for_again() -> None:
    typing = Typing("x\n", "\n", "y\n")

    (answer,) = rooms.load("judges", "person:ada", ask=typing).judge(PAIRS[:1])

    assert answer.verdict == Verdict(1.0, 1) and len(typing.shown) == 3


@pytest.mark.parametrize("last", ["q\n", ""], ids=["q", "end of input"])
def test_whoever_stops_keeps_what_was_answered(last: str) -> None:
    answers = rooms.load("judges", "person:ada", ask=Typing("y\n", last)).judge(PAIRS)

    assert next(answers).verdict == Verdict(1.0, 1)
    with pytest.raises(BudgetSpent):
        next(answers)


def test_a_file_name_cannot_act_on_the_terminal() -> None:
    typing = Typing("y\n")

    list(rooms.load("judges", "person:ada", ask=typing).judge([PAIRS[0]._replace(path=Path("a\x1b[2Jb.jpg"))]))

    assert "a\\x1b[2Jb.jpg" in typing.shown[0]


def test_without_a_name_it_is_who_is_logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "grace")

    assert rooms.load("judges", "person").name == "person:grace"


def test_without_a_terminal_nobody_is_asked() -> None:
    child = subprocess.run(
        [sys.executable, "-c", AT_A_TERMINAL], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )

    assert UsageError.__name__ in child.stderr and "on a terminal" in child.stderr


def test_at_a_terminal_questions_go_to_stderr_and_stdout_stays_data() -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", AT_A_TERMINAL], stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True
    )
    os.write(ours, b"y\nn\n")

    output, _ = child.communicate(timeout=60)

    os.close(theirs)
    shown = b""
    with suppress(OSError):  # as a terminal ends on Linux; it may come in pieces
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert output == "[1.0, 0.0]\n" and b'1 of 2: "a heron"' in shown


# -- a second embedding model as a judge --------------------------------------------------------------------------


HERON, POOL = Query.words("a heron"), Query.words("a pool")


@dataclass
class Flat:
    """Vectors in a plane, by the name of the file: a picture called 0.3.jpg has the cosine 0.3 with every query."""

    revision: str = "1"
    asked: list[Query] = field(default_factory=list)

    @property
    def space(self) -> Space:
        return Space("flat", self.revision, "w", "p", 2)

    def query(self, query: Query) -> Vectors:
        self.asked.append(query)
        return np.array([1, 0], np.float32)

    def picture(self, path: Path) -> Vectors:
        if path.stem == "broken":
            raise EyespotError(f"cannot read the picture {path}")
        cosine = float(path.stem)
        return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


def pairs(query: Query, *names: str) -> list[Pair]:
    return [Pair(query, name, Path(f"{name}.jpg")) for name in names]


def test_the_probability_is_the_stated_curve_of_the_cosine() -> None:
    """At 0.25 a half; 0.05 above it 1 / (1 + 1/e)."""
    answers = rooms.load("judges", "encoder:flat", embedding=Flat()).judge(pairs(HERON, "0.25", "0.3"))

    found = [answer.verdict.probability for answer in answers]
    assert found == [0.5, pytest.approx(1 / (1 + np.exp(-1)), abs=1e-6)]


def test_a_broken_picture_fails_alone_and_a_query_is_encoded_once() -> None:
    flat, names = Flat(), ("0.1", "broken", "0.2")
    asked = [*pairs(HERON, *names), *pairs(POOL, *names)]

    answers = list(rooms.load("judges", "encoder:flat", embedding=flat).judge(asked))

    assert [answer.verdict is None for answer in answers] == [False, True, False] * 2
    assert "broken.jpg" in answers[1].failure
    assert flat.asked == [HERON, POOL]


def test_another_revision_is_another_judge_of_the_same_name() -> None:
    one, other = (rooms.load("judges", "encoder:flat", embedding=Flat(revision)) for revision in "12")

    assert one.name == other.name == "encoder:flat" and one.prompt != other.prompt


def test_a_model_that_is_not_there_is_one_sentence() -> None:
    with raises(UsageError):
        _ = SecondModel("nope").space
