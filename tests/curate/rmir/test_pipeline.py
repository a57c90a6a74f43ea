"""RMIR sets made of real photos, offline: what is asked, found, voted on, kept, and written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot import sample
from eyespot.benchmarks import rmir as benchmark
from eyespot.curate.rmir import card, confident
from eyespot.curate.rmir.demonstration import teacher
from eyespot.curate.rmir.finished import FinishedSteps
from eyespot.curate.rmir.making import RmirJob
from eyespot.pipelines import drops, plan, read_recipe, run
from eyespot.runs import beir, rmir
from eyespot.types import UsageError
from tests.worlds.rmir import DEMONSTRATION, files, made, ran, recipe

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
    targets = {
        query["question"]: {named(demonstrated, id) for id in query["targets"]} for query in demonstrated.queries
    }

    assert targets["Which other hand tool would pull out again what this has driven in and bent?"] <= {
        "plier1",
        "plier3",
    }
    assert targets["What takes away again what somebody has written with this by mistake?"] == {"erasers"}


def test_a_question_that_breaks_a_rule_is_left_out_with_the_rule(demonstrated: FinishedSteps) -> None:
    lost = {(named(demonstrated, one.record["image"]), one.reason) for one in drops(demonstrated.of("checked").folder)}

    assert ("windmill1", "fails dependence") in lost


def test_no_candidate_is_the_input_and_the_lists_are_as_long_as_asked(demonstrated: FinishedSteps) -> None:
    for one in demonstrated.records("candidates"):
        assert one["candidate"] != one["image"]
        assert all(rank <= {"starter": 6, "descriptions": 2}[space] for space, rank in one["ranks"].items())


def test_the_pool_is_the_union_of_the_targets_and_nothing_in_doubt(demonstrated: FinishedSteps) -> None:
    targets = {target for query in demonstrated.queries for target in query["targets"]}

    assert set(demonstrated.pool) == targets
    assert not targets & demonstrated.doubted


def test_the_pool_of_all_seeds_is_what_nobody_doubts(copied: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:first"', '"demonstration:first", slips = 0.03')

    whole = ran(recipe(copied, gallery, models, split='pool = "seeds"'), copied)

    assert whole.doubted and set(whole.pool) == set(whole.seeds) - whole.doubted


def test_a_doubted_photo_leaves_all_queries(copied: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:first"', '"demonstration:first", slips = 0.03')

    found = ran(recipe(copied, gallery, models), copied)

    left = {one.record["candidate"] for one in drops(found.of("confident").folder) if one.reason == confident.DOUBTED}
    assert left and not left & {one["candidate"] for one in found.records("confident")}


def test_a_silent_judge_fails_the_triplet_and_its_photo_leaves(copied: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:first"', '"demonstration:first", silent = 0.1')

    found = ran(recipe(copied, gallery, models), copied)

    failed = {one.record["candidate"] for one in drops(found.of("judged").folder)}
    assert failed and found.of("judged").counts.failed == sum(found.of("judged").counts.dropped.values())
    assert not failed & {one["candidate"] for one in found.records("confident")}


def test_of_each_cluster_as_many_photos_are_seeds_as_asked(tmp_path: Path, gallery: Path) -> None:
    pipe = RmirJob(read_recipe(recipe(tmp_path, gallery, seeds="clusters = 5\neach = 1")), tmp_path).pipeline()

    (seeds,) = run(pipe.steps[:1], pipe.work)

    assert seeds.counts.kept == 5 and seeds.counts.dropped == {"not drawn from its cluster": 14}
    report = json.loads((seeds.folder / "clusters.json").read_text())
    assert report["clusters"] == 5 and report["inertia"] > 0


def test_a_trial_asks_about_few_photos_of_the_whole_seed_set(tmp_path: Path, gallery: Path) -> None:
    pipe = RmirJob(read_recipe(recipe(tmp_path, gallery)), tmp_path, limit=4).pipeline()

    seeds, inputs = run(pipe.steps[:2], pipe.work)

    assert (seeds.counts.kept, inputs.counts.kept) == (19, 4)


def test_another_threshold_runs_the_split_alone(copied: Path, gallery: Path) -> None:
    making = RmirJob(read_recipe(recipe(copied, gallery, split="threshold = 0.9")), copied)
    pipe = making.pipeline()

    planned = plan(pipe.steps, pipe.work, making.running())

    assert [one.name for one in planned if not one.finished] == ["split"]


def test_the_same_recipe_makes_the_same_files(tmp_path: Path, gallery: Path, demonstrated: FinishedSteps) -> None:
    made(recipe(tmp_path, gallery), tmp_path)

    assert files(tmp_path) == files(demonstrated.pipe.work.parent)


# -- what is written --------------------------------------------------------------------------------------------


def test_the_benchmark_reads_the_set(demonstrated: FinishedSteps) -> None:
    read = rmir.read(demonstrated.pipe.work.parent / "set")

    assert set(read.queries) == {query["id"] for query in demonstrated.queries}
    assert set(read.images) == set(demonstrated.pool)
    assert {id: read.qrels.relevant(id) for id in read.queries} == {
        query["id"]: set(query["targets"]) for query in demonstrated.queries
    }
    assert "test" in benchmark.load().splits


def test_mtebs_tables_hold_the_same_judgements(demonstrated: FinishedSteps) -> None:
    read = beir.read(demonstrated.pipe.work.parent / "set" / "mteb", "test")

    wanted = {query["id"]: set(query["targets"]) for query in demonstrated.in_split("test")}
    assert {id: read.qrels.relevant(id) for id in read.queries} == wanted


def test_datasets_loads_every_table(demonstrated: FinishedSteps, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    place = str(demonstrated.pipe.work.parent / "set")

    rows = {name: datasets.load_dataset(place, name, cache_dir=str(tmp_path)) for name in ("queries", "mteb-corpus")}

    assert sum(map(len, rows["queries"].values())) == len(demonstrated.queries)
    assert rows["mteb-corpus"]["test"]["id"] == demonstrated.pool


def test_photos_tell_under_which_licence_they_may_be_handed_on(demonstrated: FinishedSteps) -> None:
    """And whom it asks to name, as the gallery's columns `licence`, `author` and `source` have it."""
    place = demonstrated.pipe.work.parent / "set"
    with (sample.photos() / "metadata.csv").open(encoding="utf-8", newline="") as file:
        known = {row["file_name"]: (row["licence"], row["author"], row["source"]) for row in csv.DictReader(file)}

    for table in ("pool", "queries"):
        rows = [json.loads(line) for line in (place / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()]
        assert rows == pq.read_table(place / f"{table}.parquet").to_pylist()
        assert [(row["licence"], row["author"], row["url"]) for row in rows] == [known[row["file"]] for row in rows]


def test_every_vote_is_told(demonstrated: FinishedSteps) -> None:
    lines = (demonstrated.pipe.work.parent / "set" / "judgements.jsonl").read_text().splitlines()

    assert len(lines) == 3 * len(demonstrated.records("judged"))


def test_no_path_of_this_machine_is_in_the_set(demonstrated: FinishedSteps) -> None:
    out = demonstrated.pipe.work.parent / "set"

    assert [
        path for path in out.rglob("*.jsonl") if str(demonstrated.pipe.world.gallery.parent) in path.read_text()
    ] == []


def test_the_card_says_that_it_is_a_demonstration(demonstrated: FinishedSteps) -> None:
    card = (demonstrated.pipe.work.parent / "set" / "README.md").read_text()

    assert "This is a demonstration" in card and "How far the panel agrees" in card and "Shortcuts" in card


def test_an_empty_set_says_that_no_query_is_left(tmp_path: Path, gallery: Path) -> None:
    """And not that none is reliable enough."""
    abstaining = DEMONSTRATION.replace('demonstration:first"', 'demonstration:first", abstains = 1.0')
    abstaining = abstaining.replace('demonstration:second"', 'demonstration:second", abstains = 1.0')
    found = made(recipe(tmp_path, gallery, abstaining), tmp_path)

    assert not found.queries and card.notes(found)[1:] == [
        "No query is left, so the set is empty; the losses below say where they went."
    ]


def test_a_judge_like_the_others_differs_by_nothing_and_not_by_less() -> None:
    assert card.points(1.0 - 1.0001) == "+0.0"


@pytest.mark.parametrize(
    ("labels", "asks"),
    [
        ("A person rappels down a rock cliff .", True),
        ("Two hikers climbing a snowy hill .", True),
        ("A little girl climbing the stairs to her playhouse .", False),
        ("explore_monuments/monuments; Betatakin Cliff Dwellings", False),
    ],
)
def test_the_demonstration_asks_what_is_seen_from_the_top_where_somebody_goes_there(labels: str, asks: bool) -> None:
    prompt = {"use": "demonstration:teacher", "_task": "question", "_about": {"id": "a", "labels": labels}}

    entry = teacher(prompt, None)["temporal"]  # type: ignore[arg-type]

    assert ("when they reach the top" in entry["question"]) is asks


# -- what is wrong with a recipe ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('step = "queries"', 'step = "query"', "has the steps seeds"),
        ('step = "queries"', 'step = "queries"\nname = "mine"', "keeps its name"),
        ('step = "split"', 'step = "split"\nthreshhold = 1', "knows no 'threshhold'"),
        ("votes = { second = 2 }", "votes = { third = 2 }", "is not a judge"),
        ('models = ["first", "second"]\nvotes = { second = 2 }', "", "nobody judges"),
        ('model = "teacher"', "", "asks one model"),
    ],
)
def test_a_wrong_recipe_is_told_in_a_sentence(tmp_path: Path, gallery: Path, old: str, new: str, message: str) -> None:
    place = recipe(tmp_path, gallery)
    place.write_text(place.read_text().replace(old, new))

    with pytest.raises(UsageError, match=message):
        _ = RmirJob(read_recipe(place), tmp_path).pipeline().steps


def test_a_key_in_a_recipe_is_refused(tmp_path: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:first"', '"openai:m", key = "secret"')

    with pytest.raises(UsageError, match="holds no keys"):
        RmirJob(read_recipe(recipe(tmp_path, gallery, models)), tmp_path).check()


def test_a_model_that_nobody_knows_is_refused(tmp_path: Path, gallery: Path) -> None:
    models = DEMONSTRATION.replace('"demonstration:first"', '"nobody:m"')

    with pytest.raises(UsageError, match="is not a model that answers questions"):
        RmirJob(read_recipe(recipe(tmp_path, gallery, models)), tmp_path).check()
