"""`eyespot tune`: an index that finds enough, or one sentence on why there is none; and `eyespot eval` with one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import rooms
from eyespot.search.index_choice import Measured, building, names_in, store_index, stored_of
from eyespot.search.tuning import QUERIES, Try, Tuning, candidates, pictures_moved
from tests.cli.conftest import done, run_json
from tests.command import refuses
from tests.lazy_import import requires
from tests.worlds.vectors import DIM, drawn, take, view_of

pytestmark = requires("faiss")


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tuned") / "gallery"
    take(place, drawn(4000, 0))
    return place


def tune_report(*words: object) -> dict[str, Any]:
    found: dict[str, Any] = run_json("tune", *words)
    return found


@pytest.mark.long
def test_the_fastest_that_finds_enough_is_kept_and_searched(gallery: Path) -> None:
    found = tune_report("-g", gallery, "--recall", 0.95)

    enough = [one for one in found["tried"] if one["recall"] >= 0.95]
    matches = [one for one in enough if {**one, **found["settings"]} == one]
    assert len(matches) == 1 and found["index"] == "faiss"
    measured = found["measured"]
    assert set(measured["shares"]) == {"pictures, each moved towards another", "words"}
    assert measured["recall"] == min(measured["shares"].values()) >= 0.95 and measured["queries"] == QUERIES
    assert 0 <= measured["exact"] <= 1
    assert names_in(view_of(gallery)) == ["faiss"] and found["bytes"] < 4000 * DIM
    searched = done("search", "a heron", "-g", gallery, "-k", 3, "--json", EYESPOT_INDEX="faiss")
    answer = json.loads(searched.stdout)
    assert (answer["exact"], len(answer["items"])) == (answer.get("recall") is None, 3)
    assert ("% of the nearest were found" in searched.stderr) is not answer["exact"]


def test_a_dry_run_builds_nothing(tmp_path: Path) -> None:
    view = take(tmp_path / "gallery", drawn(3000, 0))

    plan = tune_report("-g", tmp_path / "gallery", "--dry-run")

    assert [one["kind"] for one in plan["builds"]] == ["pq", "pq", "rabitq"] and plan["rows"] == 3000
    assert names_in(view) == [] and not (tmp_path / "gallery" / "indexes").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ivf", "rabitq"])
def test_another_kind_is_tuned_and_searched(gallery: Path, kind: str) -> None:
    found = tune_report("-g", gallery, "--kind", kind, "--recall", 0.8)

    assert found["settings"]["kind"] == kind
    assert found["settings"]["lists"] == 128 if kind == "ivf" else found["settings"]["bits"] in (1, 2)
    answer = run_json("search", "a heron", "-g", gallery, "-k", 3, "--index", found["index"])
    assert (answer["exact"], len(answer["items"])) == (answer.get("recall") is None, 3)


@pytest.mark.parametrize(
    "words",
    [
        "--kind annoy",
        "--recall 1.5",
        "--queries none.npy",
        "--queries none.txt",
        "--queries few.npy",
        "--queries wide.npy",
        "--queries empty.txt",
        "-e nothing",
    ],
)
def test_what_makes_no_sense_is_refused(words: str, gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", drawn(3, 0))
    np.save(tmp_path / "wide.npy", np.ones((20, 7), np.float32))
    (tmp_path / "empty.txt").write_text("\n \n")

    refuses("tune", "-g", gallery, *words.split(), cwd=tmp_path)


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_without_a_vector_and_with_few_there_is_nothing_to_tune(tmp_path: Path, more: list[str]) -> None:
    take(tmp_path / "few", drawn(208, 0))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "torn.jpg").write_bytes(b"no photo")
    done("index", tmp_path / "photos", "-g", tmp_path / "none", code=3)

    for name in ("none", "few"):
        refuses("tune", "-g", tmp_path / name, *more, code=4)


@pytest.mark.long
def test_where_nothing_finds_enough_nothing_is_kept(tmp_path: Path) -> None:
    """Vectors without any structure: short codes say nothing of them."""
    noise = np.random.default_rng(0).standard_normal((2100, DIM)).astype(np.float32)
    view = take(tmp_path / "gallery", noise / np.linalg.norm(noise, axis=1, keepdims=True))

    assert "--recall" in done("tune", "-g", tmp_path / "gallery", "--recall", "1", code=4).stderr
    assert names_in(view) == []


@pytest.mark.long
def test_without_room_on_the_disk_it_is_said_and_nothing_is_kept(gallery: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    line = [sys.executable, "-c", f"{limit}; from eyespot.cli import main; main()"]
    before = names_in(view_of(gallery))
    arguments = ["tune", "-g", str(gallery), "--kind", "pq", "--recall", "0.8"]
    ran = subprocess.run([*line, *arguments], capture_output=True, text=True, timeout=120)

    assert ran.returncode == 1 and "cannot be written" in ran.stderr and "make room" in ran.stderr
    assert "stumbled" not in ran.stderr and "Traceback" not in ran.stderr
    assert names_in(view_of(gallery)) == before and not list(gallery.rglob(".building"))


@pytest.mark.long
def test_queries_of_your_own(gallery: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", 3 * drawn(20, 0))
    (tmp_path / "q.txt").write_text("\n".join(f"{n} birds" for n in range(12)) + "\n")

    for name, half in (("q.npy", 10), ("q.txt", 6)):
        found = tune_report("-g", gallery, "--queries", tmp_path / name, "--kind", "pq", "--recall", 0.5)
        assert (found["measured"]["queries"], found["measured"]["source"]) == (half, name)


@pytest.mark.long
def test_without_its_encoder_a_gallery_is_tuned_for_pictures_only(tmp_path: Path) -> None:
    take(tmp_path / "gallery", drawn(2500, 0), encoder="nobody:model")

    shown = done("tune", "-g", tmp_path / "gallery", "--kind", "pq", "--recall", 0.9, "--json")

    assert "tuned for pictures only, not for words: " in shown.stderr
    assert len(json.loads(shown.stdout)["measured"]["shares"]) == 1


def test_of_those_that_surely_find_enough_the_fastest_is_chosen(gallery: Path) -> None:
    view = view_of(gallery)
    (candidate, *_) = candidates("pq", 4000, DIM)

    def tried(recall: float, error: float, seconds: float) -> Try:
        return Try(candidate, {"probes": 1, "depth": 100}, recall, error, seconds)

    best, sure, unsure, short = tried(0.99, 0, 3), tried(0.95, 0.001, 2), tried(0.91, 0.1, 1), tried(0.8, 0, 0.5)
    assert Tuning(view, 0.9, [pictures_moved(view)]).chosen([best, sure, unsure, short]) is sure


def test_lists_are_tried_as_a_gallery_grows() -> None:
    small, large = (candidates("auto", rows, 768) for rows in (10_000, 1_000_000))

    pq, rabitq = [{"kind": "pq", "parts": parts} for parts in (192, 96)], {"kind": "rabitq", "bits": 1}
    assert [one.settings for one in small] == [*pq, rabitq]
    assert large[3].settings == {"kind": "ivf", "parts": 192, "lists": 2048} and max(large[3].probes) == 1024


def test_moved_pictures_are_near_and_new(gallery: Path) -> None:
    view = view_of(gallery)
    queries = pictures_moved(view, 40)

    nearest = (queries.vectors @ np.concatenate(view.blocks).T).max(axis=1)
    assert np.allclose(np.linalg.norm(queries.vectors, axis=1), 1, atol=1e-5)
    assert (nearest > 0.7).all() and (nearest < 0.999).all()


# -- `eyespot eval --index`: the numbers of an approximate index, which say that they are ------------------------------


NOTE = re.compile(r"approximate: about [\d.]+ % of the nearest were found")
WORDS = ["a heron", "a red disc", "stripes", "snow", "two birds", "a windmill"]


@pytest.fixture(scope="module")
def pq_gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three thousand vectors, and an index that misses much: four bits for 128 numbers."""
    place = tmp_path_factory.mktemp("evaluated") / "gallery"
    view, settings = take(place, drawn(3000, 0)), {"kind": "pq", "parts": 4, "depth": 50}
    with building(view) as folder:
        rooms.load("indexes", "faiss", view.blocks, folder=folder / "0", **settings)
        store_index(view, "faiss", stored_of(view, "faiss", settings, Measured(0.712, 50, 100, "drawn")), folder / "0")
    return place


@pytest.fixture(scope="module")
def data(pq_gallery: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries whose relevant images are the ten nearest, so that exact search scores 1."""
    folder, collection = tmp_path_factory.mktemp("data"), eyespot.open(pq_gallery)
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


def test_the_numbers_are_those_of_the_index_and_say_so(pq_gallery: Path, data: Path, tmp_path: Path) -> None:
    options = ("own", "--data", data, "-g", pq_gallery)
    exact, found = (
        run_json("eval", *options),
        run_json("eval", *options, "--index", "faiss", "--out", tmp_path / "report"),
    )

    assert mean(exact) == 1 and not any("approximate" in note for note in exact["notes"])
    assert 0.1 < mean(found) < 0.999 and noted(found["notes"]) and noted(found["tasks"][0]["notes"])
    assert found["made"]["arguments"]["index"] == "faiss"
    assert re.search(NOTE.pattern, (tmp_path / "report" / "report.html").read_text(), re.IGNORECASE)


@pytest.mark.long
def test_numbers_come_from_the_summary_until_the_index_changes(pq_gallery: Path, data: Path, tmp_path: Path) -> None:
    first = run_json("eval", "own", "--data", data, "-g", pq_gallery, "--index", "faiss", "--out", tmp_path)
    assert mean(run_json("eval", "--from", tmp_path / "summary.json")) == mean(first)
    settings = next(pq_gallery.rglob("settings.json"))
    before, digests = settings.read_text(), settings.with_name("digests.txt")
    settings.write_text(before.replace("0.712", "0.713"))
    digests.rename(tmp_path / "digests.txt")  # with its digest it would count as damaged

    again = done("eval", "--from", tmp_path / "summary.json")
    settings.write_text(before)
    (tmp_path / "digests.txt").rename(digests)

    assert f"{settings} has changed since" in again.stderr


def test_the_environment_may_name_it_and_one_that_is_not_there_is_refused(pq_gallery: Path, data: Path) -> None:
    line = ("eval", "own", "--data", data, "-g", pq_gallery)

    assert noted(run_json(*line, EYESPOT_INDEX="faiss")["notes"])
    refuses(*line, "--index", "scann")
