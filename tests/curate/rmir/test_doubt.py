"""What becomes of a photo on which judges disagree: everywhere, as in the paper, or for the query that doubts it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eyespot.benchmarks._fitting import fitted
from eyespot.benchmarks.rmir import tasks
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.pipeline import Rates, RmirSizes, expected_size
from eyespot.curate.rmir.quality import shortcuts
from eyespot.runs import rmir
from eyespot.types import RankedImage, Run
from tests.command import run_eyespot
from tests.worlds import disagreeing
from tests.worlds import rmir as worlds


@pytest.mark.parametrize("photos", [1_000, 50_000])
def test_the_forecast_says_what_the_simulation_says(photos: int) -> None:
    shares = {
        (doubt, share): expected_size(RmirSizes(photos, round(photos * share), 20, doubt), Rates()).share
        for doubt in ("everywhere", "query")
        for share in (1.0, 0.2, 0.05)
    }

    assert shares["everywhere", 1.0] < 0.02 and 0.3 < shares["everywhere", 0.2] < 0.6
    assert 0.7 < shares["everywhere", 0.05] < 0.85
    assert all(0.87 < shares["query", share] < 0.94 for share in (1.0, 0.2, 0.05))


def test_a_forecast_names_the_way_out() -> None:
    everywhere = expected_size(RmirSizes(1_000, 1_000, 20, "everywhere"), Rates())
    tiny = expected_size(RmirSizes(30, 30, 20, "query"), Rates())
    good = expected_size(RmirSizes(1_000, 1_000, 20, "query"), Rates())

    assert not everywhere.usable and 'doubt = "query"' in list(everywhere.sentences())[1]
    assert not tiny.usable and len(list(tiny.sentences())) == 2
    assert good.usable and len(list(good.sentences())) == 1 and good.pool > 600


@pytest.fixture(scope="module")
def per_query(tmp_path_factory: pytest.TempPathFactory) -> FinishedSteps:
    """The disagreeing world with doubt per query; every query tests."""
    out = tmp_path_factory.mktemp("per-query")
    gallery = disagreeing.photos(out / "photos")
    place = disagreeing.recipe(out, gallery, confident='least = 0.75\ndoubt = "query"', split="threshold = -0.1")
    return disagreeing.made(place, out)


def test_a_photo_in_doubt_stays_for_other_queries(per_query: FinishedSteps) -> None:
    """The tie on the fish costs the query of the dam nothing, and the fish is the target of the fourth query."""

    def named(ids: list[str]) -> set[str]:
        return {disagreeing.name_of(per_query.seeds[id]["path"]) for id in ids}

    targets = {query["target"]: named(query["targets"]) for query in per_query.queries}
    unknown = {query["target"]: named(per_query.unknown.get(query["id"], [])) for query in per_query.queries}

    assert targets["water"] == {"fish1"} and len(targets) == 4
    assert not per_query.doubted and "fish1" in named(per_query.pool)
    assert unknown == {"pliers": set(), "a dam": {"fish1"}, "an igloo": set(), "water": set()}


def test_what_is_in_doubt_is_left_out_of_that_ranking_when_scored(per_query: FinishedSteps) -> None:
    folder = per_query.pipe.work.parent / "set"
    (task,) = tasks(folder, "test")
    dam, water = (next(q for q in per_query.queries if q["target"] == name) for name in ("a dam", "water"))
    fish = water["targets"][0]
    order = [fish, *(image for image in per_query.pool if image != fish)]
    run_ = Run({q["id"]: [RankedImage(image, -float(n)) for n, image in enumerate(order)] for q in (dam, water)})

    scored, _ = fitted(task, run_)

    assert rmir.read(folder).qrels.grades[dam["id"]][fish] == -1
    assert fish not in {hit.image for hit in scored[dam["id"]]} and scored[water["id"]][0].image == fish
    assert task.excluded(dam["id"]) >= {fish} and fish not in task.excluded(water["id"])


def test_mteb_gets_no_grade_that_it_would_take_for_a_wrong_picture(per_query: FinishedSteps) -> None:
    rows = pq.read_table(per_query.pipe.work.parent / "set" / "mteb" / "qrels" / "test.parquet").to_pylist()
    assert rows and {row["score"] for row in rows} == {0, 1}


def test_shortcuts_do_not_rank_what_is_in_doubt(per_query: FinishedSteps) -> None:
    """By chance: the pool has 6 photos; inputs and photos in doubt leave."""
    chance = next(one for one in shortcuts(per_query, per_query.queries) if one.way == "a random order").recall[1]
    pool = set(per_query.pool)
    left = [len(pool & {q["image"], *per_query.unknown.get(q["id"], [])}) for q in per_query.queries]
    assert chance == pytest.approx(sum(1 / (len(pool) - count) for count in left) / len(left)) and max(left) == 2


@pytest.mark.long
def test_a_dry_run_and_a_trial_forecast_the_set(gallery: Path, tmp_path: Path) -> None:
    """Nineteen photos make no usable set, and a trial measures how often its judges disagree."""
    place = worlds.recipe(tmp_path, gallery, confident='doubt = "query"')
    line = ("build", "rmir", place, "--out", tmp_path / "out", "--json")

    before, trial, after = (
        json.loads(run_eyespot(*line, *more).stdout)["forecast"]
        for more in (["--dry-run"], ["--limit", "19"], ["--dry-run"])
    )

    assert (before["measured"], before["doubt"], before["usable"]) == (False, 0.15, False)
    assert trial == after and after["measured"] and not after["usable"] and after["doubt"] != 0.15
