"""PMRP, whose truths are a download apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eyespot.benchmarks import Task, check, scored
from eyespot.benchmarks import benchmark as benchmark_of
from eyespot.types import Run
from tests.worlds import benchmarks as worlds

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
