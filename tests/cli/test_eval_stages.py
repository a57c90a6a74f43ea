"""`eyespot eval` with the stages of a search, and several systems in one table: the numbers of the same chains."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import sample
from eyespot.adapters.linear import Linear, save
from eyespot.benchmarks.own import MEASURES
from eyespot.metrics import evaluate
from eyespot.runs import read_qrels, write_run
from eyespot.search import Adapted, Collection, Nearest
from eyespot.types import Query, Run
from tests.cli.conftest import done, gallery_of_samples, run_json
from tests.command import refuses, run_eyespot
from tests.worlds import benchmarks as worlds
from tests.worlds.adapters import checkpoint

pytestmark = pytest.mark.usefixtures("without_figures")

TEXTS = {"castle": "a castle", "owl": "an owl", "pig": "a pig"}
QUERIES = [Query.words(text, id) for id, text in TEXTS.items()]


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = sorted(sample.photos().glob("explore_*.jpg"))[:40]
    return gallery_of_samples(tmp_path_factory.mktemp("staged") / "world", photos)


@pytest.fixture(scope="module")
def collection(gallery: Path) -> Collection:
    return eyespot.open(gallery)


def judged(folder: Path, collection: Collection, queries: list[Query], rows: list[dict[str, str]]) -> Path:
    """A benchmark in which relevant is what the plain search has at ranks 2, 4 and 6."""
    run = Nearest.of(collection, 10)(queries)
    return worlds.own_set(folder, rows, {id: [hit.image for hit in run[id][1:6:2]] for id in run})


@pytest.fixture(scope="module")
def data(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": id, "text": text} for id, text in TEXTS.items()]
    return judged(tmp_path_factory.mktemp("words") / "data", collection, QUERIES, rows)


def mean(found: dict[str, Any]) -> float:
    return float(found["tasks"][0]["measures"]["AP@50"]["mean"])


def scored(run: Run, data: Path) -> float:
    return float(evaluate(run, read_qrels(data / "qrels.json"), MEASURES).means["AP@50"])


@pytest.fixture
def own(data: Path, gallery: Path) -> Callable[..., dict[str, Any]]:
    def evaluated(*words: object) -> dict[str, Any]:
        found: dict[str, Any] = run_json("eval", "own", "--data", data, "-g", gallery, *words)
        return found

    return evaluated


def test_an_adapter_re_ranks_a_run(own: Callable[..., Any], collection: Collection, data: Path, tmp_path: Path) -> None:
    adapter = checkpoint(tmp_path / "quari", collection.view.space.dim)
    run = Nearest.of(collection, 30)(QUERIES)
    write_run(run, tmp_path / "run.txt")
    write_run(Run({id: [("elsewhere", 9.0), *run[id]] for id in run}), tmp_path / "more.txt")

    whole = own("--run", tmp_path / "run.txt", "--adapt", adapter, "--depth", 6)
    lacking = own("--run", tmp_path / "more.txt", "--adapt", adapter, "--depth", 31)

    assert mean(whole) == pytest.approx(scored(Adapted.of(collection, adapter, 6)(QUERIES, run), data), abs=1e-9)
    assert whole["system"] == f"run.txt + {adapter.name}"
    assert mean(lacking) == pytest.approx(scored(Adapted.of(collection, adapter, 30)(QUERIES, run), data), abs=1e-9)
    assert any(note.startswith("3 of the first 31 hits are not in the gallery") for note in lacking["notes"])


@pytest.mark.long
def test_a_row_scores_what_its_options_score(own: Callable[..., Any], collection: Collection, tmp_path: Path) -> None:
    rng, dim = np.random.default_rng(0), collection.view.space.dim
    weight, bias = rng.normal(size=(9, dim)).astype(np.float32), rng.normal(size=9).astype(np.float32)
    save(tmp_path / "ta", Linear(weight, bias, collection.view.space.encoder))
    quari = checkpoint(tmp_path / "quari", dim)
    rows = {
        "frozen": "",
        "QE-1": "--neighbours 1",
        "α-QE": "--neighbours 3 --alpha 3",
        "TA": f"--adapt linear:{tmp_path / 'ta'}",
        "QuARI": f"--adapt {quari}",
        "QuARI re-ranks": f"--adapt {quari} --adapt-depth 10",
    }

    found = own(*(word for name, line in rows.items() for word in ("--row", f"{name} = {line}")))

    assert [row["system"] for row in found["rows"]] == list(rows) and found["failed"] == {}
    for row, line in zip(found["rows"], rows.values(), strict=True):
        assert mean(row) == mean(own(*line.split()))
        low, high = row["tasks"][0]["measures"]["AP@50"]["interval"]
        assert low <= mean(row) <= high
        assert row["tasks"][0]["seconds"]["search"] > 0 and row["tasks"][0]["seconds"]["encode"] > 0
    assert len({mean(row) for row in found["rows"]}) > 3


def test_a_row_that_cannot_be_made_leaves_the_others(gallery: Path, data: Path) -> None:
    line = ("eval", "own", "--data", data, "-g", gallery, "--row", "lost = --adapt nowhere")

    found = run_json(*line, "--row", "frozen", code=3)

    assert [row["system"] for row in found["rows"]] == ["frozen"] and "config.yml" in found["failed"]["lost"]
    done(*line, code=4)


def test_rows_stand_in_one_table_with_interval_and_time(gallery: Path, data: Path) -> None:
    line = ("eval", "own", "--data", data, "-g", gallery)

    shown = done(*line, "--row", "frozen", "--row", "QE-2 = --neighbours 2")

    head, first, second = shown.stdout.splitlines()[1:4]
    assert head.split()[:3] == ["system", "queries", "images"] and head.endswith("ms a query")
    assert first.split()[:3] == ["frozen", "3", "40"] and "[" in first and second.startswith("QE-2")


@pytest.mark.long
def test_a_killed_table_goes_on_with_the_rows_that_lack(own: Callable[..., Any], tmp_path: Path) -> None:
    first = own("--out", tmp_path, "--row", "frozen")
    before = (tmp_path / "frozen" / "summary.json").stat().st_mtime_ns

    both = own("--out", tmp_path, "--row", "frozen", "--row", "αQE-1 = --neighbours 1")
    other = own("--out", tmp_path, "--row", "frozen = --neighbours 2")

    assert mean(both["rows"][0]) == mean(first["rows"][0])
    assert mean(other["rows"][0]) != mean(first["rows"][0])  # the same name, other options: made again
    assert (tmp_path / "frozen" / "summary.json").stat().st_mtime_ns > before
    assert mean(run_json("eval", "--from", tmp_path / "αQE-1" / "summary.json")) == mean(both["rows"][1])
    assert "frozen" in (tmp_path / "tables.md").read_text()


@pytest.mark.long
def test_a_half_written_report_is_no_row(own: Callable[..., Any], gallery: Path, data: Path, tmp_path: Path) -> None:
    """The report of QE-30 is half written over that of QE-1; the options of QE-1 must not find it as theirs."""
    first = own("--out", tmp_path, "--row", "a = --neighbours 1")
    (tmp_path / "a" / "run.parquet").unlink()
    (tmp_path / "a" / "run.parquet").mkdir()  # the write fails here, after it has begun
    line = ("eval", "own", "--data", data, "-g", gallery, "--out", tmp_path)
    broken = run_eyespot(*line, "--row", "a = --neighbours 30 --alpha 0")
    (tmp_path / "a" / "run.parquet").rmdir()
    again = own("--out", tmp_path, "--row", "a = --neighbours 1")

    assert broken.returncode != 0 and mean(again["rows"][0]) == mean(first["rows"][0])
    assert (tmp_path / "a" / "run.parquet").is_file()


def test_numbers_come_from_the_summary_but_of_no_later_version(own: Callable[..., Any], tmp_path: Path) -> None:
    """What is off or nought is so when it is repeated."""
    first = own("--neighbours", 3, "--alpha", 0, "--no-teach", "--out", tmp_path)
    again = run_json("eval", "--from", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    summary["made"]["arguments"]["from_the_future"] = 1
    worlds.write(tmp_path / "summary.json", summary)

    assert mean(again) == mean(first) != mean(own())
    for found in (first, again):
        assert (found["made"]["arguments"]["teach"], found["made"]["arguments"]["alpha"]) == (False, 0)
    refuses("eval", "--from", tmp_path / "summary.json")
