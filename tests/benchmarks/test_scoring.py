"""Rankings of tiny benchmarks to numbers that can be checked by hand: means, groups, floors, two stages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyespot.benchmarks import (
    Rescored,
    Result,
    Task,
    benchmark,
    benchmark as benchmark_of,
    check,
    sampled,
    scored,
    unknown,
)
from eyespot.metrics import aligned, floor, parse
from eyespot.types import NothingFound, RankedImage, Run, UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds
from tests.worlds.benchmarks import orders, tasks_of


def by(result: Result, name: str, label: str) -> dict[str, float]:
    """The mean of each group."""
    return {group.value: group.means[label] for group in result.groups[name]}


def test_inquire_fullrank_divides_by_all_that_is_relevant(tmp_path: Path) -> None:
    """AP@50: q1 finds a at 1 and b at 3, q2 finds c at 2, q3 finds only d of d, e, f.

    Names of groups do not differ in case, and queries without one have a row.
    """
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]

    found = scored(task, orders(q1="axb", q2="xc", q3="dx"))

    values = dict(zip(found.scores.queries, found.scores.values["AP@50"], strict=True))
    assert values == pytest.approx({"q1": (1 + 2 / 3) / 2, "q2": 1 / 2, "q3": 1 / 3})
    assert found.scores.mean("RR@50") == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert found.pool == 4_813_543
    assert by(found, "supercategory", "AP@50") == pytest.approx({"Behavior": (5 / 6 + 1 / 2) / 2, "Species": 1 / 3})
    assert by(found, "iconic_group", "AP@50") == pytest.approx({"Birds": 5 / 6, "(none)": (1 / 2 + 1 / 3) / 2})
    assert {group.value: group.queries for group in found.groups["category"]} == {"Feeding": 2, "Combo": 1}


def test_a_column_without_a_value_makes_no_breakdown(tmp_path: Path) -> None:
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]
    for facts in task.judged.queries.values():
        facts["iconic_group"] = ""

    assert scored(task, orders(q1="ab", q2="c", q3="d")).groups.keys() == {"supercategory", "category"}


def test_queries_that_the_run_lacks_score_zero_and_are_said(tmp_path: Path) -> None:
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]
    run = orders(q2="c", q9="a")

    result = scored(task, run)

    assert result.scores.mean("AP@50") == pytest.approx(1 / 3) and result.scores.missing == ["q1", "q3"]
    assert any(note.startswith("2 of 3 ") for note in result.notes)
    assert "'q9'" in unknown([task], {"t2i": run})[0]


def test_two_stages_stand_beside_the_best_that_re_ranking_can_do(tmp_path: Path) -> None:
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]
    first = orders(q1="xab", q2="xyc", q3="xyz")
    second = Run({"q1": [("a", 9), ("x", 5), ("b", 1)], "q2": [("y", 3), ("x", 2), ("c", 1)]})

    result = scored(task, first, Rescored(second, 2))

    # q1: xab is bent to axb, at best axb; q2: xyc to yxc, at best xyc, whose c at rank 3 stays behind
    means = {stage.name: stage.scores.mean("AP@50") for stage in result.stages}
    assert means == pytest.approx(
        {
            "first stage": ((1 / 2 + 2 / 3) / 2 + 1 / 3) / 3,
            "best possible of the first 2": ((1 + 2 / 3) / 2 + 1 / 3) / 3,
            "re-ranked": ((1 + 2 / 3) / 2 + 1 / 3) / 3,
        }
    )
    assert [hit.image for hit in result.run["q1"]] == list("axb")
    assert any(note.startswith("2 of the first 2 ") for note in result.notes)
    assert result.scores.means == result.stages[-1].scores.means


def test_second_stages_of_something_else_are_refused(tmp_path: Path) -> None:
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]

    with raises(NothingFound):
        scored(task, orders(q1="ab"), Rescored(orders(q1="XY", q2="c"), 3))


def test_equals_below_the_depth_stay_equals(tmp_path: Path) -> None:
    """c ties with x in the first stage: R = 1 at rank 3 of 3 comes to 1/3, whichever of the two stands first."""
    task = tasks_of("inquire-fullrank", worlds.inquire(tmp_path))["t2i"]
    first = Run({"q2": [("y", 0.9), ("c", 0.2), ("x", 0.2)]})

    result = scored(task, first, Rescored(Run({"q2": [("y", 1.0)]}), 1))

    assert [stage.scores.take([1]).mean("AP@50") for stage in result.stages] == [1 / 3, 1 / 3, 1 / 3]


def candidates(**ranked: list[int]) -> Run:
    """Rankings of a query's candidates 0 to 3."""
    return Run.from_orders({query: [str(10 * ord(query) + at) for at in order] for query, order in ranked.items()})


def test_rerank_ranks_candidates_alone_and_strangers_are_left_out(tmp_path: Path) -> None:
    task = tasks_of("inquire-rerank", worlds.inquire_rerank(tmp_path))["t2i"]
    run = Run.from_orders({"P": ["other", "801", "800", "802", "803"], "Q": ["810", "811", "801", "812", "813"]})

    result = scored(task, run)

    assert dict(zip(result.scores.queries, result.scores.values["AP"], strict=True)) == pytest.approx(
        {"P": 1, "Q": (1 / 2 + 2 / 4) / 2}
    )
    assert any("left out: 2 hits" in note for note in result.notes)


def test_candidates_that_the_run_does_not_rank_go_last_as_equals(tmp_path: Path) -> None:
    """The order in which they were handed out is CLIP's: P's relevant 801 stands before 802 there."""
    task = tasks_of("inquire-rerank", worlds.inquire_rerank(tmp_path))["t2i"]

    result = scored(task, candidates(P=[0], Q=[1, 3, 0, 2]))

    assert dict(zip(result.scores.queries, result.scores.values["AP"], strict=True)) == {"P": 1 / 4, "Q": 1}
    assert any("3 candidates that the run does not rank" in note for note in result.notes)


def test_a_query_that_ranks_none_of_its_candidates_is_not_given_the_order_of_another_system(tmp_path: Path) -> None:
    task = tasks_of("inquire-rerank", worlds.inquire_rerank(tmp_path))["t2i"]

    result = scored(task, Run.from_orders({"P": ["elsewhere"], "Q": ["811", "813", "810", "812"]}))

    assert result.scores.mean("AP") == 0.5 and result.scores.missing == ["P"]
    with raises(NothingFound):
        scored(task, Run.from_orders({"P": ["train/x/801.jpg"]}))


def test_the_floor_of_rerank_is_a_random_order_of_the_candidates(tmp_path: Path) -> None:
    """RR of P: one relevant among four; of Q: two."""
    task = tasks_of("inquire-rerank", worlds.inquire_rerank(tmp_path))["t2i"]

    result = scored(task, candidates(P=[0]))

    expected = ((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4 + (3 + 2 / 2 + 1 / 3) / 6) / 2
    assert result.floors["RR"].exact and result.floors["RR"].mean == pytest.approx(expected)
    assert task.judged.candidates is not None
    given = aligned(task.judged.candidates, task.judged.qrels)
    for label, measure in result.scores.measures.items():
        assert result.floors[label].mean == floor(measure, given).mean
    assert result.pool is None


def test_of_files_in_parts_all_must_be_there(tmp_path: Path) -> None:
    data = worlds.inquire_rerank(tmp_path, "test-00000-of-00002.parquet", "P")

    with raises(UsageError):
        tasks_of("inquire-rerank", data)
    worlds.inquire_rerank(tmp_path, "test-00001-of-00002.parquet", "Q")
    assert list(tasks_of("inquire-rerank", data)["t2i"].judged.queries) == ["P", "Q"]


def test_the_other_split_and_the_older_release_are_no_test_split(tmp_path: Path) -> None:
    worlds.inquire_rerank(tmp_path, "validation-00000-of-00001.parquet")
    worlds.inquire_rerank(tmp_path, "train-00000-of-00001.parquet")

    assert [status.state for status in check(benchmark("inquire-rerank"), tmp_path, "test")] == ["missing"]
    with raises(UsageError):
        tasks_of("inquire-rerank", tmp_path)
    assert len(tasks_of("inquire-rerank", tmp_path, "val")["t2i"].judged.queries) == 2


def test_ilias_scores_pictures_and_texts_apart_and_only_what_was_asked(tmp_path: Path) -> None:
    """i2i: Q0 of o1 finds P0 first and P1 third, Q1 of o1 nothing, Q0 of o2 its positive second."""
    tasks = tasks_of("ilias", worlds.ilias(tmp_path))
    o1, o2 = "o1/pos/P0.jpg", "o2/pos/P0.jpg"
    orders = {
        "o1/query/Q0.jpg": [o1, "x", "o1/pos/P1.jpg"],
        "o1/query/Q1.jpg": ["x"],
        "o2/query/Q0.jpg": ["x", o2],
        "o1/query/T.txt": [o1, "o1/pos/P1.jpg"],
    }

    pictures, texts = (scored(tasks[name], Run.from_orders(orders)) for name in ("i2i", "t2i"))

    assert pictures.scores.mean("AP@1000") == pytest.approx(((1 + 2 / 3) / 2 + 0 + 1 / 2) / 3)
    assert texts.scores.queries == ["o1/query/T.txt"] and texts.scores.mean("AP@1000") == 1
    # by scale: P1 (0.5) is third for Q0, and second once P0 (0.05) is away; o2 has no small positive
    first, *_, last = pictures.groups["scale"]
    assert first.queries == 2 and first.means["AP@1000"] == pytest.approx((1 + 0) / 2)
    assert last.queries == 3 and last.means["AP@1000"] == pytest.approx((1 / 2 + 0 + 1 / 2) / 3)
    # by clutter: from low up to but without high
    counts = {group.value: group.queries for group in texts.groups["clutter"]}
    assert counts == {"0 to 18": 1, "18 to 33": 0, "33 to 53": 1, "53 and more": 0}


def test_eccv_scores_six_tasks_of_one_ranking(tmp_path: Path) -> None:
    """Caption 1 fits images 1 and 2: R is 2 by ECCV's truths and 1 by COCO's."""
    tasks = tasks_of("eccv", worlds.eccv(tmp_path))
    run = Run.from_orders({"1": ["3", "2", "1"], "2": ["2"], "3": ["3"]})

    means = {name: scored(task, run).scores.mean("Hit@1") for name, task in tasks.items()}

    assert set(means.values()) == {2 / 3} and len(means) == 6
    assert scored(tasks["eccv-t2i"], run).scores.mean("mAP@R") == pytest.approx((1 / 4 + 1 + 1) / 3)
    assert scored(tasks["eccv-t2i"], run).floors["Hit@1"].mean == pytest.approx((2 / 3 + 1 / 3 + 1 / 3) / 3)


def test_the_pool_of_fg_images_is_what_the_list_names(tmp_path: Path) -> None:
    data = worlds.fine_grained(tmp_path)
    np.save(data / "MSCOCO_FG_img_filenames.npy", np.array(["one.jpg", "two.jpg", "three.jpg", "four.jpg"]))

    tasks = tasks_of("coco5k-fg", data)
    result = scored(tasks["t2i"], Run.from_orders({"one#0": ["four", "one"], "two#0": ["five"]}))

    assert len(tasks["t2i"].pool) == 4 and len(tasks["i2t"].pool) == 10
    assert result.floors["Hit@1"].mean == 1 / 4
    assert any("pool lacks them: 1 hit" in note for note in result.notes)


def test_rmir_s_mean_over_kinds_stands_beside_the_mean_over_queries(tmp_path: Path) -> None:
    task = tasks_of("rmir", worlds.rmir(tmp_path))["it2i"]

    result = scored(task, orders(q1="ax", q2="x", q3="c", q4="d"))

    assert result.scores.mean("R@20") == pytest.approx((1 / 2 + 0 + 1 + 1) / 4)
    assert by(result, "kind", "R@20") == pytest.approx(
        {"functional": 1 / 2, "temporal": 1, "mean over kinds": (1 / 2 + 1) / 2}
    )
    assert [group.queries for group in result.groups["kind"]] == [3, 1, 4]


def test_a_query_s_own_picture_leaves_its_ranking_and_its_pool(tmp_path: Path) -> None:
    """Of the pool a to f each query ranks five: f is what it asks with."""
    task = tasks_of("rmir", worlds.rmir(tmp_path))["it2i"]

    result = scored(replace(task, measures=[parse("Hit@1")]), orders(q1="fa", q2="fb", q3="fc", q4="fd"))

    assert result.scores.mean("Hit@1") == 3 / 4
    assert result.floors["Hit@1"].mean == pytest.approx((2 / 5 + 1 / 5 + 1 / 5 + 1 / 5) / 4)


def test_own_breaks_down_by_what_recurs_and_says_what_is_not_judged(tmp_path: Path) -> None:
    result = scored(tasks_of("own", worlds.own(tmp_path))["own"], orders(q1="ba", q2="b", q3="c", q4="a"))

    assert by(result, "place", "AP@50") == {"high": 1, "low": (1 / 2 + 1) / 2}
    assert any("'q4'" in note for note in result.notes)
    assert result.floors == {}


def test_own_splits_are_asked_for_by_name(tmp_path: Path) -> None:
    data = worlds.own(tmp_path)
    worlds.table(data / "queries.csv", [{"id": "q1", "text": "x", "split": "val"}])

    assert list(tasks_of("own", data, "val")["own"].judged.queries) == ["q1"]
    with raises(UsageError):
        tasks_of("own", data)


def test_own_pictures_that_are_judged_relevant_stay(tmp_path: Path) -> None:
    data = worlds.own(tmp_path)
    worlds.table(data / "queries.csv", [{"id": "q1", "image": "a"}, {"id": "q2", "image": "a"}])

    result = scored(tasks_of("own", data)["own"], orders(q1="ab", q2="ab"))

    assert {query: [hit.image for hit in result.run[query]] for query in result.run} == {"q1": ["a", "b"], "q2": ["b"]}


@pytest.mark.parametrize(("column", "mean", "noted"), [({}, 0.5, True), ({"image": "a"}, 1.0, False)])
def test_a_query_with_an_image_s_id_is_noted(column: dict[str, str], mean: float, noted: bool, tmp_path: Path) -> None:
    data = worlds.own_set(
        tmp_path, [{"id": "a", "text": "x", **column}, {"id": "b", "text": "y"}], {"a": {"c": 1}, "b": {"b": 1}}
    )

    result = scored(replace(tasks_of("own", data)["own"], measures=[parse("RR")]), orders(a="ac", b="bc"))

    assert result.scores.values["RR"].tolist() == [mean, 1.0]
    assert [note for note in result.notes if "own id" in note] == noted * [
        "1 of 2 queries rank an image of their own id, which counts as not relevant; "
        "a column image that names it leaves it out"
    ]


def test_a_sample_is_drawn_by_the_seed_of_what_is_judged_and_keeps_the_pool(tmp_path: Path) -> None:
    (task,) = tasks_of("own", worlds.own(tmp_path)).values()
    drawn = [tuple(sampled([task], 2, seed)[0].judged.queries) for seed in range(20)]

    assert {len(queries) for queries in drawn} == {2} and len(set(drawn)) == 3
    assert all("q4" not in queries for queries in drawn)
    assert drawn[3] == tuple(sampled([task], 2, 3)[0].judged.queries)


def test_two_truths_of_the_same_queries_are_sampled_alike(tmp_path: Path) -> None:
    every, target = sampled(list(tasks_of("circo", worlds.circo(tmp_path)).values()), 1, seed=1)

    assert list(every.judged.queries) == list(target.judged.queries)


def test_scores_beyond_float_precision_still_put_the_rest_below() -> None:
    run = Run({"q": [RankedImage("a", 1e17), RankedImage("b", 1e17), RankedImage("c", 1e17)]})

    made, without = Rescored(Run({"q": [RankedImage("b", 1e18), RankedImage("a", 1e17)]}), 3)(run)

    assert [hit.image for hit in made["q"]] == ["b", "a", "c"] and made["q"][1].score > made["q"][2].score
    assert without == 1


# -- PMRP, whose truths are a download apart ---------------------------------------------------------------------


PER_IMAGE = 2


def world(data: Path, images: int = 10) -> dict[str, Task]:
    """Images 0 to 9 with two captions each, 0 to 19: two for each image."""
    captions = {str(caption): [caption // PER_IMAGE] for caption in range(PER_IMAGE * images)}
    turned = {str(image): [PER_IMAGE * image + at for at in range(PER_IMAGE)] for image in range(images)}
    for truth in ("original", "cxc", "eccv"):
        worlds.write(data / f"{truth}_caption_to_image.json", captions)
        worlds.write(data / f"{truth}_image_to_caption.json", turned)
    np.save(data / "coco_test_ids.npy", np.arange(PER_IMAGE * images))
    return worlds.tasks_of("eccv", data)


def test_pmrp_is_there_with_its_files_and_is_r_precision_by_hand(tmp_path: Path) -> None:
    """Captions 0 to 3 plausibly fit images 0 and 1, all others their own."""
    assert not [name for name in world(tmp_path) if name.startswith("pm")]
    assert {state.needed.path[:3]: state.state for state in check(benchmark_of("eccv"), tmp_path, "test")}["pm_"] == (
        "absent"
    )
    matches = {str(caption): [0, 1] if caption < 4 else [caption // 2] for caption in range(20)}
    worlds.write(tmp_path / "pm" / "pm_caption_to_image.json", matches)
    assert "eccv-t2i" in (half := worlds.tasks_of("eccv", tmp_path)) and "pm-t2i" not in half  # one file alone
    worlds.write(tmp_path / "pm" / "pm_image_to_caption.json", {"0": [0, 1, 2, 3]})
    tasks = worlds.tasks_of("eccv", tmp_path)

    words = scored(tasks["pm-t2i"], Run.from_orders({str(c): ["1", "5", "0"] for c in range(20)}))
    pictures = scored(tasks["pm-i2t"], Run.from_orders({"0": ["3", "9", "1", "0", "2"]}))

    assert words.scores.means == {"Rprec": pytest.approx((4 * 1 / 2 + 0 + 0) / 20)}
    assert pictures.scores.means == {"Rprec": 3 / 4}
