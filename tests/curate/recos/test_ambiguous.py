"""No caption of the set is true of two pictures, as far as those who drew the pictures know."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eyespot.curate.recos import checking
from eyespot.curate.recos.making import RecosSteps
from eyespot.curate.recos.pictures import AMBIGUOUS, DRAWN, DrawnCounts, generator_of, sample_facts
from eyespot.pipelines import Keep, Record, drops
from eyespot.pipelines.step import Context
from tests.examples import examples
from tests.worlds.recos import made, recipe

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
        lambda: checking.completed(came, context(0, pictures), checking.Completing(1)),
        lambda: checking.apart(came, context(0, pictures)),
    )
    for step in steps:
        survivors = {one.record["id"] for one in step() if isinstance(one, Keep)}

        assert survivors == {one["id"] for one in came if len(true_of(one["text"], pictures)) == 1}


@pytest.fixture(scope="module")
def vague(tmp_path_factory: pytest.TempPathFactory, gallery: Path) -> RecosSteps:
    """A set whose signs are written of as vaguely as the band of dis(t) lets them."""
    out = tmp_path_factory.mktemp("vague")
    narrow = 'model = "writer"\nk = 4\ntemperature = 0.002\neta = 0.5\nrounds = 2\nat_limit = "{limit}"'
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.translation]\ncount = 12\n'
    lines = {"draw": "subtasks = { translation = 24 }", "collect": collect, "complete": "least = 1"}
    return made(recipe(out, gallery, discriminate=narrow.format(limit="drop"), **lines), out)


@pytest.mark.long
def test_a_wording_that_is_true_of_another_picture_is_not_taken(vague: RecosSteps) -> None:
    pictures = list(next(one for one in vague.done if one.step.name == "render").records)
    complete = next(one for one in vague.done if one.step.name == "complete")

    lost = [one for one in drops(complete.folder) if one.reason == AMBIGUOUS]
    assert lost and all(len(true_of(one.detail, pictures)) > 1 for one in lost)
    for one in (one for one in vague.records if "text" in one):
        assert true_of(one["text"], pictures) == {one["image"]}
