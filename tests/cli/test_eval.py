"""`eyespot eval`: files in, numbers out, official numbers, the stages of a search, and several systems in one table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot import sample
from eyespot.adapters.linear import Linear, save
from eyespot.benchmarks import names
from eyespot.benchmarks.own import MEASURES
from eyespot.metrics import evaluate
from eyespot.runs import read_qrels, read_run, write_run
from eyespot.search import Adapted, Collection, Nearest
from eyespot.types import Query, Run
from tests.cli.conftest import done, gallery_of_samples, run_json
from tests.command import refuses, run_eyespot
from tests.worlds import benchmarks as worlds
from tests.worlds.adapters import checkpoint
from tests.worlds.runs import conformance

pytestmark = pytest.mark.usefixtures("without_figures")

TOWER = "categorization__eiffelTower.jpg"
EXACT = {"rel": 0, "abs": 1e-9}


REFUSED = [
    "nope --data {data}",
    "inquire-fullrank",
    "",
    "inquire-fullrank --data {data} --split x",
    "inquire-fullrank --data {data} --split val --run {run}",
    "inquire-fullrank --data {data}/nope --run {run}",
    "inquire-fullrank --data {data} --run {run} --beside {data}",
    "inquire-fullrank --data {data} --run {run} --images .",
    "inquire-fullrank --data {data} --run {run} --page x --out {data}/out",
    "--from {data}",
    "own --data {own} -g {gallery} --rerank no-such-scores.txt",
    "own --data {own} -g {gallery} --dry-run",
    "own --data {own} -g {gallery} --blend 0.5",
    "own --data {own} -g {gallery} --run run.txt --expand terms.json",
    "own --data {own} -g {gallery} --rerank encoder:starter --blend-from test",
    "own --data {own} -g {gallery} --rerank encoder:starter --blend-from val --blend 0.5",
    "own --data {own} -g {gallery} --rerank-local spatial",
    "inquire-fullrank --data {data} --run {run} --pool 1",
    "inquire-fullrank --data {data} --run {run} --beside {data} --out {data}/../data",
    "inquire-fullrank --data {data} --run {run} --beside {data}/summary.json --out {data}",
    "own --data {own} -g {gallery} --adapt linear:nowhere --ray local",
    "own --data {own} --run {run} --adapt CKPT",
    "own --data {own} --run {run} --rerank-local spatial",
    "own --data {own} --run {run} --neighbours 3",
    "own --data {own} -g {gallery} --row a --name x",
    "own --data {own} -g {gallery} --row a --beside x",
    "own --data {own} -g {gallery} --row a --images x",
    "own --data {own} -g {gallery} --row a --dry-run",
    "own --data {own} -g {gallery} --row a --row 'a=--neighbours 1'",
    "own --data {own} -g {gallery} --row '= --neighbours 1'",
    "own --data {own} -g {gallery} --row 'a = --seed 3'",
    "own --data {own} -g {gallery} --row 'a = --what 3'",
    "own --data {own} -g {gallery} --row 'a = --neighbours'",
    'own --data {own} -g {gallery} --row "a = --name \'x"',
    "own --data {own} -g {gallery} --row 'a = --adapt linear:x --ray local'",
]
NOT_FOUND = [
    "own --data {own} -g {gallery} --row 'a = --alpha 2'",
    "own --data {own} -g {gallery} --row 'a = --adapt-depth 5'",
    "inquire-fullrank --data {data} --run {other}",
    "inquire-fullrank --data {data} --check --split val",
    "own --data {own} -g {gallery} --run {other} --adapt {adapter}",
]


def means(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {task["task"]: {label: its["mean"] for label, its in task["measures"].items()} for task in found["tasks"]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return worlds.inquire(tmp_path / "data")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """AP@50: q1 1, q2 1/2, q3 not there."""
    path = tmp_path / "run.txt"
    write_run(worlds.orders(q1="ab", q2="xc"), path)
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Two queries, with a relevant photo each."""
    worlds.table(tmp_path / "own/queries.csv", [{"id": "q", "text": "a tower"}, {"id": "r", "text": "a bucket"}])
    worlds.write(tmp_path / "own/qrels.txt", f"q 0 {TOWER} 1\nr 0 categorization__bucket.jpg 1\n")
    return tmp_path / "own"


def test_numbers_go_to_stdout_and_what_is_to_be_known_to_stderr(data: Path, run: Path) -> None:
    """A judged query is missing from the run, and one of the run is not judged."""
    write_run(worlds.orders(q1="ab", q2="xc", q8="c"), run)

    shown = done("eval", "inquire-fullrank", "--data", data, "--run", run)

    assert "50.00" in shown.stdout and "missing" not in shown.stdout
    assert "1 of 3 judged queries missing" in shown.stderr and "(such as 'q8')" in shown.stderr


@pytest.fixture
def places(data: Path, run: Path, own: Path, few_gallery: Path, tmp_path: Path) -> dict[str, Path]:
    worlds.write(tmp_path / "other.txt", "z Q0 a 1 1 t\nq Q0 elsewhere 1 1 t\n")
    named = {"adapter": checkpoint(tmp_path / "quari", 512, "starter"), "other": tmp_path / "other.txt"}
    return {"data": data, "run": run, "own": own, "gallery": few_gallery, **named}


@pytest.mark.parametrize(("words", "code"), [*((words, 2) for words in REFUSED), *((words, 4) for words in NOT_FOUND)])
def test_what_is_wrong_is_one_sentence(words: str, code: int, places: dict[str, Path]) -> None:
    refuses("eval", *shlex.split(words.format(**places)), code=code)


def test_list_names_every_benchmark() -> None:
    assert [line.split()[0] for line in done("eval", "list").stdout.splitlines()] == names()
    assert [found["name"] for found in json.loads(done("eval", "list", "--json").stdout)] == names()


def test_check_tells_each_part_with_its_state(data: Path) -> None:
    shown = done("eval", "inquire-fullrank", "--data", data, "--check", "--json")

    states = {Path(part["path"].partition("|")[0]).name: part["state"] for part in json.loads(shown.stdout)}
    assert states["inquire_queries_test.csv"] == "other" and states["inquire_annotations.csv"] == "ok"
    assert states["train.json"] == "absent" and "inquire_queries_val.csv" not in states


def test_further_measures_come_after_the_benchmark_s_own(data: Path, run: Path) -> None:
    """P@1: q1 1, q2 and q3 0."""
    (task,) = run_json("eval", "inquire-fullrank", "--data", data, "--run", run, "-m", "P@1", "--measure", "AP@50")[
        "tasks"
    ]

    assert list(task["measures"])[-2:] == ["P@1", "AP@50"] and task["measures"]["P@1"]["mean"] == pytest.approx(1 / 3)
    assert task["measures"]["AP@50"]["definition"]["norm"] == "all"


@pytest.mark.long
def test_queries_under_official_names_have_no_numbers_of_papers(data: Path, run: Path, tmp_path: Path) -> None:
    """Text, Markdown, LaTeX, page and JSON say in a line why."""
    shown = done("eval", "inquire-fullrank", "--data", data, "--run", run, "--out", tmp_path / "out")

    written = [(tmp_path / "out" / name).read_text() for name in ("tables.md", "tables.tex", "report.html")]
    for text in (shown.stdout, *written):
        assert (
            "Not beside INQUIRE, table 2; QuARI, table 2;" in text
            and "is not the official file (SHA-256)" in text.replace(r"\_", "_")
        )
        assert "minus published" not in text and "WildCLIP" not in text
    (task,) = json.loads((tmp_path / "out/summary.json").read_text())["tasks"]
    codes = [why["code"] for why in task["not_beside"]["INQUIRE, table 2"]]
    assert task["published"] == [] and codes == ["queries", "judgements", "queries", "queries"]


def test_the_numbers_from_their_summary(data: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("inquire-fullrank", "--data", "data", "--run", "t2i=run.txt", "--sample", 2, "--seed", 3, "--pool", 9)
    first = run_json("eval", *words)
    worlds.write(tmp_path / "summary.json", first)
    monkeypatch.chdir(tmp_path.parent)

    again = run_json("eval", "--from", tmp_path / "summary.json")

    assert (first["tasks"][0]["queries"], first["tasks"][0]["pool"]) == (2, 9)
    assert again["tasks"] == first["tasks"] and again["made"]["arguments"] == first["made"]["arguments"]
    assert set(first["made"]["inputs"]) == {
        str(place) for place in (run, data / "inquire_queries_test.csv", data / "inquire_annotations.csv")
    }


def test_an_input_that_has_changed_since_is_said(data: Path, run: Path, tmp_path: Path) -> None:
    worlds.write(tmp_path / "summary.json", run_json("eval", "inquire-fullrank", "--data", data, "--run", run))
    write_run(worlds.orders(q1="xab", q2="xc"), run)

    shown = done("eval", "--from", tmp_path / "summary.json")

    assert f"{run} has changed since" in shown.stderr
    assert f"{data / 'inquire_annotations.csv'} has changed" not in shown.stderr


def test_the_split_without_truths_becomes_a_submission(tmp_path: Path) -> None:
    data, out = worlds.circo(tmp_path / "data"), tmp_path / "out"
    write_run(Run.from_orders({"0": [str(at) for at in range(60)], "7": ["1"]}), tmp_path / "run.json")
    words = ("circo", "--data", data, "--split", "test", "--run", tmp_path / "run.json")

    shown = done("eval", *words, "--out", out)

    assert json.loads((out / "submission.json").read_text()) == {"0": list(range(50))}
    assert "1 of 2 queries have no ranking" in shown.stderr and "(such as '7')" in shown.stderr
    refuses("eval", *words, code=4)


def test_a_gallery_is_searched_and_searched_again(few_gallery: Path, own: Path, tmp_path: Path) -> None:
    first = run_json("eval", "own", "--data", own, "-g", few_gallery, "--out", tmp_path / "out")

    assert first["tasks"][0]["pool"] == 6 and first["system"] == "starter"
    assert means(run_json("eval", "--from", tmp_path / "out")) == means(first) and means(first)["own"]["RR@50"] > 0.4
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image/jpeg") >= 6 and "are not here" not in page


def test_missing_pictures_are_refused_unless_allowed(few_gallery: Path, own: Path, tmp_path: Path) -> None:
    words = ("eval", "own", "--data", own, "-g", few_gallery)
    done(*words, "--out", tmp_path / "all")
    worlds.write(own / "qrels.txt", f"q 0 {TOWER} 1\nq 0 lost.jpg 1\n")

    refuses(*words)
    done(*words, "--allow-missing", "--out", tmp_path / "some")

    headers = [read_run(tmp_path / name / "run.parquet").header for name in ("some", "all")]
    assert [header.get("missing") for header in headers] == [1, None]


def test_circo_s_own_numbers() -> None:
    folder = conformance("circo")
    expected = json.loads((folder / "expected_submission_val.json").read_text())
    run = folder / "submission_examples" / "submission_val.json"

    found = run_json("eval", "circo", "--data", folder, "--run", run)

    assert means(found)["it2i"] == pytest.approx({f"AP@{k}": value for k, value in expected["mAP"].items()}, **EXACT)
    assert means(found)["target"] == pytest.approx({f"Hit@{k}": v for k, v in expected["Recall"].items()}, **EXACT)
    aspects = {g["value"]: g["means"]["AP@10"] for g in found["tasks"][0]["groups"]["semantic_aspects"]}
    assert aspects == pytest.approx(expected["semantic_mAP@10"], **EXACT)


@pytest.mark.long
def test_eccv_s_own_numbers(tmp_path: Path) -> None:
    folder = conformance("eccv_caption")
    expected = json.loads((folder / "expected_tfidf_metrics.json").read_text())["metrics"]
    arrays = np.load(folder / "tfidf_run.npz", allow_pickle=False)
    for way, queries in (("t2i", "caption_ids"), ("i2t", "image_ids")):
        np.savez(tmp_path / f"{way}.npz", queries=arrays[queries], ids=arrays[f"{way}_top100"])
    truths, ways = ("eccv", "cxc", "coco"), ("t2i", "i2t")
    named = [f"{truth}-{way}={tmp_path / way}.npz" for truth in truths for way in ways]
    runs = [word for one in named for word in ("--run", one)]

    found = means(run_json("eval", "eccv", "--data", folder / "data", *runs))

    # what the package eccv-caption 0.1.0 gives for the same rankings
    official = {"map_at_r": "mAP@R", "rprecision": "Rprec", "r1": "Hit@1", "r5": "Hit@5", "r10": "Hit@10"}
    checked = 0
    for key, values in expected.items():
        truth, _, name = key.replace("coco_5k", "coco").partition("_")
        for way in ("t2i", "i2t"):
            assert found[f"{truth}-{way}"][official[name]] == pytest.approx(values[way], **EXACT), (key, way)
            checked += 1
    assert checked == 18


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
def stage_data(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": id, "text": text} for id, text in TEXTS.items()]
    return judged(tmp_path_factory.mktemp("words") / "data", collection, QUERIES, rows)


def mean(found: dict[str, Any]) -> float:
    return float(found["tasks"][0]["measures"]["AP@50"]["mean"])


def scored(run: Run, stage_data: Path) -> float:
    return float(evaluate(run, read_qrels(stage_data / "qrels.json"), MEASURES).means["AP@50"])


@pytest.fixture
def own_photos(stage_data: Path, gallery: Path) -> Callable[..., dict[str, Any]]:
    def evaluated(*words: object) -> dict[str, Any]:
        found: dict[str, Any] = run_json("eval", "own", "--data", stage_data, "-g", gallery, *words)
        return found

    return evaluated


def test_an_adapter_re_ranks_a_run(
    own_photos: Callable[..., Any], collection: Collection, stage_data: Path, tmp_path: Path
) -> None:
    adapter = checkpoint(tmp_path / "quari", collection.view.space.dim)
    run = Nearest.of(collection, 30)(QUERIES)
    write_run(run, tmp_path / "run.txt")
    write_run(Run({id: [("elsewhere", 9.0), *run[id]] for id in run}), tmp_path / "more.txt")

    whole = own_photos("--run", tmp_path / "run.txt", "--adapt", adapter, "--depth", 6)
    lacking = own_photos("--run", tmp_path / "more.txt", "--adapt", adapter, "--depth", 31)

    assert mean(whole) == pytest.approx(scored(Adapted.of(collection, adapter, 6)(QUERIES, run), stage_data), abs=1e-9)
    assert whole["system"] == f"run.txt + {adapter.name}"
    assert mean(lacking) == pytest.approx(
        scored(Adapted.of(collection, adapter, 30)(QUERIES, run), stage_data), abs=1e-9
    )
    assert any(note.startswith("3 of the first 31 hits are not in the gallery") for note in lacking["notes"])


@pytest.mark.long
def test_a_row_scores_what_its_options_score(
    own_photos: Callable[..., Any], collection: Collection, tmp_path: Path
) -> None:
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

    found = own_photos(*(word for name, line in rows.items() for word in ("--row", f"{name} = {line}")))

    assert [row["system"] for row in found["rows"]] == list(rows) and found["failed"] == {}
    for row, line in zip(found["rows"], rows.values(), strict=True):
        assert mean(row) == mean(own_photos(*line.split()))
        low, high = row["tasks"][0]["measures"]["AP@50"]["interval"]
        assert low <= mean(row) <= high
        assert row["tasks"][0]["seconds"]["search"] > 0 and row["tasks"][0]["seconds"]["encode"] > 0
    assert len({mean(row) for row in found["rows"]}) > 3


def test_a_row_that_cannot_be_made_leaves_the_others(gallery: Path, stage_data: Path) -> None:
    line = ("eval", "own", "--data", stage_data, "-g", gallery, "--row", "lost = --adapt nowhere")

    found = run_json(*line, "--row", "frozen", code=3)

    assert [row["system"] for row in found["rows"]] == ["frozen"] and "config.yml" in found["failed"]["lost"]
    done(*line, code=4)


def test_rows_stand_in_one_table_with_interval_and_time(gallery: Path, stage_data: Path) -> None:
    line = ("eval", "own", "--data", stage_data, "-g", gallery)

    shown = done(*line, "--row", "frozen", "--row", "QE-2 = --neighbours 2")

    head, first, second = shown.stdout.splitlines()[1:4]
    assert head.split()[:3] == ["system", "queries", "images"] and head.endswith("ms a query")
    assert first.split()[:3] == ["frozen", "3", "40"] and "[" in first and second.startswith("QE-2")


@pytest.mark.long
def test_a_killed_table_goes_on_with_the_rows_that_lack(own_photos: Callable[..., Any], tmp_path: Path) -> None:
    first = own_photos("--out", tmp_path, "--row", "frozen")
    before = (tmp_path / "frozen" / "summary.json").stat().st_mtime_ns

    both = own_photos("--out", tmp_path, "--row", "frozen", "--row", "αQE-1 = --neighbours 1")
    other = own_photos("--out", tmp_path, "--row", "frozen = --neighbours 2")

    assert mean(both["rows"][0]) == mean(first["rows"][0])
    assert mean(other["rows"][0]) != mean(first["rows"][0])  # the same name, other options: made again
    assert (tmp_path / "frozen" / "summary.json").stat().st_mtime_ns > before
    assert mean(run_json("eval", "--from", tmp_path / "αQE-1" / "summary.json")) == mean(both["rows"][1])
    assert "frozen" in (tmp_path / "tables.md").read_text()


@pytest.mark.long
def test_a_half_written_report_is_no_row(
    own_photos: Callable[..., Any], gallery: Path, stage_data: Path, tmp_path: Path
) -> None:
    """The report of QE-30 is half written over that of QE-1; the options of QE-1 must not find it as theirs."""
    first = own_photos("--out", tmp_path, "--row", "a = --neighbours 1")
    (tmp_path / "a" / "run.parquet").unlink()
    (tmp_path / "a" / "run.parquet").mkdir()  # the write fails here, after it has begun
    line = ("eval", "own", "--data", stage_data, "-g", gallery, "--out", tmp_path)
    broken = run_eyespot(*line, "--row", "a = --neighbours 30 --alpha 0")
    (tmp_path / "a" / "run.parquet").rmdir()
    again = own_photos("--out", tmp_path, "--row", "a = --neighbours 1")

    assert broken.returncode != 0 and mean(again["rows"][0]) == mean(first["rows"][0])
    assert (tmp_path / "a" / "run.parquet").is_file()


def test_numbers_come_from_the_summary_but_of_no_later_version(own_photos: Callable[..., Any], tmp_path: Path) -> None:
    """What is off or nought is so when it is repeated."""
    first = own_photos("--neighbours", 3, "--alpha", 0, "--no-teach", "--out", tmp_path)
    again = run_json("eval", "--from", tmp_path / "summary.json")
    summary = json.loads((tmp_path / "summary.json").read_text())
    summary["made"]["arguments"]["from_the_future"] = 1
    worlds.write(tmp_path / "summary.json", summary)

    assert mean(again) == mean(first) != mean(own_photos())
    for found in (first, again):
        assert (found["made"]["arguments"]["teach"], found["made"]["arguments"]["alpha"]) == (False, 0)
    refuses("eval", "--from", tmp_path / "summary.json")
