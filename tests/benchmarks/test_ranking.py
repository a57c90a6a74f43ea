"""Files of rankings to the tasks they belong to: one for all, one for each, and matrices read both ways."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as drawn_from
from hypothesis import strategies as st

from eyespot.benchmarks import Task, check, files_of, runs_of, scored
from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.benchmarks._fitting import aliases
from eyespot.runs import write_run
from eyespot.types import Run, UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds
from tests.worlds.benchmarks import tasks_of

CAPTIONS = [str(at) for at in range(15)]  # five of each of the images 0, 1 and 2
IMAGES = ["0", "1", "2"]


@pytest.fixture
def coco(tmp_path: Path) -> list[Task]:
    return list(tasks_of("coco5k", worlds.karpathy(tmp_path)).values())


def hits(tasks: list[Task], runs: dict[str, Run]) -> dict[str, float]:
    return {task.name: scored(task, runs[task.name]).scores.mean("Hit@1") for task in tasks if task.name in runs}


def similarities() -> list[list[float]]:
    """(captions, images): images 0 and 1 have all their captions next to them, image 2 has none; caption 4 is lost."""
    found = np.zeros((15, 3))
    for caption in range(15):
        found[caption, 2 if caption == 4 else min(caption // 5, 1)] = 1 + caption / 100
    listed: list[list[float]] = found.tolist()
    return listed


@pytest.mark.parametrize("turned", [False, True])
def test_a_matrix_is_read_both_ways(turned: bool, coco: list[Task], tmp_path: Path) -> None:
    scores, sides = np.array(similarities()), (CAPTIONS, IMAGES)
    rows, columns = sides[::-1] if turned else sides
    file = worlds.matrix(tmp_path / "m.npz", rows, columns, (scores.T if turned else scores).tolist())

    means = hits(coco, runs_of(coco, [str(file)]))

    # image 1 is nearest to caption 14, which is image 2's; image 2 to caption 4, which is image 0's
    assert means == pytest.approx({"i2t": 1 / 3, "t2i": 9 / 15})


def test_fg_with_the_list_of_its_pool(tmp_path: Path) -> None:
    """The list's third image stands above one of the described, for the captions of image two."""
    data = worlds.fine_grained(tmp_path)
    np.save(data / "MSCOCO_FG_img_filenames.npy", np.array(["one.jpg", "two.jpg", "more.jpg"]))
    tasks = list(tasks_of("coco5k-fg", data).values())
    rows = [f"{image}#{at}" for image in ("one", "two") for at in range(5)]
    scores = [[0.9, 0.1, 0.2]] * 5 + [[0.1, 0.6, 0.8]] * 5
    file = worlds.matrix(tmp_path / "m.npz", rows, ["one", "two", "more"], scores)

    assert hits(tasks, runs_of(tasks, [str(file)])) == {"i2t": 1, "t2i": 1 / 2}


def test_captions_and_images_of_one_number_are_not_taken_for_each_other(coco: list[Task], tmp_path: Path) -> None:
    """Captions 0, 1 and 2 are also numbers of images: a file of text→image alone says nothing of image→text."""
    file = tmp_path / "depth=5.txt"  # an equals sign in its name
    write_run(Run.from_orders({str(10 + at): ["2", "1"] for at in range(5)}), file)

    assert set(runs_of(coco, [str(file)])) == set(runs_of(coco, [f"t2i={file}"])) == {"t2i"}
    assert files_of(coco, [str(file)]) == files_of(coco, [f"t2i={file}"]) == [file]


def test_one_file_serves_every_task_whose_queries_it_has(tmp_path: Path) -> None:
    tasks = list(tasks_of("ilias", worlds.ilias(tmp_path)).values())
    file = tmp_path / "run.json"
    write_run(Run.from_orders({"o1/query/T.txt": ["x"], "o2/query/Q0.jpg": ["o2/pos/P0.jpg"]}), file)

    found = runs_of(tasks, [str(file)])

    assert found["i2i"] is found["t2i"]
    assert [scored(task, found[task.name]).scores.mean("AP@1000") for task in tasks] == [1, 0]


@pytest.mark.parametrize(
    "given",
    [
        ["a.txt", "b.txt"],
        ["t2i=a.txt", "b.txt"],
        ["t2i=a.txt", "t2i=b.txt"],
        ["x2y=somewhere.txt"],
        ["nowhere.txt"],
    ],
)
def test_what_is_not_clear_is_asked_back(
    given: list[str], coco: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        write_run(Run.from_orders({"0": ["0"]}), Path(name))

    with raises(UsageError):
        runs_of(coco, given)


def test_short_names_that_two_images_share_are_no_names() -> None:
    assert aliases(["a/1.jpg", "b/2.jpg"], {})[1:] == [["1.jpg", "2.jpg"], ["1", "2"]]
    assert aliases(["a/1.jpg", "b/1.jpg"], {}) == [["a/1.jpg", "b/1.jpg"]]
    assert aliases(["7"], {"7": {"path": "x/y.jpg"}}) == [["7"], ["x/y.jpg"], ["y.jpg"], ["y"]]


@drawn_from(st.lists(st.text("ab/.", min_size=1, max_size=6), min_size=1, max_size=5, unique=True))
def test_every_way_of_naming_keeps_images_apart(names: list[str]) -> None:
    assert all(len(set(way)) == len(names) for way in aliases(names, {}))


def needing(**more: int | str | bool | None) -> Benchmark:
    """A benchmark of one file, a.txt or b.txt."""
    needed = Needed("a.txt|deep/b.txt", "words", "write them", **more)  # type: ignore[arg-type]
    return Benchmark("x", "X", "", "", "", "", lambda _data, _asked: [], [needed])


SHA = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc"


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "ok"),
        ({"size": 3, "sha256": SHA}, "ok"),
        ({"size": 4}, "other"),
        ({"size": 3, "sha256": "0" * 64}, "other"),
    ],
)
def test_check_compares_a_file_with_the_known_copy(tmp_path: Path, more: dict[str, int | str], state: str) -> None:
    place = worlds.write(tmp_path / "deep" / "b.txt", "abc")

    (found,) = check(needing(**more), tmp_path, "test")

    assert (found.state, found.place, found.stops) == (state, place, False)
    assert bool(found.reason) == (state == "other")


@pytest.mark.parametrize(
    ("more", "states"),
    [({}, ["missing"]), ({"required": False}, ["absent"]), ({"split": "val"}, []), ({"split": "test"}, ["missing"])],
)
def test_check_tells_what_is_missing_for_the_split(
    tmp_path: Path, more: dict[str, int | str], states: list[str]
) -> None:
    assert [status.state for status in check(needing(**more), tmp_path / os.devnull, "test")] == states
