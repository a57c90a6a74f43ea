"""What every benchmark of the room keeps, and the published tables against the papers' own."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from eyespot.benchmarks import benchmark, check, names
from eyespot.benchmarks._papers import rows
from eyespot.metrics import labels_of
from eyespot.types import UsageError
from tests.wording import raises
from tests.worlds import benchmarks as worlds

WORLDS: dict[str, Callable[[Path], Path]] = {
    "circo": worlds.circo,
    "coco5k": worlds.karpathy,
    "coco5k-fg": worlds.fine_grained,
    "eccv": worlds.eccv,
    "flickr30k": lambda data: worlds.karpathy(data, "dataset_flickr30k.json", ids=False),
    "flickr30k-fg": lambda data: worlds.fine_grained(data, "Flickr30K_FG.json"),
    "ilias": worlds.ilias,
    "inquire-fullrank": worlds.inquire,
    "inquire-rerank": worlds.inquire_rerank,
    "own": worlds.own,
    "recos": worlds.recos,
    "rmir": worlds.rmir,
}
NOT_RESULTS = {"params_m", "resolution", "k"}  # columns of numbers that say what was measured, and how
PUBLISHED = sorted(
    Path(place.name).stem
    for place in resources.files("eyespot.benchmarks").joinpath("published").iterdir()
    if place.name.endswith(".csv")
)


def test_every_benchmark_has_a_world_here() -> None:
    assert set(WORLDS) == set(names())


@pytest.mark.parametrize("name", names())
def test_it_says_what_it_is_and_needs_and_refuses_an_empty_folder(name: str, tmp_path: Path) -> None:
    found = benchmark(name)

    assert found.name == name and found.title and found.about and found.licence and found.splits
    assert all(needed.path and needed.what and needed.where for needed in found.needs)
    assert {needed.split for needed in found.needs} <= {None, *found.splits}
    states = check(found, tmp_path, found.splits[0])
    assert {status.state for status in states} <= {"missing", "absent"} and any(status.stops for status in states)
    with raises(UsageError):
        worlds.tasks_of(name, tmp_path)


@pytest.mark.parametrize("name", names())
def test_what_check_finds_can_be_read_and_papers_print_of_its_tasks_measures_and_breakdowns(
    name: str, tmp_path: Path
) -> None:
    data = WORLDS[name](tmp_path)
    split = benchmark(name).splits[0]

    assert not any(status.stops for status in check(benchmark(name), data, split))
    made = worlds.tasks_of(name, data)
    assert all(task.judged.queries for task in made.values())
    for one in benchmark(name).printed():
        task = made[one.task]
        assert 0 <= one.value <= 1 and one.measure in labels_of(list(task.measures)), one
        assert one.column is None or one.column in {by.name for by in task.by}, one


@pytest.mark.parametrize("name", names())
def test_a_file_that_is_empty_is_not_there(name: str, tmp_path: Path) -> None:
    data, split = WORLDS[name](tmp_path), benchmark(name).splits[0]
    place = next(one.place for one in check(benchmark(name), data, split) if one.place and one.place.is_file())
    place.write_bytes(b"")

    (status,) = [one for one in check(benchmark(name), data, split) if one.place == place]

    assert status.state in ("missing", "absent") and "is empty" in status.reason


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_are_the_papers_to_the_byte(name: str) -> None:
    theirs = worlds.SHARED / "published" / f"{name}.csv"
    if not theirs.is_file():
        pytest.skip(f"needs {theirs}")
    ours = resources.files("eyespot.benchmarks").joinpath("published", f"{name}.csv")

    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_number_stands_in_some_benchmark(name: str) -> None:
    shown = sorted(
        (round(100 * one.value if one.percent else one.value, 6), word)
        for each in names()
        for one in benchmark(each).printed()
        for word in {one.method, one.method.rpartition(" ")[2]}
    )
    found = set(shown)
    cells = [
        (float(cell), method, column)
        for row in rows(name)
        for column, cell in row.items()
        if column not in NOT_RESULTS and _is_number(cell)
        for method in [_method(name, row, column)]
    ]

    assert cells
    assert [cell for cell in cells if cell[:2] not in found] == []


def _method(name: str, row: dict[str, str], column: str) -> str:
    """Under what `Printed` has a cell: its method, of which the last word is enough."""
    if name == "recos_table2":
        return column
    if name == "recos_table3":
        return row["version"]
    return (row.get("method") or row["resolution"]).rpartition(" ")[2]


def _is_number(cell: str) -> bool:
    return bool(cell) and cell.replace(".", "", 1).isdigit()
