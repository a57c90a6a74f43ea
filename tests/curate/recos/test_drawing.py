"""Drawn pictures: what is written on them comes to the answer, by our own reckoning and by Python's."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyespot.curate.recos.drawing import lettering, papers
from eyespot.curate.recos.drawing.arithmetic import evaluate, plain
from eyespot.curate.recos.drawing.programs import printed
from eyespot.curate.recos.drawing.signs import PHRASES, translated
from eyespot.curate.recos.drawn import DrawnCounts, generator_of, invented, rendered
from eyespot.curate.recos.sources import Sources
from eyespot.curate.recos.subtasks import names, subtask
from eyespot.photos.pictures import id_of
from eyespot.pipelines import Drop, Failed, Keep
from eyespot.pipelines.step import Context
from eyespot.types import UsageError
from tests.wording import raises

CONTEXT = Context("draw", 1, lambda _prompt: {}, lambda _what, _done, _total: None)
DRAWN = ("code", "numerical", "ocr", "translation")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(("7+5×3", "22"), ("(7+5)×3÷4", "9"), ("20−6−4", "10"), ("-(2+3)*2", "-10")),
        *(("1/8", "0.125"), ("1÷3", "1/3"), ("(12+6)×6÷2", "54")),
    ],
)
def test_sums_that_can_be_checked_by_hand(written: str, value: str) -> None:
    assert plain(evaluate(written)) == value


@given(st.recursive(st.integers(0, 99), lambda part: st.tuples(st.sampled_from("+-*"), part, part), max_leaves=8))
def test_a_sum_comes_to_what_its_tree_comes_to(tree: object) -> None:
    def text(node: object) -> str:
        return str(node) if isinstance(node, int) else f"({text(node[1])}{node[0]}{text(node[2])})"  # type: ignore[index]

    def value(node: object) -> Fraction:
        if isinstance(node, int):
            return Fraction(node)
        sign, one, other = node  # type: ignore[misc]
        left, right = value(one), value(other)
        return left + right if sign == "+" else left - right if sign == "-" else left * right

    assert evaluate(text(tree)) == value(tree)


@pytest.mark.parametrize("wrong", ["", "7+", "(7", "7 5", "__import__", "7÷0", "7**2", "(" * 99 + "1" + ")" * 99])
def test_what_is_no_sum_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        evaluate(wrong)


def test_programs_print_what_python_prints() -> None:
    programs = [generator_of("code").invent(Random(seed))["shown"] for seed in range(60)]
    marked = "\nprint('--')\n".join(programs)
    shown = subprocess.run([sys.executable, "-c", marked], capture_output=True, text=True, check=True).stdout
    assert [part.strip("\n") for part in shown.split("--\n")] == [printed(program) for program in programs]


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            "import os",
            "print(open('x'))",
            "print((1).__class__)",
            "while True:\n    x = 1",
            "x = 'a' * 99999",
            "print(x)",
        ),
        *("x = 'ab'\nfor i in range(99):\n    x = x + x", "x = 2\nfor i in range(99):\n    x = x * x"),
        *("print(range(10**9))", "print([][1])", "print('%d' % 3)", "def f(): pass", "x = lambda: 1", "("),
    ],
)
def test_what_a_small_program_may_not_do_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError):
        printed(wrong)


@pytest.mark.parametrize(
    "text", ["出口", "exit", "红茶 12元", "black tea 12 yuan", "地铁站 200米", "subway station 200 m"]
)
def test_a_sign_translated_twice_is_the_sign(text: str) -> None:
    assert translated(text) != text and translated(translated(text)) == text


def test_the_fonts_of_the_package_write_every_sign() -> None:
    shipped = [face for face in lettering.faces("chinese") if face.path and face.path.parent == lettering.SHIPPED]
    written = "".join({character for phrase in PHRASES for character in phrase.chinese} | set("元米"))

    blank = [{face.at(32).getmask(character).getbbox() for character in written} & {None} for face in shipped]

    assert len(shipped) == 2 and blank == [set(), set()]
    missing = shipped[0].at(32).getmask("\u9f98")  # is not among them, and drawn as a box
    assert all(bytes(shipped[0].at(32).getmask(one)) != bytes(missing) for one in written)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_chance_draws_the_same_picture_and_another_another(name: str) -> None:
    generator = generator_of(name)
    facts = generator.invent(Random(4))
    one, same, other = (np.asarray(generator.paint(facts, Random(seed))) for seed in (1, 1, 2))
    assert one.shape == (*papers.SIZE[::-1], 3) and (one == same).all() and (one != other).any()


@pytest.mark.parametrize("name", DRAWN)
def test_captions_of_a_drawn_picture_are_five_of_each_kind_and_the_usual_ones_tell_the_answer(name: str) -> None:
    for seed in range(12):
        facts = generator_of(name).invent(Random(seed))
        wording = generator_of(name).wording(facts)
        assert [len(set(kind)) for kind in wording] == [5, 5, 5]
        answer = facts["answer"].rpartition(" ")[0] if name == "ocr" else facts["answer"]
        assert all(answer in text for text in (*wording.usual, *wording.detailed))


def test_no_two_pictures_of_a_sub_task_have_one_answer() -> None:
    made = [one.record for one in invented(CONTEXT, DrawnCounts({"numerical": 40, "translation": 30}))]
    assert [sum(one["subtask"] == name for one in made) for name in ("numerical", "translation")] == [40, 30]
    assert len({(one["subtask"], one["facts"]["answer"]) for one in made}) == 70


def test_a_picture_is_found_under_the_digest_of_its_bytes(tmp_path: Path) -> None:
    record = next(one.record for one in invented(CONTEXT, DrawnCounts({"ocr": 1})))
    sources = Sources(tmp_path, {})

    outcome = rendered(record, CONTEXT, sources)

    assert isinstance(outcome, Keep)
    assert id_of(sources.place(outcome.record).read_bytes()) == outcome.record["image"]
    assert outcome.record["stand_in"]


def test_a_wrong_answer_is_dropped_and_a_font_that_is_not_here_fails_the_picture(tmp_path: Path) -> None:
    record = next(one.record for one in invented(CONTEXT, DrawnCounts({"numerical": 1})))
    painted = {"board": "red", "wall": "0", "font": "Nobody Sans", "kind": "chinese"}
    facts = {"shown": "出口", "answer": "exit", "kind": "direction", "painted": painted}

    wrong = rendered({**record, "facts": {**record["facts"], "answer": "0"}}, CONTEXT, Sources(tmp_path, {}))
    failed = rendered({"id": "x", "subtask": "translation", "facts": facts}, CONTEXT, Sources(tmp_path, {}))

    assert isinstance(wrong, Drop) and wrong.reason == "wrong answer" and not list(tmp_path.iterdir())
    assert isinstance(failed, Failed) and "Nobody Sans" in failed.detail


def test_there_are_twelve_sub_tasks_in_three_families() -> None:
    kinds = {name: (subtask(name).family, subtask(name).count) for name in names()}
    assert [list(kinds.values()).count(one) for one in (("coarse", 50), ("fine", 30), ("cognitive", 30))] == [7, 2, 3]
    assert [name for name in names() if subtask(name).opt_in] == ["celebrity"]
    with raises(UsageError):
        subtask("chart")
