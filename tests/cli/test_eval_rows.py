"""`eyespot eval --row`: several systems in one table, each as if it were evaluated alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import sample
from eyespot.adapters.linear import Linear, save
from eyespot.runs import write_run
from eyespot.search import Collection, Nearest
from eyespot.types import Query
from tests.cli.conftest import gallery_of_samples, run_json
from tests.command import run_eyespot
from tests.worlds import benchmarks as worlds
from tests.worlds.adapters import checkpoint

TEXTS = {"castle": "a castle", "owl": "an owl", "pig": "a pig"}


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    photos = sorted(sample.photos().glob("explore_*.jpg"))[:40]
    return gallery_of_samples(tmp_path_factory.mktemp("rows") / "gallery", photos)


@pytest.fixture(scope="module")
def collection(gallery: Path) -> Collection:
    return eyespot.open(gallery)


@pytest.fixture(scope="module")
def data(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three queries in words; relevant is what the plain search has at ranks 2, 4 and 6."""
    run = Nearest.of(collection, 10)([Query.words(text, id) for id, text in TEXTS.items()])
    truth = {id: [hit.image for hit in run[id][1:6:2]] for id in TEXTS}
    rows = [{"id": id, "text": text} for id, text in TEXTS.items()]
    return worlds.own_set(tmp_path_factory.mktemp("words") / "data", rows, truth)


@pytest.fixture(scope="module")
def linear(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A map of the gallery's vectors to nine components."""
    rng, dim = np.random.default_rng(0), collection.view.space.dim
    weight, bias = rng.normal(size=(9, dim)).astype(np.float32), rng.normal(size=9).astype(np.float32)
    folder = tmp_path_factory.mktemp("linear") / "ta"
    save(folder, Linear(weight, bias, collection.view.space.encoder))
    return folder


def mean(found: dict[str, Any]) -> float:
    return float(found["tasks"][0]["measures"]["AP@50"]["mean"])


def own(data: Path, gallery: Path, *words: object) -> dict[str, Any]:
    return run_json("eval", "own", "--data", data, "-g", gallery, *words)


@pytest.mark.long
def test_each_row_scores_what_its_options_score_alone(gallery: Path, data: Path, linear: Path, tmp_path: Path) -> None:
    quari = checkpoint(tmp_path / "quari", eyespot.open(gallery).view.space.dim)
    rows = {
        "frozen": "",
        "QE-1": "--neighbours 1",
        "α-QE": "--neighbours 3 --alpha 3",
        "TA": f"--adapt linear:{linear}",
        "QuARI": f"--adapt {quari}",
        "QuARI re-ranks": f"--adapt {quari} --adapt-depth 10",
    }

    found = own(data, gallery, *(word for name, line in rows.items() for word in ("--row", f"{name} = {line}")))

    assert [row["system"] for row in found["rows"]] == list(rows) and found["failed"] == {}
    for row, line in zip(found["rows"], rows.values(), strict=True):
        assert mean(row) == mean(own(data, gallery, *line.split()))
        low, high = row["tasks"][0]["measures"]["AP@50"]["interval"]
        assert low <= mean(row) <= high
        assert row["tasks"][0]["seconds"]["search"] > 0 and row["tasks"][0]["seconds"]["encode"] > 0
    assert len({mean(row) for row in found["rows"]}) > 3


def test_a_static_adapter_scores_as_its_formula_in_numpy(
    gallery: Path, collection: Collection, data: Path, linear: Path
) -> None:
    from eyespot.adapters.linear import load
    from eyespot.benchmarks.own import MEASURES
    from eyespot.metrics import evaluate
    from eyespot.runs import read_qrels
    from eyespot.types import Run

    adapter, vectors = load(linear), np.concatenate(collection.view.blocks).astype(np.float64)
    rows = vectors @ adapter.weight.T.astype(np.float64) + adapter.bias
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    embeddings = collection.encoder.encode_texts(list(TEXTS.values())).astype(np.float64)
    queries = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True) @ adapter.weight.T + adapter.bias
    names = [facts["id"] for facts in collection.view.facts(list(range(len(rows))))]
    scores = queries / np.linalg.norm(queries, axis=1, keepdims=True) @ rows.T
    orders = (np.argsort(-row).tolist() for row in scores)
    by_hand = Run.from_orders({id: [names[at] for at in order] for id, order in zip(TEXTS, orders, strict=True)})

    found = own(data, gallery, "--adapt", f"linear:{linear / 'linear.safetensors'}")

    expected = float(evaluate(by_hand, read_qrels(data / "qrels.json"), MEASURES).means["AP@50"])
    assert mean(found) == pytest.approx(expected, abs=1e-9)


def test_an_adapter_re_ranks_another_systems_run(
    gallery: Path, collection: Collection, data: Path, linear: Path, tmp_path: Path
) -> None:
    write_run(Nearest.of(collection, 12)([Query.words(text, id) for id, text in TEXTS.items()]), tmp_path / "run.txt")
    line = f"--run {tmp_path / 'run.txt'} --adapt linear:{linear} --adapt-depth 12"

    found = own(data, gallery, "--row", f"plain run = --run {tmp_path / 'run.txt'}", "--row", f"TA on it = {line}")

    frozen = own(data, gallery, "--adapt", f"linear:{linear}", "--adapt-depth", "12")
    plain, again = found["rows"]
    assert mean(again) == pytest.approx(mean(frozen), abs=1e-9) and mean(again) != mean(plain)
    assert again["tasks"][0]["seconds"].keys() == {"encode", "search"} and plain["tasks"][0]["seconds"] == {}


@pytest.mark.long
def test_a_row_that_cannot_be_made_leaves_the_others(gallery: Path, data: Path) -> None:
    line = ("own", "--data", data, "-g", gallery, "--row", "frozen", "--row", "lost = --adapt nowhere")

    shown = run_eyespot("eval", *line, "--json")

    found = json.loads(shown.stdout)
    assert shown.returncode == 3 and [row["system"] for row in found["rows"]] == ["frozen"]
    assert "config.yml" in found["failed"]["lost"]
    assert run_eyespot("eval", *line[:-3], "lost = --adapt nowhere").returncode == 4


def test_rows_stand_in_one_table_with_interval_and_time(gallery: Path, data: Path) -> None:
    shown = run_eyespot(
        "eval", "own", "--data", data, "-g", gallery, "--row", "frozen", "--row", "QE-2 = --neighbours 2"
    )

    head, first, second = shown.stdout.splitlines()[1:4]
    assert head.split()[:3] == ["system", "queries", "images"] and head.endswith("ms a query")
    assert first.split()[:3] == ["frozen", "3", "40"] and "[" in first and second.startswith("QE-2")


@pytest.mark.long
def test_a_killed_table_goes_on_with_the_rows_that_lack(gallery: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "table"
    first = own(data, gallery, "--out", out, "--row", "frozen")
    before = (out / "frozen" / "summary.json").stat().st_mtime_ns

    both = own(data, gallery, "--out", out, "--row", "frozen", "--row", "QE-1 = --neighbours 1")
    other = own(data, gallery, "--out", out, "--row", "frozen = --neighbours 2")

    assert mean(both["rows"][0]) == mean(first["rows"][0])
    assert mean(other["rows"][0]) != mean(first["rows"][0])  # the same name, other options: made again
    assert (out / "frozen" / "summary.json").stat().st_mtime_ns > before
    assert mean(run_json("eval", "--from", out / "QE-1" / "summary.json")) == mean(both["rows"][1])
    assert "frozen" in (out / "tables.md").read_text()


@pytest.mark.long
def test_a_kill_while_a_report_is_replaced_leaves_no_row_that_counts(gallery: Path, data: Path, tmp_path: Path) -> None:
    """The report of QE-2 is half written over that of QE-1; the options of QE-1 must not find it as theirs."""
    out = tmp_path / "table"
    first = own(data, gallery, "--out", out, "--row", "a = --neighbours 1")
    (out / "a" / "run.parquet").unlink()
    (out / "a" / "run.parquet").mkdir()  # the write fails here, after it has begun
    broken = run_eyespot(
        "eval", "own", "--data", data, "-g", gallery, "--out", out, "--row", "a = --neighbours 30 --alpha 0"
    )
    (out / "a" / "run.parquet").rmdir()
    again = own(data, gallery, "--out", out, "--row", "a = --neighbours 1")

    assert broken.returncode != 0 and mean(again["rows"][0]) == mean(first["rows"][0])
    assert (out / "a" / "run.parquet").is_file()
