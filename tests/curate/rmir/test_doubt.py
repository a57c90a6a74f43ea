"""What becomes of a photo on which judges disagree: everywhere, as in the paper, or for the query that doubts it."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from eyespot.benchmarks._fitting import fitted
from eyespot.benchmarks.rmir import tasks
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.quality import shortcuts
from eyespot.runs import rmir
from eyespot.types import RankedImage, Run
from tests.worlds import disagreeing


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
