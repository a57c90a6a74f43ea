"""Captions that a person decided on: their word holds wherever the set lies, and mended words have no old numbers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eyespot.curate.recos.card import notes
from eyespot.curate.recos.checking import confirm
from eyespot.pipelines import Record
from eyespot.pipelines.human_review import Queue, write_queue
from tests.command import run_eyespot
from tests.worlds.recos import STEPS, made, ran, recipe


def reviewed(done: Any) -> dict[str, Record]:
    step = next(one for one in done if one.step.name == "review")
    return {one["id"]: one for one in step.records}


def test_a_decision_stands_after_the_folder_was_moved(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """The set was copied, so that drawn pictures lie elsewhere than where they were decided on."""
    queue = Queue(copied / "review" / "review.jsonl")
    drawn = next(case for case in queue.open() if "drawn" in case.pictures[0])
    queue.decide(drawn, "drop", "ada")

    _, done = ran(recipe(tmp_path, gallery), copied)

    assert drawn.id not in reviewed(done) and str(copied) in Queue(queue.path).cases[drawn.id].pictures[0]


def test_a_decision_stands_however_the_folder_is_spelt(
    copied: Path, tmp_path: Path, gallery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = recipe(tmp_path, gallery)
    monkeypatch.chdir(copied.parent)
    ran(place, Path(copied.name))
    queue = Queue(Path(copied.name) / "review" / "review.jsonl")
    queue.decide(next(case for case in queue.open() if "drawn" in case.pictures[0]), "drop", "ada")

    ran(place, copied)

    assert Queue(copied / "review" / "review.jsonl").counts()["drop"] == 1


def test_mended_words_have_no_numbers_of_the_old_ones(copied: Path, tmp_path: Path, gallery: Path) -> None:
    queue = Queue(copied / "review" / "review.jsonl")
    case = queue.open()[0]
    queue.decide(case, "mend", "ada", texts={"text": "A quite different caption of it."})

    found = made(recipe(tmp_path, gallery, complete="least = 1"), copied)

    rows = {row["id"]: row for row in pq.read_table(copied / "set" / "captions.parquet").to_pylist()}
    assert (rows[case.id]["review"], rows[case.id]["dis"], rows[case.id]["rounds"]) == ("changed", None, None)
    others = [rows[one["id"]] for one in found.captions("v0") if one["id"] != case.id]
    assert others and all(row["dis"] is not None and row["review"] == "unseen" for row in others)


def test_every_caption_tells_whether_a_person_looked(copied: Path, tmp_path: Path, gallery: Path) -> None:
    queue = Queue(copied / "review" / "review.jsonl")
    accepted, mended_one, *others = queue.open()
    queue.decide(accepted, "accept", "ada")
    queue.decide(mended_one, "mend", "ada", texts={"text": "A quite different caption of it."})

    found = made(recipe(tmp_path, gallery, complete="least = 1"), copied)

    rows = pq.read_table(copied / "set" / "captions.parquet").to_pylist()
    put = {accepted.id: "confirmed", mended_one.id: "changed"}
    assert {row["id"]: row["review"] for row in rows} == {row["id"]: put.get(row["id"], "unseen") for row in rows}
    case_ids = {case.id for case in others}
    told_of = {row["id"]: "undecided" if row["id"] in case_ids else row["review"] for row in rows}
    counts = {v: Counter(told_of[row["id"]] for row in rows if row["version"] == v) for v in ("v0", "v1")}
    assert counts["v0"]["undecided"] > 1 and counts["v0"]["unseen"] > 1 and set(counts["v1"]) == {"unseen"}
    card = (copied / "set" / "README.md").read_text(encoding="utf-8")
    for version, tally in counts.items():
        cells = [tally.total(), tally["confirmed"], tally["changed"], tally["undecided"], tally["unseen"], 0]
        assert f"| {version} | {' | '.join(map(str, cells))} |" in card
    assert "50% (9% to 91%)" in card  # one of two was accepted as it was
    unseen = sum(row["review"] == "unseen" for row in rows)
    assert any(note.startswith(f"No person has looked at {unseen} of {len(rows)} captions") for note in notes(found))


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


@pytest.mark.long
def test_the_verb_says_how_many_decisions_no_longer_stand(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """What was decided was another wording than the one that is there now."""
    queue = Queue(copied / "review" / "review.jsonl")
    case = queue.open()[0]
    write_queue(queue.path, [type(case)(case.id, case.why, case.pictures, {"text": "Older."}, case.shown)])
    again = Queue(queue.path)
    again.decide(again.cases[case.id], "accept", "ada")

    shown = run_eyespot("build", "recos", str(recipe(tmp_path, gallery)), "--out", str(copied), cwd=tmp_path)

    assert shown.returncode == 0 and "1 decisions on" in shown.stderr and "no longer stand" in shown.stderr
