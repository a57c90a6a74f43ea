"""COCO 1K: five folds of COCO 5k, each scored as if it were alone; and PMRP, whose truths are a download apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyespot.benchmarks import Task, check, scored
from eyespot.benchmarks import benchmark as benchmark_of
from eyespot.metrics import evaluate
from eyespot.types import Qrels, Run
from tests.worlds import benchmarks as worlds

PER_IMAGE = 2


def world(data: Path, images: int = 10) -> dict[str, Task]:
    """Images 0 to 9 with two captions each, 0 to 19: captions 0 to 3 and their images 0 and 1 are the first fold."""
    captions = {str(caption): [caption // PER_IMAGE] for caption in range(PER_IMAGE * images)}
    turned = {str(image): [PER_IMAGE * image + at for at in range(PER_IMAGE)] for image in range(images)}
    for truth in ("original", "cxc", "eccv"):
        worlds.write(data / f"{truth}_caption_to_image.json", captions)
        worlds.write(data / f"{truth}_image_to_caption.json", turned)
    np.save(data / "coco_test_ids.npy", np.arange(PER_IMAGE * images))
    return worlds.tasks_of("eccv", data)


@pytest.mark.parametrize("way", ["t2i", "i2t"])
def test_the_mean_over_folds_is_that_of_five_sets_scored_alone(way: str, tmp_path: Path) -> None:
    tasks = world(tmp_path)
    task, of = tasks[f"coco1k-{way}"], tasks[f"coco-{way}"].judged.qrels
    rng = np.random.default_rng(7)
    pool = list(task.pool)
    run = Run.from_orders({query: [pool[at] for at in rng.permutation(len(pool))] for query in of})
    size = (PER_IMAGE if way == "t2i" else 1) * 2  # queries of a fold

    alone = []
    for fold in range(5):
        queries = [str(at) for at in range(fold * size, (fold + 1) * size)]
        inside = {str(at) for at in range(fold * len(pool) // 5, (fold + 1) * len(pool) // 5)}
        hits = {query: [hit.image for hit in run[query] if hit.image in inside] for query in queries}
        qrels = Qrels({query: dict(of[query]) for query in queries})
        alone.append(evaluate(Run.from_orders(hits), qrels, task.measures).means)

    found = scored(task, run)
    assert found.scores.means == pytest.approx({m: np.mean([one[m] for one in alone]) for m in alone[0]})
    assert found.pool == len(pool) // 5 and found.floors["Hit@1"].mean == pytest.approx(
        1 / 2 if way == "t2i" else PER_IMAGE / 4
    )


def test_a_set_that_does_not_fall_into_five_folds_has_none(tmp_path: Path) -> None:
    assert "coco1k-t2i" in world(tmp_path / "whole") and "coco1k-t2i" not in world(tmp_path / "odd", 11)
    (tmp_path / "split").mkdir()
    tasks = world(tmp_path / "split", 5)
    np.save(tmp_path / "split" / "coco_test_ids.npy", np.array([0, 2, 1, 3, 4, 5, 6, 7, 8, 9]))

    assert "coco1k-i2t" in tasks and "coco1k-i2t" not in worlds.tasks_of("eccv", tmp_path / "split")


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
