"""The whole pipeline on real photos: every record accounted for, and a set that evaluation reads in all versions."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from eyespot import rooms, sample
from eyespot.curate.recos.captions import DOMAINS, Rewriting
from eyespot.curate.recos.making import RecosSteps, in_rounds, quality_checks, write
from eyespot.curate.recos.pipeline import RecosPipeline, Round, galleries_of
from eyespot.photos.pictures import id_of
from eyespot.pipelines import drops, plan as plan_of, read_recipe, run
from eyespot.runs import recos
from eyespot.types import NothingFound, UsageError
from tests.command import refuses, run_eyespot
from tests.wording import raises
from tests.worlds.outside import loaded
from tests.worlds.recos import COLOURS, files, made, ran, recipe
from tests.worlds.rmir import photos as sample_photos


def of(made: RecosSteps, name: str):
    return next(one for one in made.done if one.step.name == name)


def test_every_record_is_kept_or_dropped_for_a_reason(demonstrated: RecosSteps) -> None:
    for one in demonstrated.done:
        came, added, survivors, dropped, _ = one.counts
        assert came + added == survivors + sum(dropped.values()) == len(one.records) + len(list(drops(one.folder)))
    assert of(demonstrated, "collect").counts.dropped == {"left in the pool": 14}  # 9 drawn with siblings, 4 in v0
    found = Counter(one["subtask"] for one in of(demonstrated, "collect").records)
    assert found == {"colour": 4, "object": 3, "numerical": 2, "translation": 2}


def test_the_card_counts_a_sub_task_that_lost_all_its_captions(demonstrated: RecosSteps) -> None:
    left: Any = [one for one in demonstrated.records if one["subtask"] != "colour"]
    *before, last = demonstrated.done
    checks = quality_checks(RecosSteps(demonstrated.pipe, [*before, replace(last, records=left)]))
    check = next(check for check in checks if check.what == "Captions of v0 in each sub-task")
    assert check.text == "colour has the fewest, 0 (at least 100)."


def test_what_is_kept_by_dis_lies_in_the_band_or_is_doubted(demonstrated: RecosSteps) -> None:
    low, high = Rewriting(4, 0.01, 0.9).band
    captions = list(of(demonstrated, "discriminate").records)
    assert captions and {low <= one["dis"] <= high for one in captions} == {True, False}
    assert all((low <= one["dis"] <= high) != ("doubts" in one) for one in captions)
    assert all(one["rounds"] <= 2 and len(one["nearest"]) == 4 for one in captions)


def test_the_second_version_says_what_was_changed_and_is_true(demonstrated: RecosSteps) -> None:
    """These photos bear numbers: no caption of one becomes true of another by a change of one word."""
    swapped, first = demonstrated.captions("v1"), {one["image"] for one in demonstrated.captions("v0")}
    of_photos = [one for one in swapped if one["source"] == "own"]
    by_colour = [one for one in swapped if one["attribute"] == "colour"]

    assert all(one["edits"] >= 1 and one["attribute"] and one["of"] in first for one in swapped)
    assert first.isdisjoint(one["image"] for one in swapped)
    shown = {one["image"]: one["facts"]["shown"] for one in demonstrated.captions() if one["source"] == "drawn"}
    pairs = {(shown[one["of"]], shown[one["image"]]) for one in swapped if one["source"] == "drawn"}
    assert pairs and all(sum(a != b for a, b in zip(x, y, strict=True)) == 1 for x, y in pairs if x[0].isdigit())
    assert by_colour and all(colours(one["original"]) != colours(one["text"]) for one in by_colour)
    assert of_photos and all(one["text"] in one["facts"].values() for one in of_photos)


def colours(text: str) -> set[str]:
    return set(text.split()).intersection(COLOURS)


def test_the_third_version_has_each_picture_once_and_no_captions(demonstrated: RecosSteps) -> None:
    more = [one for one in demonstrated.records if one["version"] == "v2"]
    captioned = {one["image"] for one in demonstrated.records if "text" in one}
    assert more and not any("text" in one for one in more)
    assert len({one["image"] for one in more}) == len(more) and captioned.isdisjoint(one["image"] for one in more)


def test_evaluation_reads_all_three_versions(demonstrated: RecosSteps) -> None:
    folder = demonstrated.pipe.out / "set"
    pools = {}
    for version in recos.VERSIONS:
        tasks = rooms.load("benchmarks", "recos").tasks(folder, version)
        pools[version] = {task.way: len(task.pool) for task in tasks}

    images = Counter(one["version"] for one in {one["image"]: one for one in reversed(demonstrated.records)}.values())
    assert list(pools["v2"]) == ["t2i"] and set(pools["v0"]) == set(pools["v1"]) == {"i2t", "t2i"}
    assert pools["v0"]["t2i"] == images["v0"] and pools["v2"]["t2i"] == images.total()
    assert pools["v1"]["i2t"] == len(demonstrated.captions("v0")) + len(demonstrated.captions("v1"))


def test_pictures_keep_their_bytes_and_the_set_names_no_place(demonstrated: RecosSteps, gallery: Path) -> None:
    folder = demonstrated.pipe.out / "set"
    places = list((folder / "images").rglob("*.jpg"))
    tables = [str(pq.read_table(folder / f"{name}.parquet").to_pylist()) for name in ("images", "captions")]

    assert len(places) == len({one["image"] for one in demonstrated.records})
    assert all(id_of(place.read_bytes()) == place.stem for place in places)
    assert not any(str(gallery.parent) in one or "facts" in one for one in tables)
    assert any(str(gallery.parent) in one["path"] for one in demonstrated.records)


def test_the_card_tells_what_it_is_and_what_would_be_accepted(demonstrated: RecosSteps) -> None:
    card = (demonstrated.pipe.out / "set" / "README.md").read_text(encoding="utf-8")
    assert "> A demonstration: captions were written by rules" in card and "No person has looked at" in card
    assert "### What would be accepted" in card and "### What confusing captions changed" in card
    assert "### dis(t) of captions" in card


def test_the_makers_answers_go_before_those_of_the_pipeline(copied: Path, tmp_path: Path, gallery: Path) -> None:
    """And no step runs for their sake."""
    place, before = recipe(tmp_path, gallery), files(copied)
    card = '[card]\nlicence = "CC0"\n[card.composition]\ncount = "Few."\n[card.motivation]\nmakers = "We."\n'
    place.write_text(place.read_text(encoding="utf-8") + card, encoding="utf-8")

    making, done = ran(place, copied)
    write(making, done)

    assert not any(one.ran for one in done) and files(copied) == before
    text = (copied / "set" / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\n") and '\nlicense: "CC0"\n' in text
    assert "\nFew.\n" in text and "\nWe.\n" in text and "v0: " not in text.partition("## Datasheet")[2]


def test_captions_that_wait_for_a_person_fail_until_then(tmp_path: Path, gallery: Path) -> None:
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\nwant = 6\nwords = ["red", "blue"]'
    place = recipe(tmp_path, gallery, review="share = 1.0", draw="subtasks = {}", collect=collect)

    pipe = RecosPipeline(read_recipe(place), tmp_path / "out")
    pipe, done = in_rounds(pipe, lambda steps: run(steps, pipe.work, pipe.running()))

    waiting = next(one for one in done if one.step.name == "review")
    assert waiting.counts.kept == 0 and waiting.counts.failed == waiting.counts.came > 0
    assert pipe.round == Round()  # no picture is taken in place of one that somebody may yet accept
    with raises(NothingFound):
        write(pipe, done)


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
    assert read_recipe(tmp_path / "mine.toml").steps == read_recipe(DOMAINS / "demonstration.toml").steps
    assert len(read_recipe(DOMAINS / "demonstration.toml").steps) == 16


def test_the_card_shows_the_five_most_like_a_picture_in_two_pools(demonstrated: RecosSteps) -> None:
    *_, sample = demonstrated.card_content().samples
    every = {record["image"]: record for record in demonstrated.records}
    sources, places = demonstrated.pipe.sources, {str(demonstrated.pipe.sources.place(it)): it for it in every.values()}
    chosen, *near = [places[str(path)] for _, path in sample.pictures]
    (own,), vectors = sources.vectors([chosen]), dict(zip(every, sources.vectors(every.values()), strict=True))
    ranked = sorted(every.keys() - {chosen["image"]}, key=lambda image: -float(own @ vectors[image]))
    first = [image for image in ranked if every[image]["version"] == "v0"]
    assert [one["image"] for one in near] == [*first[:5], *ranked[:5]] and chosen["version"] == "v0"


def test_galleries_and_a_folder_are_named_on_the_command_line() -> None:
    assert galleries_of(["a=x", "y/photos"]) == {"a": Path("x"), "photos": Path("y/photos")}
    with raises(UsageError):
        galleries_of(["a=x", "a=y"])
    refuses("build", "recos", "demonstration")


def test_a_set_without_captions_has_a_card_that_says_why(tmp_path: Path, gallery: Path) -> None:
    few = {
        "draw": "subtasks = {}",
        "discriminate": 'model = "writer"\nk = 2\nat_limit = "keep"',
        "complete": "least = 99",
    }
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 4\nwords = ["red", "blue"]'
    place = recipe(tmp_path, gallery, collect=collect, **few)

    with raises(NothingFound):
        made(place, tmp_path / "out")

    text = (tmp_path / "out" / "set" / "README.md").read_text(encoding="utf-8")
    assert "| complete | its picture has too few captions |" in text
    assert (tmp_path / "out" / "set" / "card.html").is_file()


# -- A ReCoS set in the hands of `datasets`, which shows its pictures and tells under which licence they are -----


@pytest.mark.long
@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_datasets_reads_every_configuration(demonstrated: RecosSteps) -> None:
    place = demonstrated.pipe.out / "set"

    found = loaded("datasets", place)

    images = pq.read_table(place / "images.parquet").to_pylist()
    assert set(found) == {"default", "captions", "images"} and found["default"] == found["captions"]
    assert found["captions"]["whole"]["rows"] == pq.read_metadata(place / "captions.parquet").num_rows
    assert found["images"]["whole"]["rows"] == len(images)
    with Image.open(place / images[0]["path"]) as picture:
        assert found["images"]["whole"]["first"] == {"picture": list(picture.size), **images[0]}


@pytest.mark.long
def test_every_picture_is_in_the_table_byte_for_byte(demonstrated: RecosSteps) -> None:
    place = demonstrated.pipe.out / "set"
    rows = pq.read_table(place / "hub" / "images.parquet").to_pylist()
    assert [row.pop("picture")["bytes"] == (place / row["path"]).read_bytes() for row in rows] == [True] * len(rows)
    assert rows == pq.read_table(place / "images.parquet").to_pylist()


@pytest.mark.long
def test_photos_tell_under_which_licence_they_may_be_handed_on(tmp_path: Path) -> None:
    """As the gallery's columns `licence`, `author` and `source` have it; what is drawn here has none."""
    gallery = sample_photos(tmp_path)
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        known = {row["title"]: (row["licence"], row["author"], row["source"]) for row in csv.DictReader(file)}
    collect = f'''galleries = {{ own = "{gallery}" }}
[steps.subtasks.object]
count = 4
where = "true"
[steps.subtasks.numerical]
count = 2
'''
    lines = {"draw": "subtasks = { numerical = 5 }", "collect": collect, "complete": "least = 1"}

    found = made(recipe(tmp_path, gallery, **lines), tmp_path / "out")

    titles = {one["image"]: one["facts"]["title"] for one in found.records if one["source"] == "own"}
    rows = pq.read_table(tmp_path / "out" / "set" / "images.parquet").to_pylist()
    rights = {row["image"]: (row["licence"], row["author"], row["url"]) for row in rows}
    assert len(titles) >= 4 and {id: rights[id] for id in titles} == {id: known[its] for id, its in titles.items()}
    assert {rights[row["image"]] for row in rows if row["source"] == "drawn"} == {(None, None, None)}


# -- what a set would cost at most, counted by hand, before anything is asked ------------------------------------


MODEL = 'writer = { use = "openai:gpt-5" }'


def test_the_most_that_can_come_to_each_step(tmp_path: Path, gallery: Path) -> None:
    """Nine are drawn, each with a sibling; v0 has eleven pictures, seven of them photos, and two rounds."""
    making = RecosPipeline(read_recipe(recipe(tmp_path, gallery, MODEL)), tmp_path / "out")

    plan = {one.name: (one.records, one.spent.calls) for one in plan_of(making.steps, making.work, making.running())}

    assert plan == {
        "draw": (0, 0),
        "render": (18, 0),
        "collect": (18, 0),
        "caption": (11, 7),
        "discriminate": (55, 7 * 5 * 2),
        "review": (55, 0),
        "complete": (55, 0),
        "pair": (55, 0),
        "confuse": (66, 7),
        "confuse-apart": (110, 0),
        "expand": (110, 0),
        "hash": (176, 0),  # 22 pictures bring three each
        "distinct": (176, 0),
    }


def test_what_is_finished_makes_the_rest_exact(tmp_path: Path, gallery: Path) -> None:
    """Of six photos that are wanted of a kind the gallery has less."""
    collect = f'galleries = {{ own = "{gallery}" }}\n[steps.subtasks.colour]\ncount = 40\nwords = ["red"]'
    place = recipe(tmp_path, gallery, MODEL, draw="subtasks = {}", collect=collect)
    making = RecosPipeline(read_recipe(place), tmp_path / "out")
    photos = run(making.steps[:3], making.work, making.running())[-1].counts.kept

    plan = {one.name: one for one in plan_of(making.steps, making.work, making.running())}

    assert 0 < photos < 40 and plan["collect"].finished
    assert (plan["caption"].spent.calls, plan["discriminate"].spent.calls) == (photos, photos * 5 * 2)


def test_the_verb_tells_calls_and_money_without_a_key(tmp_path: Path, gallery: Path) -> None:
    shown = run_eyespot(
        "build", "recos", recipe(tmp_path, gallery, MODEL), "--out", tmp_path / "made", "--batch", "--dry-run"
    )
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("discriminate")]
    assert "at most 55 records" in line and "70 calls" in line and "$" in line and not line.endswith("$0.00")


def test_a_trial_of_fewer_pictures_than_sub_tasks_has_its_card(gallery: Path, tmp_path: Path) -> None:
    settings = {"discriminate": 'model = "writer"\nk = 8\nat_limit = "keep"', "complete": "least = 1"}
    pipe = RecosPipeline(read_recipe(recipe(tmp_path, gallery, **settings)), tmp_path / "out", limit=1)
    trial, _ = write(pipe, run(pipe.steps, pipe.work, pipe.running()))

    assert len(trial.result("collect").records) == 3 < len(pipe.collecting.wanted())
    assert "What would be accepted" in {table.title for table in trial.card_content().tables}
