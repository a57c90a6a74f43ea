"""The review queue: what a person decides is kept at once, and the last word counts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eyespot.pipelines import BatchStep, Context, Outcome, Record, Records, Step, drops, run
from eyespot.pipelines.human_review import Case, Queue, decisions_digest, reviewed, write_queue
from eyespot.types import UsageError
from tests.command import run_eyespot
from tests.wording import raises
from tests.worlds.pipelines import source

CASES = [
    Case("face", "Is this a face?", ("photos/face.jpg",)),
    Case("words", "Is this caption true?", ("a.jpg", "b.jpg"), {"caption": "two red cups", "colour": "red"}),
    Case("last", "Is it empty?"),
]


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    write_queue(tmp_path / "queue.jsonl", CASES)
    return Queue(tmp_path / "queue.jsonl")


def test_the_last_decision_counts_and_all_stay(queue: Queue) -> None:
    queue.decide(CASES[0], "accept", "ada")
    queue.decide(CASES[0], "drop", "bob", note="it is one")
    queue.decide(CASES[1], "mend", "ada", texts={"caption": "two blue cups"})

    again = Queue(queue.path)

    assert [(one.who, one.choice) for one in again.decisions()] == [("ada", "accept"), ("bob", "drop"), ("ada", "mend")]
    assert again.standing()["face"].note == "it is one" and again.open() == [CASES[2]]
    assert again.counts() == {"cases": 3, "open": 1, "accept": 0, "mend": 1, "drop": 1}


@pytest.mark.parametrize(
    ("decided", "now", "open"),
    [
        (Case("a", "Red?", ("x/face.jpg",)), Case("a", "Red?", ("x/other.jpg",)), True),
        (Case("a", "Red?", ("x/face.jpg",)), Case("a", "Blue?", ("x/face.jpg",)), True),
        (Case("a", "Red?", ("x/face.jpg",)), Case("a", "Red?", ("/elsewhere/x/face.jpg",)), False),
        (Case("a", "Red?", ("old.jpg",), shown=("3f",)), Case("a", "Red?", ("new.jpg",), shown=("3f",)), False),
        (Case("a", "Red?", ("old.jpg",), shown=("3f",)), Case("a", "Red?", ("old.jpg",), shown=("4f",)), True),
    ],
    ids=["another name", "another question", "another folder", "the same bytes", "other bytes"],
)
def test_a_decision_holds_for_what_was_seen_and_lapses_else(
    tmp_path: Path, decided: Case, now: Case, open: bool
) -> None:
    path = tmp_path / "queue.jsonl"
    write_queue(path, [decided])
    Queue(path).decide(decided, "accept", "ada")

    write_queue(path, [now])

    assert Queue(path).open() == [now] * open and Queue(path).lapsed() == ["a"] * open
    shown = run_eyespot("build", "review", path)
    assert f" {int(open)} open " in shown.stdout and ("no longer stand" in shown.stderr) is open


def test_a_decision_that_a_kill_cut_is_open_and_costs_no_other(queue: Queue) -> None:
    queue.decide(CASES[0], "accept", "ada")
    with queue.decided.open("ab") as file:
        file.write(b'{"id": "words", "choi')
    assert [one.id for one in queue.decisions()] == ["face"]

    queue.decide(CASES[2], "drop", "ada")

    assert [one.id for one in queue.decisions()] == ["face", "last"]
    for number in (0, 2):
        queue.withdraw_seeing(queue.standing()[CASES[number].id].digest, CASES[number], "ada")
    assert queue.open() == CASES and queue.lapsed() == []


@pytest.mark.parametrize(
    ("choice", "texts"),
    [("mend", {}), ("accept", {"caption": "x"}), ("mend", {"title": "x"}), ("drop", {"caption": "x"})],
)
def test_only_texts_are_mended_and_only_by_mending(queue: Queue, choice: str, texts: dict[str, str]) -> None:
    with raises(UsageError):
        queue.decide(CASES[1], choice, "ada", texts=texts)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queue.jsonl", '{"id": 7}'),
        ("queue.jsonl", '{"id": "a", "pictures": [1]}'),
        ("queue.jsonl", '{"id": "a", "shown": "3f"}'),
        ("queue.csv", "id"),
        ("a.decisions.jsonl", ""),
    ],
)
def test_what_is_no_queue_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with raises(UsageError):
        Queue(tmp_path / name)


@pytest.mark.parametrize("line", ["[]", "{}", '{"id":"face","choice":"keep","who":"ada","case":"0"}'])
def test_a_line_that_is_no_decision_is_refused(queue: Queue, line: str) -> None:
    queue.decided.write_text(line + "\n")
    with raises(UsageError):
        queue.open()


def doubtful(place: Path) -> Step:
    """A step that is in doubt of every odd number."""

    def doubt(record: Record) -> Case | None:
        return Case(record["id"], "Is it odd?", texts={"said": "odd"}) if record["number"] % 2 else None

    def work(records: Records, _context: Context) -> list[Outcome]:
        return list(reviewed(records, place, doubt))

    return Step("doubtful", BatchStep(work), inputs={"decisions": decisions_digest(place)})


def test_records_wait_for_a_person_and_then_go_on(tmp_path: Path) -> None:
    place = tmp_path / "queue.jsonl"
    first = run([source(8), doubtful(place)], tmp_path / "work")[-1]
    assert first.counts == (8, 0, 4, {"awaits review": 4}, 4)
    queue = Queue(place)
    queue.decide(queue.cases["n1"], "accept", "ada")
    queue.decide(queue.cases["n3"], "mend", "ada", texts={"said": "three"})
    queue.decide(queue.cases["n5"], "drop", "ada", note="dull")

    done = run([source(8), doubtful(place)], tmp_path / "work")[-1]

    assert done.counts == (8, 0, 6, {"awaits review": 1, "dropped in review": 1}, 1)
    assert [(one["id"], one.get("said")) for one in done.records if one["number"] % 2] == [
        ("n1", None),
        ("n3", "three"),
    ]
    assert next(drops(done.folder))[1:3] == ("dropped in review", "dull")


def test_reviewing_on_the_terminal(queue: Queue) -> None:
    """Accept, step back and drop instead, mend one of two texts after a key that is none, leave the last one open."""
    keys = "a\nb\nd\nit is one\nx\nm\ntwo blue cups\n\nq\n"
    line = [sys.executable, "-m", "eyespot.cli", "build", "review", str(queue.path), "--as", "ada", "--json"]

    shown = subprocess.run(line, input=keys, capture_output=True, text=True, timeout=60)

    assert shown.returncode == 0, shown.stderr
    counts = json.loads(shown.stdout)
    assert [counts[name] for name in ("cases", "open", "accept", "mend", "drop")] == [3, 1, 0, 1, 1]
    assert queue.standing()["words"].texts == {"caption": "two blue cups"}
    assert "2 of 3  words" in shown.stderr and "picture  b.jpg" in shown.stderr
    assert [one.who for one in queue.decisions()] == ["ada", "ada", "ada"]
