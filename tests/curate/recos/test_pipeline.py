"""The whole pipeline on real photos: every record accounted for, and a set that evaluation reads in all versions."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.benchmarks._benchmark import BenchmarkRequest
from eyespot.curate.recos.card import RecosSteps, notes, quality_checks
from eyespot.curate.recos.making import galleries_of, recipe_at
from eyespot.gallery.photos.pictures import id_of
from eyespot.pipelines import drops
from eyespot.pipelines.human_review import Queue
from eyespot.runs import recos
from eyespot.types import NothingFound, UsageError
from tests.command import run_eyespot
from tests.worlds.recos import COLOURS, files, made, ran, recipe


def of(made: RecosSteps, name: str):
    return next(one for one in made.done if one.step.name == name)


# -- accounts ---------------------------------------------------------------------------------------------------


def test_every_record_is_kept_or_dropped_for_a_reason(demonstrated: RecosSteps) -> None:
    for one in demonstrated.done:
        came, added, survivors, dropped, _ = one.counts
        assert came + added == survivors + sum(dropped.values()) == len(one.records) + len(list(drops(one.folder)))
    assert of(demonstrated, "collect").counts.dropped == {"left in the pool": 5}  # 9 drawn, 4 in v0


def test_each_sub_task_has_the_pictures_that_were_wanted(demonstrated: RecosSteps) -> None:
    found = Counter(one["subtask"] for one in of(demonstrated, "collect").records)

    assert found == {"colour": 4, "object": 3, "numerical": 2, "translation": 2}


def test_the_card_counts_a_sub_task_that_lost_all_its_captions(demonstrated: RecosSteps) -> None:
    left: Any = [one for one in demonstrated.records if one["subtask"] != "colour"]
    *before, last = demonstrated.done
    checks = quality_checks(RecosSteps(demonstrated.pipe, [*before, replace(last, records=left)]))

    check = next(check for check in checks if check.what == "Captions of v0 in each sub-task")
    assert check.text == "colour has the fewest, 0 (at least 100)."


def test_pictures_chosen_by_labels_have_them(demonstrated: RecosSteps) -> None:
    chosen = [one for one in of(demonstrated, "collect").records if one["subtask"] == "colour"]

    assert all({"red", "blue"} & set(one["facts"]["caption_1"].split()) for one in chosen)


def test_what_is_kept_by_dis_lies_in_the_band_or_is_doubted(demonstrated: RecosSteps) -> None:
    from eyespot.curate.recos.rewriting import Rewriting

    low, high = Rewriting(4, 0.01, 0.9).measure.band
    captions = list(of(demonstrated, "discriminate").records)

    assert captions and {low <= one["dis"] <= high for one in captions} == {True, False}
    assert all((low <= one["dis"] <= high) != ("doubts" in one) for one in captions)
    assert all(one["rounds"] <= 2 and len(one["nearest"]) == 4 for one in captions)


def test_the_second_version_says_what_was_changed(demonstrated: RecosSteps) -> None:
    swapped = demonstrated.captions("v1")
    first = {one["image"] for one in demonstrated.captions("v0")}

    assert swapped and all(one["edits"] >= 1 and one["attribute"] and one["of"] in first for one in swapped)
    assert first.isdisjoint(one["image"] for one in swapped)
    by_colour = [one for one in swapped if one["attribute"] == "colour"]
    assert by_colour and all(colour(one["original"]) != colour(one["text"]) for one in by_colour)


def colour(text: str) -> str:
    return next(word for word in text.split() if word in COLOURS)


def test_what_the_demonstration_says_of_the_second_version_is_true_of_it(demonstrated: RecosSteps) -> None:
    """These photos bear numbers: no caption of one becomes true of another by a change of one word."""
    of_photos = [one for one in demonstrated.captions("v1") if one["source"] == "own"]

    assert of_photos and all(one["text"] in one["facts"].values() for one in of_photos)


def test_the_third_version_has_each_picture_once_and_no_captions(demonstrated: RecosSteps) -> None:
    more = [one for one in demonstrated.records if one["version"] == "v2"]
    captioned = {one["image"] for one in demonstrated.records if "text" in one}

    assert more and not any("text" in one for one in more)
    assert len({one["image"] for one in more}) == len(more) and captioned.isdisjoint(one["image"] for one in more)


# -- the set ----------------------------------------------------------------------------------------------------


def test_evaluation_reads_all_three_versions(demonstrated: RecosSteps) -> None:
    folder = demonstrated.pipe.out / "set"
    pools = {}
    for version in recos.VERSIONS:
        request = BenchmarkRequest(split=version)
        tasks = rooms.load("benchmarks", "recos").tasks(folder, request)
        pools[version] = {task.way: len(task.pool) for task in tasks}

    images = Counter(one["version"] for one in {one["image"]: one for one in reversed(demonstrated.records)}.values())
    assert list(pools["v2"]) == ["t2i"] and set(pools["v0"]) == set(pools["v1"]) == {"i2t", "t2i"}
    assert pools["v0"]["t2i"] == images["v0"] and pools["v2"]["t2i"] == images.total()
    assert pools["v1"]["i2t"] == len(demonstrated.captions("v0")) + len(demonstrated.captions("v1"))


def test_pictures_keep_their_bytes_and_so_their_ids(demonstrated: RecosSteps) -> None:
    places = list((demonstrated.pipe.out / "set" / "images").rglob("*.jpg"))

    assert len(places) == len({one["image"] for one in demonstrated.records})
    assert all(id_of(place.read_bytes()) == place.stem for place in places)


def test_the_set_tells_no_place_of_photos_and_no_labels(demonstrated: RecosSteps, gallery: Path) -> None:
    import pyarrow.parquet as pq

    folder = demonstrated.pipe.out / "set"
    tables = [str(pq.read_table(folder / f"{name}.parquet").to_pylist()) for name in ("images", "captions")]

    assert not any(str(gallery.parent) in one or "facts" in one for one in tables)
    assert any(str(gallery.parent) in one["path"] for one in demonstrated.records)


def test_the_card_tells_what_it_is_and_what_would_be_accepted(demonstrated: RecosSteps) -> None:
    card = (demonstrated.pipe.out / "set" / "README.md").read_text(encoding="utf-8")

    assert "> A demonstration: captions were written by rules" in card and "No person has looked at" in card
    assert "### What would be accepted" in card and "### What confusing captions changed" in card
    assert (demonstrated.pipe.out / "set" / "card" / "discriminate-first.svg").is_file()


def test_datasets_loads_both_tables(demonstrated: RecosSteps, tmp_path: Path) -> None:
    """And neither the pictures of the card nor a third table."""
    datasets = pytest.importorskip("datasets")
    place = str(demonstrated.pipe.out / "set")
    rows = {
        name: datasets.load_dataset(place, name, cache_dir=str(tmp_path))["whole"]
        for name in datasets.get_dataset_config_names(place)
    }

    assert set(rows) == {"captions", "images"}
    assert set(rows["captions"]["image"]) <= set(rows["images"]["image"]) == {o["image"] for o in demonstrated.records}


def test_the_datasheet_says_what_the_pipeline_knows(demonstrated: RecosSteps) -> None:
    composition = demonstrated.card_content().answers["composition"]
    images, captions = ({one["image"] for one in demonstrated.captions("v0")}, demonstrated.captions("v0"))

    assert composition["count"].startswith(f"v0: {len(images)} pictures, {len(captions)} captions; v1: ")
    assert "writer (demonstration)" in composition["labels"]


def test_the_makers_answers_go_before_those_of_the_pipeline(copied: Path, tmp_path: Path, gallery: Path) -> None:
    place = recipe(tmp_path, gallery)
    card = '[card]\nlicence = "CC0"\n[card.composition]\ncount = "Few."\n[card.motivation]\nmakers = "We."\n'
    place.write_text(place.read_text(encoding="utf-8") + card, encoding="utf-8")

    made(place, copied)
    text = (copied / "set" / "README.md").read_text(encoding="utf-8")

    assert text.startswith("---\n") and '\nlicense: "CC0"\n' in text
    assert "\nFew.\n" in text and "\nWe.\n" in text and "v0: " not in text.partition("## Datasheet")[2]


# -- again ------------------------------------------------------------------------------------------------------


def test_a_finished_set_is_not_made_again(copied: Path, tmp_path: Path, gallery: Path) -> None:
    before = files(copied)
    place = recipe(tmp_path, gallery)

    _, done = ran(place, copied)

    assert not any(one.ran for one in done) and files(copied) == before


def test_a_person_accepts_mends_and_drops(copied: Path, tmp_path: Path, gallery: Path) -> None:
    queue = Queue(copied / "review" / "review.jsonl")
    mended, dropped, *_ = [case for case in queue.open() if "drawn" not in case.pictures[0]]  # those lie elsewhere now
    queue.decide(mended, "mend", "ada", texts={"text": "A quite different caption of it."})
    queue.decide(dropped, "drop", "ada")

    _, done = ran(recipe(tmp_path, gallery), copied)
    review = next(one for one in done if one.step.name == "review")

    assert review.counts.dropped == {"dropped in review": 1}
    texts = {one["id"]: one["text"] for one in review.records}
    assert texts[mended.id] == "A quite different caption of it." and dropped.id not in texts
    assert not next(one for one in done if one.step.name == "caption").ran


def test_captions_that_wait_for_a_person_fail_until_then(tmp_path: Path, gallery: Path) -> None:
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 6\nwords = ["red", "blue"]'
    place = recipe(tmp_path, gallery, review="share = 1.0", draw="subtasks = {}", collect=collect)
    _, done = ran(place, tmp_path / "out")
    waiting = next(one for one in done if one.step.name == "review")

    assert waiting.counts.kept == 0 and waiting.counts.failed == waiting.counts.came > 0
    with pytest.raises(NothingFound, match="no caption came through all steps"):
        made(place, tmp_path / "out")


def test_a_trial_of_a_few_pictures(tmp_path: Path, gallery: Path) -> None:
    from dataclasses import replace

    from eyespot.curate.recos.making import RecosJob
    from eyespot.pipelines import read_recipe, run

    making = replace(RecosJob(read_recipe(recipe(tmp_path, gallery)), tmp_path / "out"), limit=5)
    done = run(making.steps[:3], making.pipeline.work, making.running())

    assert done[-1].counts.kept == 5


# -- on the command line ----------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_verb_says_what_became_of_records(copied: Path, tmp_path: Path, gallery: Path) -> None:
    place = recipe(tmp_path, gallery)
    shown = run_eyespot("build", "recos", str(place), "--out", str(copied), "--json", cwd=tmp_path)
    report = json.loads(shown.stdout)

    assert shown.returncode == 0 and report["out"] == str(copied / "set")
    assert [one["name"] for one in report["steps"]][:3] == ["draw", "render", "collect"]
    assert report["versions"]["v2"]["images"] > report["versions"]["v1"]["images"] > report["versions"]["v0"]["images"]
    assert "Measure nothing with this set" in shown.stderr


def test_the_recipe_of_the_demonstration_is_shown_and_can_be_read(tmp_path: Path) -> None:
    shown = run_eyespot("build", "recos", "demonstration", "--show", cwd=tmp_path)
    (tmp_path / "mine.toml").write_text(shown.stdout, encoding="utf-8")

    assert recipe_at(tmp_path / "mine.toml").steps == recipe_at(Path("demonstration")).steps
    assert len(recipe_at(Path("demonstration")).steps) == 16


def test_galleries_are_named_on_the_command_line() -> None:
    assert galleries_of(["a=x", "y/photos"]) == {"a": Path("x"), "photos": Path("y/photos")}
    with pytest.raises(UsageError, match="two galleries are called 'a'"):
        galleries_of(["a=x", "a=y"])


def test_a_folder_is_needed(tmp_path: Path) -> None:
    shown = run_eyespot("build", "recos", "demonstration", cwd=tmp_path)

    assert shown.returncode == 2 and "name one with --out" in shown.stderr and shown.stderr.count("\n") == 1


@pytest.mark.long
def test_the_card_counts_pictures_that_lost_all_their_captions(tmp_path: Path, gallery: Path) -> None:
    """A narrow band drops most captions, and some pictures with the last of theirs."""
    narrow = 'model = "writer"\nk = 4\ntemperature = 0.01\neta = 0.1\nrounds = 0'
    finished = made(recipe(tmp_path, gallery, discriminate=narrow), tmp_path)

    pictures = {one["image"] for one in finished.captions("v0")}
    (sentence,) = [note for note in notes(finished) if "of v0 lost all their captions" in note]
    assert 0 < len(pictures) < 11 and sentence.startswith(f"{11 - len(pictures)} of 11 pictures")


def test_a_set_without_captions_has_a_card_that_says_why(tmp_path: Path, gallery: Path) -> None:
    silent = 'writer = { use = "demonstration", silent = 1.0 }'
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 4\nwords = ["red", "blue"]'
    place = recipe(tmp_path, gallery, silent, draw="subtasks = {}", collect=collect)

    with pytest.raises(NothingFound, match=r"set/card\.html says where they went"):
        made(place, tmp_path / "out")

    assert "| caption | no answer | 4 |" in (tmp_path / "out" / "set" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "set" / "card.html").is_file()
