"""`eyespot eval`: files in, numbers out, again from their summary; and the official numbers by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from eyespot import rooms, sample
from eyespot.benchmarks import names, runs_of
from eyespot.cli import app
from eyespot.gallery.indexing import index
from eyespot.runs import read_qrels, read_run, write_run
from eyespot.types import EyespotError, Run
from tests.command import run_eyespot
from tests.lazy_import import requires
from tests.worlds import benchmarks as worlds
from tests.worlds.adapters import checkpoint
from tests.worlds.rankings import conformance

EXACT = {"rel": 0, "abs": 1e-9}


def evaluated(*words: object) -> Result:
    """`eyespot eval …` in this process: its stdout, its stderr, and what it raised."""
    return CliRunner().invoke(app, ["eval", *map(str, words)])


def eval_report(*words: object) -> dict[str, Any]:
    """The JSON of an evaluation that ends well."""
    shown = evaluated(*words, "--json")
    assert shown.exit_code == 0, shown.output + str(shown.exception)
    found: dict[str, Any] = json.loads(shown.stdout)
    return found


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


# -- the process ------------------------------------------------------------------------------------------------


def test_numbers_go_to_stdout_and_what_is_to_be_known_to_stderr(data: Path, run: Path) -> None:
    shown = run_eyespot("eval", "inquire-fullrank", "--data", data, "--run", run)

    assert shown.returncode == 0 and "50.00" in shown.stdout
    assert "1 of 3 judged queries missing" in shown.stderr and "missing" not in shown.stdout


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nope", "--data", "{data}"), 2, "no benchmark 'nope'; there are: circo"),
        (("inquire-fullrank",), 2, "eyespot eval inquire-fullrank --data DIR"),
        ((), 2, "name a benchmark"),
        (("inquire-fullrank", "--data", "{data}", "--split", "x"), 2, "no split 'x'; there are: test, val"),
        (("inquire-fullrank", "--data", "{data}", "--split", "val", "--run", "{run}"), 2, "get it: https://"),
        (("inquire-fullrank", "--data", "{data}/nope", "--run", "{run}"), 2, "there is no inquire_queries_test.csv"),
        (("inquire-fullrank", "--data", "{data}", "--run", "{run}", "--map", "q1"), 2, "--out DIR"),
        (
            ("inquire-fullrank", "--data", "{data}", "--run", "{run}", "--beside", "{data}"),
            2,
            "a folder that eyespot eval",
        ),
        (("inquire-fullrank", "--data", "{data}", "--run", "{other}"), 4, "none of the queries of t2i"),
        (("inquire-fullrank", "--data", "{data}", "--check", "--split", "val"), 4, "1 of 5 parts are missing"),
        (("--from", "{data}"), 2, "give a folder that eyespot eval --out wrote"),
    ],
)
def test_what_is_wrong_is_one_sentence(data: Path, run: Path, words: tuple[str, ...], code: int, message: str) -> None:
    other = run.with_name("other.txt")
    write_run(worlds.orders(z="a"), other)

    raised = evaluated(*(word.format(data=data, run=run, other=other) for word in words)).exception

    assert isinstance(raised, EyespotError) and raised.exit_code == code
    assert message in str(raised) and "\n" not in str(raised)


def test_list_names_every_benchmark() -> None:
    assert [line.split()[0] for line in evaluated("list").stdout.splitlines()] == names()
    assert [found["name"] for found in json.loads(evaluated("list", "--json").stdout)] == names()


def test_check_tells_each_part_with_its_state(data: Path) -> None:
    shown = evaluated("inquire-fullrank", "--data", data, "--check", "--json")

    states = {Path(part["path"].partition("|")[0]).name: part["state"] for part in json.loads(shown.stdout)}
    assert shown.exit_code == 0
    assert states["inquire_queries_test.csv"] == "other" and states["inquire_annotations.csv"] == "ok"
    assert states["train.json"] == "absent" and "inquire_queries_val.csv" not in states


# -- rankings ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_sample_is_drawn_by_the_seed(data: Path, run: Path) -> None:
    words = ("inquire-fullrank", "--data", data, "--run", run, "--sample", 2, "--seed")

    drawn = [means(eval_report(*words, seed))["t2i"]["AP@50"] for seed in range(8)]

    assert set(drawn) == {0.75, 0.25} and drawn[2] == means(eval_report(*words, 2))["t2i"]["AP@50"]


def test_the_pool_of_the_floor_may_be_said(data: Path, run: Path) -> None:
    """R@k of a random order is k/pool; RR of a pool of what is relevant alone is 1."""
    (task,) = eval_report("inquire-fullrank", "--data", data, "--run", run, "--pool", 3)["tasks"]

    # of three images q3's are all relevant, q1's two of three: RR 2/3 · 1 + 1/3 · 1/2, q2's one of three
    expected = (1 + (2 / 3 + 1 / 6) + (1 + 1 / 2 + 1 / 3) / 3) / 3
    assert task["pool"] == 3 and task["measures"]["RR@50"]["by_chance"]["mean"] == pytest.approx(expected)


def test_further_measures_come_after_the_benchmark_s_own(data: Path, run: Path) -> None:
    """P@1: q1 1, q2 and q3 0."""
    (task,) = eval_report("inquire-fullrank", "--data", data, "--run", run, "-m", "P@1", "--measure", "AP@50")["tasks"]

    assert list(task["measures"])[-2:] == ["P@1", "AP@50"] and task["measures"]["P@1"]["mean"] == pytest.approx(1 / 3)
    assert task["measures"]["AP@50"]["definition"]["norm"] == "all"


@requires("ir_measures")
def test_measures_of_ir_measures_are_evaluated_with_their_program(data: Path, run: Path) -> None:
    """Nothing is judged not relevant: Bpref is the share of the relevant that is found."""
    (task,) = eval_report("inquire-fullrank", "--data", data, "--run", run, "-m", "Bpref")["tasks"]

    assert task["measures"]["Bpref"]["mean"] == pytest.approx((1 + 1 + 0) / 3)
    assert "pytrec_eval" in task["measures"]["Bpref"]["definition"]["program"]
    assert task["measures"]["Bpref"]["by_chance"] is None


def test_a_second_stage_shows_its_steps(data: Path, run: Path, tmp_path: Path) -> None:
    second = tmp_path / "second.txt"
    write_run(worlds.orders(q1="ba", q2="cx"), second)

    (task,) = eval_report("inquire-fullrank", "--data", data, "--run", run, "--rerank", second, "--depth", 2)["tasks"]

    assert [(stage["stage"], stage["means"]["AP@50"]) for stage in task["stages"]] == [
        ("first stage", pytest.approx(1 / 2)),
        ("best possible of the first 2", pytest.approx(2 / 3)),
        ("re-ranked", pytest.approx(2 / 3)),
    ]


@pytest.mark.long
def test_an_earlier_report_stands_beside_in_the_terminal(data: Path, run: Path, tmp_path: Path) -> None:
    words = ("inquire-fullrank", "--data", data, "--run", run)
    evaluated(*words, "--name", "earlier one", "--out", tmp_path / "earlier")

    alone, both = evaluated(*words), evaluated(*words, "--beside", tmp_path / "earlier")

    assert "earlier one" in both.stdout and "earlier one" not in alone.stdout


@pytest.mark.long
def test_three_queries_under_official_names_have_no_numbers_of_papers_anywhere(
    data: Path, run: Path, tmp_path: Path
) -> None:
    """Text, Markdown, LaTeX, page and JSON say in a line why."""
    shown = evaluated("inquire-fullrank", "--data", data, "--run", run, "--out", tmp_path / "out")

    assert shown.exit_code == 0
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


def test_a_sample_has_no_numbers_of_papers(tmp_path: Path) -> None:
    data = worlds.inquire_rerank(tmp_path / "data", queries="PQRS")
    path = tmp_path / "run.txt"
    write_run(Run.from_orders({chr(at): [str(10 * at)] for at in b"PQRS"}), path)

    shown = evaluated("inquire-rerank", "--data", data, "--run", path, "--sample", 2)

    assert "Not beside INQUIRE, table 4; INQUIRE, table 5: 2 of the paper's 160 queries; 4 " in shown.stdout


def test_queries_of_no_task_are_said(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    write_run(worlds.orders(q1="ab", q8="c"), path)

    shown = evaluated("inquire-fullrank", "--data", data, "--run", path)

    assert "1 of the run's 2 queries are none of this split (such as 'q8')" in shown.stderr


def test_a_task_without_rankings_is_left_out_with_its_reason(tmp_path: Path) -> None:
    data = worlds.ilias(tmp_path / "data")
    write_run(Run.from_orders({"o1/query/T.txt": ["o1/pos/P0.jpg"]}), tmp_path / "run.json")

    shown = evaluated("ilias", "--data", data, "--run", tmp_path / "run.json", "--json")

    assert [task["task"] for task in json.loads(shown.stdout)["tasks"]] == ["t2i"]
    assert "i2i is left out: " in shown.stderr


def test_the_numbers_again_from_their_summary_wherever_one_stands(
    data: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("inquire-fullrank", "--data", "data", "--run", "t2i=run.txt", "--sample", 2, "--seed", 3, "--pool", 9)
    first = eval_report(*words)
    worlds.write(tmp_path / "summary.json", first)
    monkeypatch.chdir(tmp_path.parent)

    again = eval_report("--from", tmp_path / "summary.json")

    assert again["tasks"] == first["tasks"] and again["made"]["arguments"] == first["made"]["arguments"]
    assert set(first["made"]["inputs"]) == {
        str(place) for place in (run, data / "inquire_queries_test.csv", data / "inquire_annotations.csv")
    }


def test_an_input_that_has_changed_since_is_said(data: Path, run: Path, tmp_path: Path) -> None:
    worlds.write(tmp_path / "summary.json", eval_report("inquire-fullrank", "--data", data, "--run", run))
    write_run(worlds.orders(q1="xab", q2="xc"), run)

    shown = evaluated("--from", tmp_path / "summary.json")

    assert shown.exit_code == 0 and f"{run} has changed since" in shown.stderr
    assert f"{data / 'inquire_annotations.csv'} has changed" not in shown.stderr


# -- submissions ------------------------------------------------------------------------------------------------


def test_the_split_without_truths_becomes_a_submission(tmp_path: Path) -> None:
    data, out = worlds.circo(tmp_path / "data"), tmp_path / "out"
    write_run(Run.from_orders({"0": [str(at) for at in range(60)], "7": ["1"]}), tmp_path / "run.json")
    words = ("circo", "--data", data, "--split", "test", "--run", tmp_path / "run.json")

    shown = evaluated(*words, "--out", out)

    assert shown.exit_code == 0 and json.loads((out / "submission.json").read_text()) == {"0": list(range(50))}
    assert "1 of 2 queries have no ranking" in shown.stderr and "(such as '7')" in shown.stderr
    refused = evaluated(*words).exception
    assert isinstance(refused, EyespotError) and refused.exit_code == 4 and "--out DIR" in str(refused)


# -- end to end -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six of the sample photos, indexed once."""
    place = tmp_path_factory.mktemp("gallery")
    for name in ("eiffelTower", "bucket", "cup", "chair", "bulb", "dam1"):
        file = f"categorization__{name}.jpg"
        (place / "photos").mkdir(exist_ok=True)
        (place / "photos" / file).write_bytes((sample.photos() / file).read_bytes())
    index(place / "g", [str(place / "photos")], [rooms.load("encoders", "starter")])
    return place / "g"


def test_a_gallery_is_searched_and_searched_again(gallery: Path, tmp_path: Path) -> None:
    worlds.table(tmp_path / "queries.csv", [{"id": "q", "text": "a tower"}, {"id": "r", "text": "a bucket"}])
    worlds.write(tmp_path / "qrels.txt", "q 0 categorization__eiffelTower.jpg 1\nr 0 categorization__bucket.jpg 1\n")

    first = eval_report("own", "--data", tmp_path, "-g", gallery)

    assert first["tasks"][0]["pool"] == 6 and first["system"] == "starter"
    worlds.write(tmp_path / "summary.json", first)
    again = eval_report("--from", tmp_path / "summary.json")
    assert means(again) == means(first) and means(first)["own"]["RR@50"] > 0.4


@pytest.mark.long
def test_under_an_adapter_other_pictures_are_found_and_the_map_has_both_spaces(gallery: Path, tmp_path: Path) -> None:
    worlds.table(tmp_path / "queries.csv", [{"id": "q", "text": "a tower"}, {"id": "r", "text": "a bucket"}])
    worlds.write(tmp_path / "qrels.txt", "q 0 categorization__eiffelTower.jpg 1\nr 0 categorization__bucket.jpg 1\n")
    words = ("own", "--data", tmp_path, "-g", gallery, "--adapt", checkpoint(tmp_path / "quari", 512, "starter"))

    first = eval_report(*words, "--out", tmp_path / "report", "--map", "q")

    eval_report(*words[:-2], "--out", tmp_path / "plain")
    adapted, plain = (read_run(tmp_path / name / "run.parquet") for name in ("report", "plain"))
    assert first["system"] == "starter + quari" and adapted.header["adapted"]
    assert [hit.score for hit in adapted["q"]] != [hit.score for hit in plain["q"]]
    assert "adapted to the query" in next((tmp_path / "report").rglob("map-q.svg")).read_text()
    assert means(eval_report("--from", tmp_path / "report")) == means(first)


def test_missing_pictures_are_refused_with_the_way_out(gallery: Path, tmp_path: Path) -> None:
    worlds.table(tmp_path / "queries.csv", [{"id": "q", "text": "a tower"}])
    worlds.write(tmp_path / "qrels.txt", "q 0 categorization__eiffelTower.jpg 1\nq 0 lost.jpg 1\n")

    refused = evaluated("own", "--data", tmp_path, "-g", gallery).exception

    assert isinstance(refused, EyespotError) and "--allow-missing" in str(refused) and "--match" in str(refused)
    assert eval_report("own", "--data", tmp_path, "-g", gallery, "--allow-missing")["tasks"][0]["queries"] == 1


def test_a_run_says_how_many_images_were_missing(gallery: Path, tmp_path: Path) -> None:
    worlds.table(tmp_path / "queries.csv", [{"id": "q", "text": "a tower"}])
    worlds.write(tmp_path / "qrels.txt", "q 0 categorization__eiffelTower.jpg 1\nq 0 lost.jpg 1\n")
    words = ("own", "--data", tmp_path, "-g", gallery, "--allow-missing", "--out")

    eval_report(*words, tmp_path / "some")
    worlds.write(tmp_path / "qrels.txt", "q 0 categorization__eiffelTower.jpg 1\n")
    eval_report(*words, tmp_path / "all")

    headers = [read_run(tmp_path / name / "run.parquet").header for name in ("some", "all")]
    assert [header.get("missing") for header in headers] == [1, None]


# -- official numbers -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_ilias_s_own_numbers() -> None:
    """Its 80 queries are 40 pictures and 40 texts, which are two tasks here: together they make the official means."""
    folder = conformance("ilias")
    expected = json.loads((folder / "expected.json").read_text())["1000"]

    tasks = eval_report("ilias", "--data", folder / "dataset", "--run", folder / "similarities.json.gz")["tasks"]

    halves = [{label: 100 * its["mean"] for label, its in task["measures"].items()} for task in tasks]
    assert [task["queries"] for task in tasks] == [40, 40]
    assert sum(half["AP@1000"] for half in halves) / 2 == pytest.approx(expected["map"], **EXACT)
    assert sum(half["Oracle@1000"] for half in halves) / 2 == pytest.approx(expected["oracle"], **EXACT)
    for column in ("scale", "clutter"):
        both = list(zip(*(task["groups"][column] for task in tasks), strict=True))
        sums = [sum(100 * g["means"]["AP@1000"] * g["queries"] for g in pair if g["queries"]) for pair in both]
        ours = [total / sum(g["queries"] for g in pair) for total, pair in zip(sums, both, strict=True)]
        assert ours == pytest.approx([value for _, value in sorted(expected[column].items(), key=_low)], **EXACT)


@pytest.mark.parametrize(("task", "ending"), [("i2i", ".jpg"), ("t2i", ".txt")])
def test_ilias_s_categories_from_its_own_values_of_each_query(task: str, ending: str) -> None:
    folder = conformance("ilias")
    expected = json.loads((folder / "expected.json").read_text())["1000"]
    taxonomy = json.loads((folder / "taxonomy.json").read_text())
    top = {name: category for category, parts in taxonomy.items() for name in _leaves(parts)}
    instances: dict[str, list[float]] = {}
    for query, ap in zip(expected["queries"], expected["aps"], strict=True):
        if query.endswith(ending):
            instances.setdefault(query.partition("/")[0], []).append(ap)
    wanted: dict[str, list[float]] = {}
    for instance, values in instances.items():
        wanted.setdefault(top[instance], []).append(float(np.mean(values)))

    run = f"{task}={folder / 'similarities.json.gz'}"
    (found,) = eval_report("ilias", "--data", folder / "dataset", "--run", run)["tasks"]

    ours = {group["value"]: 100 * group["means"]["AP@1000"] for group in found["groups"]["category"]}
    assert ours == pytest.approx({name: float(np.mean(values)) for name, values in wanted.items()}, **EXACT)


def _low(group: tuple[str, float]) -> float:
    return float(group[0].partition("-")[0])


def _leaves(parts: Any) -> list[str]:
    return parts if isinstance(parts, list) else [name for part in parts.values() for name in _leaves(part)]


def test_circo_s_own_numbers() -> None:
    folder = conformance("circo")
    expected = json.loads((folder / "expected_submission_val.json").read_text())
    run = folder / "submission_examples" / "submission_val.json"

    found = eval_report("circo", "--data", folder, "--run", run)

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
    truths, ways = ("eccv", "cxc", "coco", "coco1k"), ("t2i", "i2t")
    named = [f"{truth}-{way}={tmp_path / way}.npz" for truth in truths for way in ways]
    runs = [word for one in named for word in ("--run", one)]

    found = means(eval_report("eccv", "--data", folder / "data", *runs))

    # what the package eccv-caption 0.1.0 gives for the same rankings
    assert found["coco1k-t2i"] == pytest.approx({"Hit@1": 0.40844, "Hit@5": 0.58528, "Hit@10": 0.6682}, **EXACT)
    assert found["coco1k-i2t"] == pytest.approx({"Hit@1": 0.9972, "Hit@5": 1, "Hit@10": 1}, **EXACT)

    official = {"map_at_r": "mAP@R", "rprecision": "Rprec", "r1": "Hit@1", "r5": "Hit@5", "r10": "Hit@10"}
    checked = 0
    for key, values in expected.items():
        truth, _, name = key.replace("coco_5k", "coco").partition("_")
        for way in ("t2i", "i2t"):
            assert found[f"{truth}-{way}"][official[name]] == pytest.approx(values[way], **EXACT), (key, way)
            checked += 1
    assert checked == 18


@pytest.mark.long
@pytest.mark.parametrize("way", ["t2i", "i2t"])
def test_a_file_of_one_way_is_not_taken_for_the_other_way_though_coco_s_numbers_coincide(
    tmp_path: Path, way: str
) -> None:
    folder = conformance("eccv_caption")
    arrays = np.load(folder / "tfidf_run.npz", allow_pickle=False)
    queries = arrays["caption_ids" if way == "t2i" else "image_ids"]
    np.savez(tmp_path / "run.npz", queries=queries, ids=arrays[f"{way}_top100"])
    tasks = list(worlds.tasks_of("eccv", folder / "data").values())

    found = runs_of(tasks, [str(tmp_path / "run.npz")])

    assert list(found) == [f"{truth}-{way}" for truth in ("eccv", "cxc", "coco", "coco1k")]


@pytest.fixture
def hard() -> tuple[Path, dict[str, float]]:
    """The folder, and INQUIRE's own AP, nDCG and MRR at 50."""
    folder = conformance("inquire_rerank_hard")
    values = json.loads((folder / "expected_metrics.json").read_text())["mean"]
    return folder, dict(zip(("P@50", "R@50", "AP@50", "nDCG@50", "RR@50"), values, strict=True))


def test_inquire_s_own_numbers_of_59_queries(hard: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    folder, expected = hard
    (tmp_path / "queries.csv").write_bytes((folder / "queries.csv").read_bytes())
    (tmp_path / "qrels.txt").write_bytes((folder / "qrels.txt").read_bytes())

    found = eval_report("own", "--data", tmp_path, "--run", folder / "run_given_order.txt")

    wanted = {label: expected[label] for label in ("AP@50", "nDCG@50", "RR@50")}
    assert {label: means(found)["own"][label] for label in wanted} == pytest.approx(wanted, **EXACT)


def test_the_same_queries_in_the_hub_s_layout(hard: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    """The whole list of 100 counts there: MRR may only be higher than at 50, and the candidates' order is the run's."""
    folder, expected = hard
    qrels, run = read_qrels(folder / "qrels.txt"), read_run(folder / "run_given_order.txt")
    rows = [
        {"query": query, "inat24_file_name": hit.image, "relevant": qrels[query][hit.image], "clip_score": hit.score}
        for query, hits in run.items()
        for hit in hits
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test-00000-of-00001.parquet")

    (task,) = eval_report("inquire-rerank", "--data", tmp_path, "--run", folder / "run_given_order.txt")["tasks"]

    assert task["queries"] == 59 and task["notes"] == []
    assert expected["RR@50"] <= task["measures"]["RR"]["mean"] <= expected["RR@50"] + 1 / 51
    assert task["measures"]["AP"]["by_chance"]["exact"] is True


# -- pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_report_shows_pictures_of_a_folder_beside_another_system_and_links_into_a_page(
    data: Path, run: Path, tmp_path: Path
) -> None:
    """`eyespot eval … --images DIR --page ADDRESS`."""
    (tmp_path / "photos").mkdir()
    for name in "ab":
        Image.new("RGB", (40, 30), "red").save(tmp_path / "photos" / f"{name}.png")
    words = ("inquire-fullrank", "--data", data, "--run", run)
    pictures = ("--images", tmp_path / "photos", "--page", "http://127.0.0.1:8000/")

    assert evaluated(*words, *pictures, "--out", tmp_path / "one").exit_code == 0
    again = evaluated(*words, *pictures, "--name", "again", "--beside", tmp_path / "one", "--out", tmp_path / "two")

    assert again.exit_code == 0, again.output
    page = (tmp_path / "two" / "report.html").read_text()
    assert "Queries to look at" in page and page.count("data:image/jpeg") >= 2
    assert "are not here and are shown by their ids" in page
    assert 'href="http://127.0.0.1:8000/?q=' in page
    assert page.count("<bdi>again</bdi>") == page.count("<bdi>run.txt</bdi>") >= 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--images", "."), "say where to write it with --out"),
        (("--page", "x", "--out", "{out}"), "address of a running eyespot serve"),
    ],
)
def test_options_of_the_report_are_checked(
    data: Path, run: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    given = (word.format(out=tmp_path / "out") for word in words)

    assert message in str(evaluated("inquire-fullrank", "--data", data, "--run", run, *given).exception)


@pytest.mark.long
def test_pictures_that_lie_in_the_folder_of_the_benchmark_are_shown(data: Path, run: Path, tmp_path: Path) -> None:
    (data / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(data / "photos" / "a.jpg")

    assert evaluated("inquire-fullrank", "--data", data, "--run", run, "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "report.html").read_text().count("data:image/jpeg") >= 1


@pytest.mark.long
def test_a_report_over_a_gallery_has_its_pictures(tmp_path: Path) -> None:
    gallery, data = tmp_path / "gallery", tmp_path / "mine"
    data.mkdir()
    names = ("hammer5", "windmill", "fish22", "greatPyramid")
    photos = [str(sample.photos() / f"categorization__{name}.jpg") for name in names]
    index(gallery, photos, [rooms.load("encoders", "starter")])
    (data / "queries.csv").write_text("id,text\n" + "".join(f"{name},a {name}\n" for name in names))
    (data / "qrels.txt").write_text("".join(f"{name} 0 categorization__{name} 1\n" for name in names))

    shown = evaluated("own", "--data", data, "-g", gallery, "--out", tmp_path / "out")

    assert shown.exit_code == 0, shown.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image/jpeg") >= 8 and "are not here" not in page
