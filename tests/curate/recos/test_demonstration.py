"""The demonstration writer: what it says is true by the labels, and it stops where it has no more to say."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from eyespot.curate.recos import checking, demonstration, drawing
from eyespot.curate.recos.drawing import PHRASES, handwriting
from eyespot.curate.recos.making import RecosSteps, write
from eyespot.curate.recos.pictures import (
    AMBIGUOUS,
    DRAWN,
    DrawnCounts,
    Sources,
    collected,
    generator_of,
    rendered,
    sample_facts,
)
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.recos.subtasks import Collecting, SubtaskPictures, names, subtask, token_edits
from eyespot.photos.pictures import id_of
from eyespot.pipelines import CallMeter, Failed, Keep, NoAnswer, Prompt, Record, RunOptions, drops, read_recipe, run
from eyespot.pipelines.prompts import Models
from eyespot.pipelines.step import Context
from eyespot.types import UsageError
from tests.examples import examples
from tests.wording import raises
from tests.worlds import annotation as world, recos as worlds
from tests.worlds.recos import made, recipe

DOG = {"caption_1": "A brown dog runs through deep snow .", "caption_2": "A dog in the snow ."}


class Till:
    """Nothing is paid for."""


def reply(task: str, **known: Any) -> Mapping[str, Any]:
    prompt: Prompt = {"use": "demonstration", "pictures": ["picture"], "known": {"task": task, "writing": "", **known}}
    return demonstration.writer(prompt, Till())  # type: ignore[arg-type]


def swaps(text: str, facts: Mapping[str, str], *attributes: str, before: Mapping[str, str] | None = None) -> list[Any]:
    answer = reply("confuse", captions=[(1, text)], facts=facts, before=before or {}, attributes=attributes)
    return [(one["text"], one["attribute"]) for one in answer["captions"]]


def test_a_confusing_caption_is_what_people_say_of_the_other_picture() -> None:
    found = swaps("A white dog runs after a ball through deep snow.", DOG, "colour")
    assert found == [("A brown dog runs through deep snow.", "colour")]
    assert swaps("A dog in the snow.", {}, "colour") == []


def test_a_title_takes_the_place_of_a_title() -> None:
    found = swaps("This is Eiffel Tower.", {"title": "Petra-5"}, "name", before={"title": "Eiffel Tower (2)"})
    assert found == [("This is Petra.", "name")]


@pytest.mark.parametrize(
    ("title", "fits"),
    (("Crocodile", "object"), ("Windmill Linda 1", "scene"), ("Pagellus acarne 04", "celebrity"), ("", "")),
)
def test_a_title_is_a_caption_of_the_sub_tasks_that_depend_on_what_it_says(title: str, fits: str) -> None:
    """No crocodile under location, no monument as a scene; a bare title is a name, which nobody searches objects by."""
    answers = {
        name: reply("caption", facts={"title": title}, attributes=subtask(name).attributes)["captions"]
        for name in ("action", "celebrity", "colour", "count", "figure", "location", "object", "ocr", "scene")
    }
    assert {name for name, captions in answers.items() if captions} == set(fits.split())


def test_of_several_captions_each_takes_one_that_no_other_has() -> None:
    captions = [(1, "A white dog runs after a ball."), (2, "A white dog runs after a red ball.")]
    entries = reply("confuse", captions=captions, facts=DOG, before={}, attributes=["colour"])["captions"]
    assert {one["number"] for one in entries} == {1, 2}
    assert {one["text"] for one in entries} == {"A brown dog runs through deep snow.", "A dog in the snow."}


def test_what_cannot_be_told_more_of_is_left() -> None:
    text, tried = "A child paints.", list[str]()
    while text and len(tried) < 9:
        tried.append(text)
        text = reply("rewrite", caption=text, wish="more", facts={})["caption"]
    assert text == "" and len(set(tried)) == len(tried) == 4


# -- no caption of the set is true of two pictures, as far as those who drew the pictures know -------------------


KINDS = ("code", "numerical", "ocr", "translation")


def context(seed: int, pictures: list[Record] | None = None) -> Context:
    def ask(_prompt: object) -> dict[str, object]:
        raise AssertionError("nobody is asked")

    return Context("draw", seed, ask, lambda _what, _done, _total: None, {"render": pictures or []})  # type: ignore[dict-item]


def drawn(seed: int, count: int) -> list[Record]:
    """So many pictures of each kind, as they would be drawn."""
    found = (one.record for one in sample_facts(context(seed), DrawnCounts(dict.fromkeys(KINDS, count))))
    return [{**one, "image": f"image-{one['id']}", "source": DRAWN} for one in found]


def captions(pictures: list[Record], chance: Random) -> list[dict[str, Any]]:
    """For each picture five captions, each as detailed as chance will."""
    return [
        {**one, "id": f"{one['id']}/{number}", "number": number + 1, "level": level, "text": wording[level][number]}
        for one in pictures
        for wording in [generator_of(one["subtask"]).wording(one["facts"])]
        for number in range(5)
        for level in [chance.randrange(3)]
    ]


def true_of(text: str, pictures: list[Record]) -> set[str]:
    """The pictures of which a text is a wording."""
    words = {one["image"]: generator_of(one["subtask"]).wording(one["facts"]) for one in pictures}
    return {
        image for image, wording in words.items() if bare(text) in {bare(one) for level in wording for one in level}
    }


def bare(text: str) -> str:
    return text.casefold().rstrip(".")


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.floats(0.1, 1.0))
def test_no_caption_that_is_kept_is_true_of_two_pictures_of_the_pool(seed: int, count: int, share: float) -> None:
    """Only some of the pictures have captions; the others are there to be ranked."""
    pictures, chance = drawn(seed, count), Random(seed)
    came = captions([one for one in pictures if chance.random() < share], chance)
    steps = (
        lambda: checking.completed(came, context(0, pictures), checking.Completing(1), {}),
        lambda: checking.apart(came, context(0, pictures)),
    )
    for step in steps:
        survivors = {one.record["id"] for one in step() if isinstance(one, Keep)}

        assert survivors == {one["id"] for one in came if len(true_of(one["text"], pictures)) == 1}


@pytest.mark.long
def test_a_wording_that_is_true_of_another_picture_is_not_taken(tmp_path: Path, gallery: Path) -> None:
    narrow = 'model = "writer"\nk = 4\ntemperature = 0.002\neta = 0.5\nrounds = 2\nat_limit = "{limit}"'
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.translation]\ncount = 12\n'
    lines = {"draw": "subtasks = { translation = 24 }", "collect": collect, "complete": "least = 1"}
    vague = made(recipe(tmp_path, gallery, discriminate=narrow.format(limit="drop"), **lines), tmp_path)
    pictures = list(next(one for one in vague.done if one.step.name == "render").records)
    complete = next(one for one in vague.done if one.step.name == "complete")

    lost = [one for one in drops(complete.folder) if one.reason == AMBIGUOUS]
    assert lost and all(len(true_of(one.detail, pictures)) > 1 for one in lost)
    for one in (one for one in vague.records if "text" in one):
        assert true_of(one["text"], pictures) == {one["image"]}


# -- A writer that is of many minds ------------------------------------------------------------------------------


CAPTIONS = {  # of the four red photos
    "windmill1": [f"A red windmill stands {where}." for where in ("alone", "high", "still", "here", "firm")],
    "windmill8": ["The red mill of the hills."],
    "fish1": ["A red fish rests.", "One red fish swims very slowly past us.", "a RED fish rests."],
}
SWAPS = {  # the caption that is changed, and what it becomes
    "A red windmill stands alone.": (1, "A blue windmill stands alone."),
    "The red mill of the hills.": (1, "The white mill of the hills."),
    "One red fish swims very slowly past us.": (2, "Two green fish swim very slowly past us."),
}
STEPS = ("draw", "render", "collect", "caption", "discriminate", "review", "complete", "pair", "confuse")


def client(prompt: Prompt, _meter: CallMeter) -> Mapping[str, Any]:
    """What the writer of this world says."""
    name = Path(prompt["_pictures"][0]).stem.partition("__")[2]
    if prompt["_form"].__name__ == "Captions":
        if name not in CAPTIONS:
            raise NoAnswer("it says nothing")
        return {"captions": CAPTIONS[name], "unsuitable": ""}
    swaps = [
        {"number": number, "text": text, "attribute": "colour"}
        for before, (number, text) in SWAPS.items()
        if re.search(rf'^{number}\. "{before}"$', prompt["words"], re.MULTILINE)
    ]
    return {"captions": swaps, "unsuitable": ""}


@pytest.fixture(scope="module")
def disagreeing(tmp_path_factory: pytest.TempPathFactory) -> RecosSteps:
    """Of six red photos that are wanted there are four; every caption is put to a person, who never comes."""
    out = tmp_path_factory.mktemp("disagreeing")
    gallery = worlds.photos(out / "photos", worlds.WANTED[:16])
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 6\nwords = ["red"]'
    place = worlds.recipe(
        out,
        gallery,
        'writer = { use = "world:writer" }',
        draw="subtasks = {}",
        collect=collect,
        discriminate='model = "writer"\nk = 2\nrounds = 0\nat_limit = "keep"',
        review='undecided = "keep"\nshare = 1.0',
        complete="least = 1",
    )
    head, *steps = place.read_text(encoding="utf-8").split("[[steps]]\n")
    subset = [step for step in steps if step.partition("\n")[0] in {f'step = "{name}"' for name in STEPS}]
    place.write_text("[[steps]]\n".join([head, *subset]), encoding="utf-8")
    job = RecosPipeline(read_recipe(place), out)
    return write(job, run(job.steps, job.work, RunOptions(3, client=Models({"world": client}))))[0]


def test_pictures_with_any_number_of_captions_are_kept(disagreeing: RecosSteps) -> None:
    (caption,) = [one for one in disagreeing.done if one.step.name == "caption"]
    assert (caption.counts.came, caption.counts.kept) == (4, 8)
    assert caption.counts.dropped == {"repeated caption": 1, "no answer": 1}


def test_confusing_captions_say_what_they_were(disagreeing: RecosSteps) -> None:
    captions = {one["original"]: (one["number"], one["text"], one["edits"]) for one in disagreeing.captions("v1")}
    assert {before: text for before, (_, text, _) in captions.items()} == {b: text for b, (_, text) in SWAPS.items()}
    assert sorted(edits for *_, edits in captions.values()) == [1, 1, 3]


@pytest.mark.parametrize(
    ("title", "rows"),
    [
        ("Sub-tasks", [["colour", 6, 3, 3, 0, 11, 26], ["together", 6, 3, 3, 0, 11, 26]]),
        ("Who looked at the captions", [["v0", 8, 0, 0, 8, 0, 0, "–"], ["v1", 3, 0, 0, 0, 3, 0, "–"]]),
        ("What confusing captions changed", [["colour", 3, "1.7", 3]]),
    ],
)
def test_tables_of_the_card(disagreeing: RecosSteps, title: str, rows: list[list[object]]) -> None:
    (table,) = [one for one in disagreeing.card_content().tables if one.title == title]
    assert [list(row) for row in table.rows] == rows


def test_numbers_in_the_sentences_of_the_card(disagreeing: RecosSteps) -> None:
    text = (disagreeing.pipe.out / "set" / "README.md").read_text(encoding="utf-8")

    for part in (
        *(
            "looked at 11 of 11 captions: 8 wait",
            "3 were shown to nobody",
            "colour: 3 of 6 pictures have captions, and 4 were found",
            "1 of 4 pictures",
        ),
        *(
            "v0: 3 pictures, 8 captions; v1: 6 pictures, 11 captions; v2: 6 pictures, 11 captions.",
            "writer (world:writer)",
        ),
        "galleries: own.",
    ):
        assert part in text
    assert "of v1 lost" not in text and "demonstration" not in text


def test_a_gallery_of_another_space_is_refused_with_the_way_out(tmp_path: Path) -> None:
    other = world.gallery(tmp_path, 4, 2)  # vectors that were imported are not those of the encoder installed here
    with raises(UsageError):
        worlds.ran(worlds.recipe(tmp_path, other, draw="subtasks = {}"), tmp_path / "out")


CONTEXT = Context("draw", 1, lambda _prompt: {}, lambda _what, _done, _total: None)
DRAWING_DRAWN = ("code", "numerical", "ocr", "translation")


SIGNS = str.maketrans({"−": "-", "×": "*", "÷": "/"})


def test_sums_and_areas_come_to_what_python_says() -> None:
    for seed in range(200):
        facts = generator_of("numerical").sample(Random(seed))
        assert str(Fraction(eval(facts["shown"].translate(SIGNS)))) == facts["answer"]


@pytest.mark.parametrize("name", ("code", "numerical", "ocr", "translation"))
def test_a_sibling_differs_in_one_digit_constant_or_word_and_so_does_its_answer(name: str) -> None:
    """Signs without a number are other signs of the same kind."""
    generator, found = generator_of(name), 0
    for seed in range(60):
        facts = generator.sample(Random(seed))
        other = generator.sibling(facts, Random(seed))
        if other is None:
            continue
        found += 1
        assert other["answer"] != facts["answer"] and other.keys() == facts.keys()
        # What makes sense of a program stays: no `word[::-4]`, no count that goes up by 7
        for fixed in ("[::-1]", "found += 1", "steps += 1", "* 2 + 1", "== 0", "print(0)", "* 0)", "* 1)", "range(1)"):
            assert (fixed in facts["shown"]) == (fixed in other["shown"])
        if name == "numerical" and "figure" in facts:
            ranges = handwriting.FIGURES[facts["figure"]]["sides"]
            assert all(low <= side <= high for side, (low, high) in zip(other["sides"], ranges, strict=True))
        if re.search(r"\d", facts["shown"]) and "[::-1]" not in facts["shown"]:
            pairs = zip(*(re.findall(r"\d|\D+", one["shown"]) for one in (facts, other)), strict=True)
            assert sum(one != another for one, another in pairs) in ((1, 2) if "figure" in facts else (1,))
        elif name == "code":
            assert token_edits(*(re.findall(r"\w+", one["shown"]) for one in (facts, other))) == 1
        else:
            assert other["kind"] == facts["kind"]
    assert found > 40


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


@pytest.mark.parametrize("name", DRAWING_DRAWN)
def test_the_same_chance_draws_the_same_picture_and_another_another(name: str) -> None:
    generator = generator_of(name)
    facts = generator.sample(Random(4))
    one, same, other = (np.asarray(generator.draw(facts, Random(seed))) for seed in (1, 1, 2))
    assert one.shape == (*drawing.SIZE[::-1], 3) and (one == same).all() and (one != other).any()


@pytest.mark.parametrize("name", DRAWING_DRAWN)
def test_captions_of_a_drawn_picture_are_five_of_each_kind_and_the_usual_ones_tell_the_answer(name: str) -> None:
    for seed in range(12):
        facts = generator_of(name).sample(Random(seed))
        wording = generator_of(name).wording(facts)
        assert [len(set(kind)) for kind in wording] == [5, 5, 5]
        answer = facts["answer"].rpartition(" ")[0] if name == "ocr" else facts["answer"]
        assert all(answer in text for text in (*wording.usual, *wording.detailed))


def test_no_two_pictures_of_a_sub_task_have_one_answer() -> None:
    made = [one.record for one in sample_facts(CONTEXT, DrawnCounts({"numerical": 40, "translation": 30}))]
    siblings = [sum(one["subtask"] == name for one in made) for name in ("numerical", "translation")]
    assert (siblings, sum("sibling" in one for one in made)) == ([79, 59], 68)
    assert len({(one["subtask"], one["facts"]["answer"]) for one in made}) == len(made)


def test_pictures_with_a_sibling_are_taken_first_and_a_larger_count_keeps_them(tmp_path: Path) -> None:
    made = [one.record for one in sample_facts(CONTEXT, DrawnCounts({"translation": 50}))]
    paired = {one["sibling"] for one in made if "sibling" in one}
    taken = []
    for count in (len(paired), len(paired) + 5):
        how = Collecting(subtasks={"translation": SubtaskPictures(count)})
        outcomes = collected(made, CONTEXT, Sources(tmp_path, {}), how)
        taken.append({one.record["id"] for one in outcomes if isinstance(one, Keep)})
    assert 0 < len(paired) < 45 and taken[0] == paired < taken[1] and len(taken[1]) == len(paired) + 5


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
