"""Recipes: what a TOML file declares, and what in it is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from eyespot.pipelines import (
    BatchStep,
    Context,
    CostLimits,
    Declared,
    Keep,
    MapStep,
    Outcome,
    Record,
    Records,
    Step,
    digest_of,
    drops,
    read_recipe,
    run,
)
from eyespot.pipelines.human_review import Case, Choice, Queue, decisions_digest, reviewed, write_queue
from eyespot.types import UsageError
from tests.command import run_eyespot
from tests.wording import raises
from tests.worlds.pipelines import source

GOOD = """
name = "herons"
about = "Questions about herons."
seed = 3

[budget]
calls = 100
money = 2.5

[models]
small = { use = "openai:small", temperature = 0.25 }

[[steps]]
step = "photos"
inputs = { list = "photos.csv" }

[[steps]]
step = "questions"
name = "ask"
prompt = "ask.md"
model = "small"
words = 25

[card.motivation]
purpose = "To find herons."
"""


@dataclass(frozen=True)
class Asking:
    """Settings of a step."""

    words: int = 20
    kinds: tuple[str, ...] = ("causal",)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "ask.md").write_text("Ask a question of {words} words.")
    (tmp_path / "photos.csv").write_text("path\na.jpg\n")
    (tmp_path / "recipe.toml").write_text(GOOD)
    return tmp_path / "recipe.toml"


def made(declared: Declared) -> Step:
    return declared.made(MapStep(lambda record, _context: Keep(record)), version=4)


def test_all_of_a_recipe(recipe: Path) -> None:
    read = read_recipe(recipe)

    photos, ask = read.steps
    assert (read.name, read.seed, read.limits) == ("herons", 3, CostLimits(100, None, 2.5))
    assert read.card == {"motivation": {"purpose": "To find herons."}}
    assert photos.inputs == {"list": recipe.parent / "photos.csv"}
    assert ask == Declared(
        "questions",
        "ask",
        {"words": 25},
        {"prompt": "Ask a question of {words} words."},
        {"small": {"use": "openai:small", "temperature": 0.25}},
    )


def test_a_step_is_made_of_what_is_declared(recipe: Path) -> None:
    photos, ask = read_recipe(recipe).made({"photos": made, "questions": made})
    assert (ask.name, ask.version, ask.settings) == ("ask", 4, {"words": 25})
    assert photos.inputs == {"list": digest_of(recipe.parent / "photos.csv")}


def test_settings_become_an_object_or_are_refused() -> None:
    assert Declared("questions", "ask", {"words": 25}).fitted(Asking) == Asking(25)
    for wrong in ({"word": 25}, {"words": "many"}):
        with raises(UsageError):
            Declared("questions", "ask", wrong).fitted(Asking)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(
            ("[budget]", "[budgets]"),
            ("money", "euros"),
            ("money = 2.5", 'money = "much"'),
            ("money = 2.5", "money = nan"),
        ),
        *(("seed = 3", 'seed = "3"'), ("seed = 3", 'strict = "yes"'), ("name =", "name"), ("[[steps]]", "[[step]]")),
        *(('model = "small"', new) for new in ('model = "large"', 'models = ["small", "small"]', "models = [1]")),
        *(('model = "small"', new) for new in ('models = "small"', "models = 3")),
        *(('prompt = "ask.md"', 'prompt = "no.md"'), ('prompt = "ask.md"', "prompt = 7")),
        *(('step = "photos"', ""), ('step = "photos"', 'step = "fotos"'), ('"photos.csv"', '"gone.csv"')),
        *(('{ list = "photos.csv" }', "{ list = 5 }"), ("temperature = 0.25", "since = 2024-02-29")),
        *(
            ("temperature = 0.25", "temperature = nan"),
            ('{ use = "openai:small", temperature = 0.25 }', '"openai:small"'),
        ),
    ],
)
def test_what_is_wrong_is_said(recipe: Path, old: str, new: str) -> None:
    recipe.write_text(GOOD.replace(old, new))
    with raises(UsageError):
        read_recipe(recipe).made({"photos": made, "questions": made})


def test_a_folder_is_another_once_a_file_in_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.jpg").write_bytes(b"1")
    before = digest_of(tmp_path)
    (tmp_path / "a" / "y.jpg").write_bytes(b"2")
    assert digest_of(tmp_path) != before


def test_an_input_without_an_end_is_refused(recipe: Path) -> None:
    """A recipe of others may name a device, which would be read for ever."""
    recipe.write_text(GOOD.replace("photos.csv", "/dev/zero"))
    with pytest.raises(UsageError, match="/dev/zero is not a file"):
        read_recipe(recipe).made({"photos": made, "questions": made})


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
    queue.decide(CASES[0], "drop", "ada", note="it is one")
    queue.decide(CASES[1], "mend", "ada", texts={"caption": "two blue cups"})

    again = Queue(queue.path)

    assert [(one.who, one.choice) for one in again.decisions()] == [("ada", "accept"), ("ada", "drop"), ("ada", "mend")]
    assert again.standing()["face"].note == "it is one" and again.open() == [CASES[2]]
    assert again.counts() == {"cases": 3, "open": 1, "accept": 0, "mend": 1, "drop": 1}


def test_people_who_differ_leave_a_case_open_until_somebody_settles_it(queue: Queue) -> None:
    """Both decisions stay, and tell how far people agree; what was chosen in sight of others does not."""
    for case, (ada, bob) in zip(CASES[:3], (("accept", "drop"), ("drop", "drop"), ("accept", "accept")), strict=True):
        queue.decide(case, ada, "ada")
        queue.decide(case, bob, "bob")
    before = queue.agreement(), set(queue.standing()), queue.open()

    queue.decide(CASES[0], "drop", "cy", settles=True)

    # They agree on 2 of 3; by chance on 4 of 9 (2/3 · 1/3 + 1/3 · 2/3)
    assert (before[0]["kappa"], before[0]["disputed"]) == (pytest.approx(0.4), 1)
    assert CASES[0].id not in before[1] and CASES[0] in before[2]
    assert queue.standing()[CASES[0].id].who == "cy" and [one.who for one in queue.opinions()[CASES[0].id]] == [
        *("ada", "bob", "cy")
    ]
    assert queue.agreement() == before[0] | {"disputed": 0}
    assert not {one.id for one in queue.open("ada")} & {one.id for one in CASES[:3]}


@pytest.mark.parametrize(
    ("choices", "why"),
    [
        ({"ada": "accept"}, "no case was decided by two people"),
        ({"ada": "accept", "bob": "accept"}, "all chose accept, so agreement by chance is not known"),
        ({"ada": "accept", "bob": "drop", "cy": "drop"}, "kappa is for two people, and there are 3"),
    ],
)
def test_where_there_is_no_agreement_it_says_why(queue: Queue, choices: dict[str, Choice], why: str) -> None:
    for who, choice in choices.items():
        queue.decide(CASES[0], choice, who)
    assert queue.agreement()["why"] == why and queue.agreement()["kappa"] is None


def test_a_decision_in_sight_of_another_settles_and_a_blind_one_is_an_opinion(queue: Queue) -> None:
    for case, blind in ((CASES[0], False), (CASES[1], True)):
        seen = queue.decide_seeing(None, case, "accept", "ada", blind=blind).digest
        for _ in range(2):  # a click that comes twice counts once
            queue.decide_seeing(seen, case, "drop", "bob", blind=blind)

    assert queue.standing()[CASES[0].id].who == "bob" and CASES[1].id not in queue.standing()
    assert len(queue.decisions()) == 4
    queue.withdraw_seeing(queue.opinions()[CASES[1].id][1].digest, CASES[1], "bob")
    assert queue.standing()[CASES[1].id].who == "ada"


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
def test_a_decision_holds_for_what_was_seen_alone(tmp_path: Path, decided: Case, now: Case, open: bool) -> None:
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

    others = [*line[:-2], "bo", "--second"]
    second = subprocess.run(others, input="a\na\na\n", capture_output=True, text=True, timeout=60)
    assert second.returncode == 0 and "two blue cups" not in second.stderr, second.stderr
    assert [one.who for one in queue.decisions()].count("bo") == 3
