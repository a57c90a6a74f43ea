"""Captions that a person decided on: their word holds wherever the set lies, and mended words have no old numbers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot.curate.recos.checking import confirm
from eyespot.curate.recos.making import notes
from eyespot.curate.recos.pictures import Sources, writing_of
from eyespot.pipelines.human_review import Queue
from tests.worlds import index_gallery
from tests.worlds.bar_texts import BarReader, draw_bars
from tests.worlds.recos import STEPS, made, photos, ran, recipe


def test_a_decision_stands_after_the_folder_was_moved(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """The set was copied, so that drawn pictures lie elsewhere than where they were decided on."""
    queue = Queue(copied / "review" / "review.jsonl")
    drawn = next(case for case in queue.open() if "drawn" in case.pictures[0])
    queue.decide(drawn, "drop", "ada")

    _, done = ran(recipe(tmp_path, gallery), copied)

    review = next(one for one in done if one.step.name == "review")
    assert review.counts.dropped == {"dropped in review": 1} and drawn.id not in {one["id"] for one in review.records}
    assert str(copied) in Queue(queue.path).cases[drawn.id].pictures[0]
    assert not next(one for one in done if one.step.name == "caption").ran


def test_every_caption_tells_whether_a_person_looked(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """Words that were mended have no numbers of the old ones."""
    queue = Queue(copied / "review" / "review.jsonl")
    accepted, mended_one, *others = queue.open()
    queue.decide(accepted, "accept", "ada")
    queue.decide(mended_one, "mend", "ada", texts={"text": "A quite different caption of it."})

    found = made(recipe(tmp_path, gallery, complete="least = 1"), copied)

    rows = {row["id"]: row for row in pq.read_table(copied / "set" / "captions.parquet").to_pylist()}
    put = {accepted.id: "confirmed", mended_one.id: "changed"}
    assert {id: row["review"] for id, row in rows.items()} == {id: put.get(id, "unseen") for id in rows}
    assert [rows[mended_one.id][name] for name in ("text", "dis", "rounds")] == [
        *("A quite different caption of it.", None, None)
    ]
    assert {one["id"] for one in found.captions("v0") if rows[one["id"]]["dis"] is None} == {mended_one.id}
    case_ids = {case.id for case in others}
    told_of = {id: "undecided" if id in case_ids else row["review"] for id, row in rows.items()}
    counts = {v: Counter(told_of[id] for id, row in rows.items() if row["version"] == v) for v in ("v0", "v1")}
    assert counts["v0"]["undecided"] > 1 and counts["v0"]["unseen"] > 1 and set(counts["v1"]) == {"unseen"}
    card = (copied / "set" / "README.md").read_text(encoding="utf-8")
    for version, tally in counts.items():
        cells = [tally.total(), tally["confirmed"], tally["changed"], tally["undecided"], tally["unseen"], 0]
        assert f"| {version} | {' | '.join(map(str, cells))} |" in card
    assert "50% (9% to 91%)" in card  # one of two was accepted as it was
    unseen = sum(row["review"] == "unseen" for row in rows.values())
    assert any(f" {unseen} of {len(rows)} captions" in note for note in notes(found))


@pytest.mark.long
def test_a_person_confirms_the_words_they_saw_alone(tmp_path: Path, gallery: Path) -> None:
    """Captions are reviewed before some are written again, and put to a person a second time who has not decided."""
    place = recipe(tmp_path, gallery, review='undecided = "keep"', complete="least = 1")
    parts = dict(zip(STEPS, place.read_text(encoding="utf-8").split("[[steps]]\n")[1:], strict=True))
    again = parts["review"] + 'name = "again"\n'
    order = ["draw", "render", "collect", "caption", "review", "discriminate", again, "complete"]
    head = place.read_text(encoding="utf-8").partition("[[steps]]")[0]
    place.write_text(head + "".join(f"[[steps]]\n{parts.get(name, name)}" for name in order), encoding="utf-8")
    ran(place, tmp_path / "out")
    queue = Queue(tmp_path / "out" / "review" / "review.jsonl")
    for case in queue.open():
        queue.decide(case, "accept", "ada")

    found = made(place, tmp_path / "out")

    reviews = {(bool(one["rounds"]), one["review"]) for one in found.captions("v0")}
    assert reviews == {(False, "confirmed"), (True, "undecided")}


def test_what_a_mended_caption_changes_is_counted_anew() -> None:
    caption = {"text": "A blue bus.", "original": "A red bus.", "edits": 1}

    assert confirm(caption, {"text": "A big blue bus."}) == {
        "text": "A big blue bus.",
        "original": "A red bus.",
        "edits": 2,
        "review": "changed",
    }


# -- the sub-task `ocr` takes photos in which OCR read something, and the card says what read them ---------------


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
