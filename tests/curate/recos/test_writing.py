"""The sub-task `ocr` takes photos in which OCR read something, and the card says what read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyespot.curate.recos.making import notes
from eyespot.curate.recos.pictures import Sources, writing_of
from tests.worlds import index_gallery
from tests.worlds.bar_texts import BarReader, draw_bars
from tests.worlds.recos import made, photos, recipe

SIGNS = ("Bakery", "Fresh fish", "No parking", "Platform 9", "Town hall", "Exit")


@pytest.fixture(scope="module")
def signs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, of which six have writing that was read; one of these shows a windmill according to its sign only."""
    folder = tmp_path_factory.mktemp("signs")
    gallery = photos(folder, ("windmill1", "windmill2", "fish1", "dam1"))
    for number, sign in enumerate(SIGNS):
        draw_bars(folder / "pictures" / f"sign{number}.png", sign, seed=number)
    draw_bars(folder / "pictures" / "mill.png", "windmill", seed=9)
    index_gallery(gallery, folder / "pictures", workers=1, text_reader=BarReader())
    return gallery


def collect(gallery: Path, subtask: str) -> str:
    return f'galleries = {{ own = "{gallery}" }}\n{subtask}'


@pytest.mark.long
def test_photos_with_writing_are_chosen_and_quoted_and_the_card_says_what_read_them(
    signs: Path, tmp_path: Path
) -> None:
    wanted = collect(signs, "[steps.subtasks.ocr]\ncount = 4\n[steps.subtasks.numerical]\ncount = 2")
    done = made(recipe(tmp_path, signs, collect=wanted, draw="subtasks = { numerical = 5 }"), tmp_path / "out")

    captions = [record for record in done.captions("v0") if record["subtask"] == "ocr"]
    swapped = [record for record in done.captions("v1") if record["subtask"] == "ocr"]
    assert len({record["image"] for record in captions}) == 4
    assert all(f'"{record["writing"]}"' in record["text"] for record in captions if record["number"] == 1)
    assert swapped and all(record["writing"] in record["text"] != record["original"] for record in swapped)
    assert {record["stand_in"] for record in captions} == {""}
    assert any("ocr: the text of 4 photos" in note and "(bars 1)" in note for note in notes(done))


def test_words_are_looked_for_in_writing_by_the_sub_task_of_text_alone(signs: Path, tmp_path: Path) -> None:
    """A sign that says "windmill" shows no windmill."""
    words = 'words = ["windmill", "bakery"]\ncount = 3'
    wanted = collect(signs, f"[steps.subtasks.object]\n{words}\n[steps.subtasks.ocr]\n{words}")
    near = 'model = "writer"\nk = 2\nat_limit = "keep"'
    place = recipe(tmp_path, signs, collect=wanted, draw="subtasks = { numerical = 5 }", discriminate=near)
    done = made(place, tmp_path / "out")

    chosen = {
        (record["subtask"], Path(record["path"]).stem.rpartition("__")[2]) for record in done.result("collect").records
    }
    assert chosen - {("ocr", "sign0"), ("ocr", "mill")} == {("object", "windmill1"), ("object", "windmill2")}
    assert len(chosen) == 4


def test_writing_is_what_a_caption_can_quote() -> None:
    """Sure, and of three letters or digits at least."""
    boxes = [
        ["Bakery", 0.99, 0, 0, 1, 1],
        ["no", 0.99, 0, 0, 1, 1],
        ["Bahnhof", 0.6, 0, 0, 1, 1],
        ["A12", 0.9, 0, 0, 1, 1],
    ]

    assert writing_of({"text_boxes": json.dumps(boxes), "text_read_by": "bars 1"}) == {
        "writing": "Bakery\nA12",
        "read_by": "bars 1",
    }
    assert writing_of({"text_boxes": "a label of a person"}) == writing_of({}) == {"writing": "", "read_by": ""}


def test_without_ocr_there_are_searches_as_ever(tmp_path: Path) -> None:
    gallery = photos(tmp_path, ("windmill1", "fish1", "dam1"))
    sources = Sources(tmp_path / "work", {"own": gallery})
    assert {photo["writing"] for photo in sources.photos("own", [0, 1, 2])} == {""}
