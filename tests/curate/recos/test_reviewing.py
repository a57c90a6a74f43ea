"""Captions that a person decided on: their word holds wherever the set lies, and mended words have no old numbers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot.curate.recos.checking import confirm
from eyespot.curate.recos.making import notes
from eyespot.pipelines.human_review import Queue
from tests.worlds.recos import STEPS, made, ran, recipe


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
