"""Drawn pictures: what is written on them comes to the answer."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from eyespot.curate.recos import drawing
from eyespot.curate.recos.drawing import PHRASES
from eyespot.curate.recos.pictures import DrawnCounts, Sources, generator_of, rendered, sample_facts
from eyespot.curate.recos.subtasks import names, subtask
from eyespot.photos.pictures import id_of
from eyespot.pipelines import Failed, Keep
from eyespot.pipelines.step import Context
from eyespot.types import UsageError
from tests.wording import raises

CONTEXT = Context("draw", 1, lambda _prompt: {}, lambda _what, _done, _total: None)
DRAWN = ("code", "numerical", "ocr", "translation")


SIGNS = str.maketrans({"−": "-", "×": "*", "÷": "/"})


def test_sums_and_areas_come_to_what_python_says() -> None:
    for seed in range(200):
        facts = generator_of("numerical").sample(Random(seed))
        assert str(Fraction(eval(facts["shown"].translate(SIGNS)))) == facts["answer"]


def test_programs_print_what_python_prints() -> None:
    programs = [generator_of("code").sample(Random(seed)) for seed in range(100)]
    marked = "\nprint('--')\n".join(facts["shown"] for facts in programs)
    shown = subprocess.run([sys.executable, "-c", marked], capture_output=True, text=True, check=True).stdout
    assert [part.strip("\n") for part in shown.split("--\n")] == [facts["answer"] for facts in programs]
    assert len({facts["kind"] for facts in programs}) == 7


def test_a_sign_and_its_answer_are_one_text_in_two_languages() -> None:
    pairs = {frozenset((phrase["chinese"], phrase["english"])) for phrase in PHRASES}
    for seed in range(100):
        facts = generator_of("translation").sample(Random(seed))
        (words, price), (other, same) = (
            re.fullmatch(r"(.*?)(?: (\d+) ?(?:元|米|yuan|m))?", facts[name]).groups()  # type: ignore[union-attr]
            for name in ("shown", "answer")
        )
        assert frozenset((words, other)) in pairs and price == same


def test_the_fonts_of_the_package_write_every_sign() -> None:
    shipped = [face for face in drawing.faces("chinese") if face.path and face.path.parent == drawing.SHIPPED]
    written = "".join({character for phrase in PHRASES for character in phrase["chinese"]} | set("元米"))

    blank = [{face.at(32).getmask(character).getbbox() for character in written} & {None} for face in shipped]

    assert len(shipped) == 2 and blank == [set(), set()]
    missing = shipped[0].at(32).getmask("\u9f98")  # is not among them, and drawn as a box
    assert all(bytes(shipped[0].at(32).getmask(one)) != bytes(missing) for one in written)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_chance_draws_the_same_picture_and_another_another(name: str) -> None:
    generator = generator_of(name)
    facts = generator.sample(Random(4))
    one, same, other = (np.asarray(generator.draw(facts, Random(seed))) for seed in (1, 1, 2))
    assert one.shape == (*drawing.SIZE[::-1], 3) and (one == same).all() and (one != other).any()


@pytest.mark.parametrize("name", DRAWN)
def test_captions_of_a_drawn_picture_are_five_of_each_kind_and_the_usual_ones_tell_the_answer(name: str) -> None:
    for seed in range(12):
        facts = generator_of(name).sample(Random(seed))
        wording = generator_of(name).wording(facts)
        assert [len(set(kind)) for kind in wording] == [5, 5, 5]
        answer = facts["answer"].rpartition(" ")[0] if name == "ocr" else facts["answer"]
        assert all(answer in text for text in (*wording.usual, *wording.detailed))


def test_no_two_pictures_of_a_sub_task_have_one_answer() -> None:
    made = [one.record for one in sample_facts(CONTEXT, DrawnCounts({"numerical": 40, "translation": 30}))]
    assert [sum(one["subtask"] == name for one in made) for name in ("numerical", "translation")] == [40, 30]
    assert len({(one["subtask"], one["facts"]["answer"]) for one in made}) == 70


def test_a_picture_is_found_under_the_digest_of_its_bytes(tmp_path: Path) -> None:
    record = next(one.record for one in sample_facts(CONTEXT, DrawnCounts({"ocr": 1})))
    sources = Sources(tmp_path, {})

    outcome = rendered(record, CONTEXT, sources)

    assert isinstance(outcome, Keep)
    assert id_of(sources.place(outcome.record).read_bytes()) == outcome.record["image"]
    assert outcome.record["stand_in"]


def test_a_font_that_is_not_here_fails_the_picture(tmp_path: Path) -> None:
    painted = {"board": "red", "wall": "0", "font": "Nobody Sans", "kind": "chinese"}
    facts = {"shown": "出口", "answer": "exit", "kind": "direction", "painted": painted}
    failed = rendered({"id": "x", "subtask": "translation", "facts": facts}, CONTEXT, Sources(tmp_path, {}))
    assert isinstance(failed, Failed) and "Nobody Sans" in failed.detail


def test_there_are_twelve_sub_tasks_in_three_families() -> None:
    kinds = {name: (subtask(name).family, subtask(name).count) for name in names()}
    assert [list(kinds.values()).count(one) for one in (("coarse", 50), ("fine", 30), ("cognitive", 30))] == [7, 2, 3]
    assert [name for name in names() if subtask(name).opt_in] == ["celebrity"]
    with raises(UsageError):
        subtask("chart")
