"""A writer that is of many minds: five captions, a single one, one said twice, silence; the card's numbers by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.recos.making import RecosSteps, write
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.pipelines import CallMeter, NoAnswer, Prompt, RunOptions, read_recipe, run
from eyespot.pipelines.prompts import Models
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds import annotation as world
from tests.worlds import recos as worlds

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
        if re.search(rf"^{number}\. {before}$", prompt["words"], re.MULTILINE)
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
        ("Sub-tasks", [["colour", 3, 3, 0, 11], ["together", 3, 3, 0, 11]]),
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
            "colour: 4 of 6 pictures",
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
