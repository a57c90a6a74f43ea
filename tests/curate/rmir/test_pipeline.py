"""RMIR sets made of real photos, offline: what is asked, found, voted on, kept, and written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot import sample
from eyespot.benchmarks import rmir as benchmark
from eyespot.curate.rmir import making
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.pipelines import drops, plan, read_recipe, run
from eyespot.runs import beir, rmir
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds.rmir import files, made, recipe

ORDER = ["seeds", "inputs", "questions", "checked", "candidates", "judged", "confident", "queries", "split"]


def named(made: FinishedSteps, id: str) -> str:
    """The name of a photo's file, which tells what it shows."""
    return Path(made.seeds[id]["path"]).stem.partition("__")[2]


def test_every_step_accounts_for_its_records(demonstrated: FinishedSteps) -> None:
    assert [one.step.name for one in demonstrated.done] == ORDER
    for one in demonstrated.done:
        assert one.counts.came + one.counts.added == one.counts.kept + sum(one.counts.dropped.values())
        assert len(list(drops(one.folder))) == sum(one.counts.dropped.values())


def test_the_rules_find_what_they_ask_for(demonstrated: FinishedSteps) -> None:
    found = {tuple(sorted(named(demonstrated, id) for id in query["targets"])) for query in demonstrated.queries}
    lost = {(named(demonstrated, one.record["image"]), one.reason) for one in drops(demonstrated.of("checked").folder)}
    assert ("erasers",) in found and {"plier1", "plier3"}.intersection(*[one for one in found if "plier1" in one])
    assert ("windmill1", "fails dependence") in lost


def test_no_candidate_is_the_input_and_the_lists_are_as_long_as_asked(demonstrated: FinishedSteps) -> None:
    for one in demonstrated.records("candidates"):
        assert one["candidate"] != one["image"]
        assert all(rank <= {"starter": 6, "descriptions": 2}[space] for space, rank in one["ranks"].items())


def test_the_pool_is_the_union_of_the_targets_and_nothing_in_doubt(demonstrated: FinishedSteps) -> None:
    targets = {target for query in demonstrated.queries for target in query["targets"]}
    assert set(demonstrated.pool) == targets
    assert not targets & demonstrated.doubted


def test_of_each_cluster_as_many_photos_are_seeds_as_asked_and_a_trial_asks_about_few(
    tmp_path: Path, gallery: Path
) -> None:
    place = recipe(tmp_path, gallery, seeds="clusters = 5\neach = 1")
    pipe = RmirPipeline(read_recipe(place), tmp_path, limit=4)

    seeds, inputs = run(pipe.steps[:2], pipe.work)

    assert seeds.counts.kept == 5 and seeds.counts.dropped == {"not drawn from its cluster": 14}
    assert inputs.counts.kept == 4
    report = json.loads((seeds.folder / "clusters.json").read_text())
    assert report["clusters"] == 5 and report["inertia"] > 0


def test_another_threshold_runs_the_split_alone(copied: Path, gallery: Path) -> None:
    pipe = RmirPipeline(read_recipe(recipe(copied, gallery, split="threshold = 0.9")), copied)
    planned = plan(pipe.steps, pipe.work, pipe.running())
    assert [one.name for one in planned if not one.finished] == ["split"]


def test_the_same_recipe_makes_the_same_files(tmp_path: Path, gallery: Path, demonstrated: FinishedSteps) -> None:
    made(recipe(tmp_path, gallery), tmp_path)
    assert files(tmp_path) == files(demonstrated.pipe.work.parent)


def test_the_benchmark_and_mtebs_tables_hold_the_judgements(demonstrated: FinishedSteps) -> None:
    folder = demonstrated.pipe.work.parent / "set"
    read, test = rmir.read(folder), beir.read(folder / "mteb", "test")

    targets = {query["id"]: set(query["targets"]) for query in demonstrated.queries}
    tested = {query["id"] for query in demonstrated.in_split("test")}
    assert set(read.images) == set(demonstrated.pool) and "test" in benchmark.load().splits
    assert {id: read.qrels.relevant(id) for id in read.queries} == targets
    assert {id: test.qrels.relevant(id) for id in test.queries} == {id: targets[id] for id in tested}


def test_photos_tell_under_which_licence_they_may_be_handed_on(demonstrated: FinishedSteps) -> None:
    """And whom it asks to name, as the gallery's columns `licence`, `author` and `source` have it."""
    place = demonstrated.pipe.work.parent / "set"
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        known = {row["file_name"]: (row["licence"], row["author"], row["source"]) for row in csv.DictReader(file)}

    for table in ("pool", "queries"):
        rows = [json.loads(line) for line in (place / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()]
        assert rows == pq.read_table(place / f"{table}.parquet").to_pylist()
        assert [(row["licence"], row["author"], row["url"]) for row in rows] == [known[row["file"]] for row in rows]


def test_every_vote_is_told_and_no_path_of_this_machine(demonstrated: FinishedSteps) -> None:
    out = demonstrated.pipe.work.parent / "set"
    texts = {path.name: path.read_text(encoding="utf-8") for path in [*out.rglob("*.jsonl"), out / "README.md"]}

    assert texts["judgements.jsonl"].count("\n") == 3 * len(demonstrated.records("judged"))
    assert not [name for name, text in texts.items() if str(demonstrated.pipe.world.gallery.parent) in text]
    for part in ("This is a demonstration", "How far the panel agrees", "Shortcuts"):
        assert part in texts["README.md"]


def test_an_empty_set_says_that_no_query_is_left(tmp_path: Path, gallery: Path) -> None:
    """And not that none is reliable enough."""
    found = made(recipe(tmp_path, gallery, confident="least = 2.0"), tmp_path)
    _, note = making.notes(found)
    assert not found.queries and note.startswith("No query is left")


def test_a_judge_like_the_others_differs_by_nothing_and_not_by_less() -> None:
    assert making.points(1.0 - 1.0001) == "+0.0"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('step = "queries"', 'step = "query"'),
        ('step = "queries"', 'step = "queries"\nname = "mine"'),
        ('step = "split"', 'step = "split"\nthreshhold = 1'),
        ("votes = { second = 2 }", "votes = { third = 2 }"),
        ('models = ["first", "second"]\nvotes = { second = 2 }', ""),
        ('model = "teacher"', ""),
    ],
)
def test_a_wrong_recipe_is_refused(tmp_path: Path, gallery: Path, old: str, new: str) -> None:
    place = recipe(tmp_path, gallery)
    place.write_text(place.read_text().replace(old, new))
    with raises(UsageError):
        _ = RmirPipeline(read_recipe(place), tmp_path).steps
