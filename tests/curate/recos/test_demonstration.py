"""The demonstration writer: what it says is true by the labels, and it stops where it has no more to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eyespot.curate.recos import demonstration
from eyespot.pipelines import Prompt

DOG = {"caption_1": "A brown dog runs through deep snow .", "caption_2": "A dog in the snow ."}


class Till:
    """Nothing is paid for."""


def reply(task: str, **known: Any) -> Mapping[str, Any]:
    prompt: Prompt = {"use": "demonstration", "pictures": ["picture"], "known": {"task": task, "writing": "", **known}}
    return demonstration.writer(prompt, Till())  # type: ignore[arg-type]


def swaps(text: str, facts: Mapping[str, str], *attributes: str, before: Mapping[str, str] | None = None) -> list[Any]:
    answer = reply("confuse", captions=f"1. {text}", facts=facts, before=before or {}, attributes=attributes)
    return [(one["text"], one["attribute"]) for one in answer["captions"]]


def test_a_confusing_caption_is_what_people_say_of_the_other_picture() -> None:
    found = swaps("A white dog runs after a ball through deep snow.", DOG, "colour")
    assert found == [("A brown dog runs through deep snow.", "colour")]
    assert swaps("A dog in the snow.", {}, "colour") == []


def test_a_title_takes_the_place_of_a_title() -> None:
    found = swaps("This is Eiffel Tower.", {"title": "India Gate-5"}, "name", before={"title": "Eiffel Tower (2)"})
    assert found == [("This is India Gate.", "name")]


def test_of_several_captions_each_takes_one_that_no_other_has() -> None:
    captions = "1. A white dog runs after a ball.\n2. A white dog runs after a red ball."
    entries = reply("confuse", captions=captions, facts=DOG, before={}, attributes=["colour"])["captions"]
    assert {one["number"] for one in entries} == {1, 2}
    assert {one["text"] for one in entries} == {"A brown dog runs through deep snow.", "A dog in the snow."}


def test_what_cannot_be_told_more_of_is_left() -> None:
    text, tried = "A child paints.", list[str]()
    while text and len(tried) < 9:
        tried.append(text)
        text = reply("rewrite", caption=text, wish="more", facts={})["caption"]
    assert text == "" and len(set(tried)) == len(tried) == 4
