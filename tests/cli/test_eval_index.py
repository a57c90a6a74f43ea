"""`eyespot eval --index`: the numbers of an approximate index, which say that they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import eyespot
from eyespot import rooms
from eyespot.search.index_choice import Measured, building, store_index, stored_of
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.lazy_import import requires
from tests.worlds.vectors import drawn, take

pytestmark = requires("faiss")
NOTE = re.compile(r"approximate: about [\d.]+ % of the nearest were found")
WORDS = ["a heron", "a red disc", "stripes", "snow", "two birds", "a windmill"]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three thousand vectors, and an index that misses much: four bits for 128 numbers."""
    place = tmp_path_factory.mktemp("evaluated") / "gallery"
    view, settings = take(place, drawn(3000, 0)), {"kind": "pq", "parts": 4, "depth": 50}
    with building(view) as folder:
        rooms.load("indexes", "faiss", view.blocks, folder=folder / "0", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.712, 50, 100, "drawn")), folder / "0")
    return place


@pytest.fixture(scope="module")
def data(gallery: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries whose relevant images are the ten nearest, so that exact search scores 1."""
    folder, collection = tmp_path_factory.mktemp("data"), eyespot.open(gallery)
    queries = {f"q{n}": text for n, text in enumerate(WORDS)}
    (folder / "queries.csv").write_text("query_id,text\n" + "".join(f"{id},{text}\n" for id, text in queries.items()))
    best = {id: collection.search(text, k=10).ids for id, text in queries.items()}
    (folder / "qrels.txt").write_text("".join(f"{id} 0 {image} 1\n" for id in best for image in best[id]))
    return folder


def noted(notes: list[str]) -> bool:
    return any(NOTE.fullmatch(note) for note in notes)


def mean(found: dict[str, Any]) -> float:
    value: float = found["tasks"][0]["measures"]["AP@50"]["mean"]
    return value


def test_the_numbers_are_those_of_the_index_and_say_so(gallery: Path, data: Path, tmp_path: Path) -> None:
    options = ("own", "--data", data, "-g", gallery)
    exact, found = (
        run_json("eval", *options),
        run_json("eval", *options, "--index", "faiss", "--out", tmp_path / "report"),
    )

    assert mean(exact) == 1 and not any("approximate" in note for note in exact["notes"])
    assert 0.1 < mean(found) < 0.999 and noted(found["notes"]) and noted(found["tasks"][0]["notes"])
    assert found["made"]["arguments"]["index"] == "faiss"
    assert NOTE.search((tmp_path / "report" / "report.html").read_text())


@pytest.mark.long
def test_numbers_come_from_the_summary_until_the_index_changes(gallery: Path, data: Path, tmp_path: Path) -> None:
    first = run_json("eval", "own", "--data", data, "-g", gallery, "--index", "faiss", "--out", tmp_path)
    assert mean(run_json("eval", "--from", tmp_path / "summary.json")) == mean(first)
    settings = next(gallery.rglob("settings.json"))
    before, digests = settings.read_text(), settings.with_name("digests.txt")
    settings.write_text(before.replace("0.712", "0.713"))
    digests.rename(tmp_path / "digests.txt")  # with its digest it would count as damaged

    again = done("eval", "--from", tmp_path / "summary.json")
    settings.write_text(before)
    (tmp_path / "digests.txt").rename(digests)

    assert f"{settings} has changed since" in again.stderr


def test_the_environment_may_name_it_and_one_that_is_not_there_is_refused(gallery: Path, data: Path) -> None:
    line = ("eval", "own", "--data", data, "-g", gallery)

    assert noted(run_json(*line, EYESPOT_INDEX="faiss")["notes"])
    refuses(*line, "--index", "scann")
