"""What every benchmark of the room keeps, and the published tables against the papers' own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

from eyespot.benchmarks import Beside, Evaluation, Task, benchmark, beside, check, names, sampled, scored
from eyespot.benchmarks._papers import rows
from eyespot.metrics import labels_of
from eyespot.types import Run, UsageError
from tests.wording import check_wording, raises
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
def test_what_check_finds_can_be_read_and_has_the_papers_tasks_and_measures(name: str, tmp_path: Path) -> None:
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
        if column not in NOT_RESULTS and cell.replace(".", "", 1).isdigit()
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


# -- numbers of a paper stand beside those of the same queries, split and images, and of no others ----------------


QUERIES = worlds.SHARED / "data" / "inquire" / "inquire_queries_test.csv"


def papers(name: str, task: Task, split: str | None = None, pool: int | None = None, missing: int = 0) -> Beside:
    """What stands beside a run that ranks one relevant image for every query, and others down to the cut, or to 100."""
    qrels = task.judged.qrels
    depth = min(100, max(measure.cutoff or 1 for measure in task.measures))
    others = [*task.pool, *(f"x{at}" for at in range(depth))][: depth + 9] if depth > 1 else []
    heads = {query: sorted(qrels.relevant(query))[:1] for query in qrels}
    run = Run.from_orders({query: list(dict.fromkeys([*head, *others]))[:depth] for query, head in heads.items()})
    run.header = {"missing": missing} if missing else {}
    result = scored(task, run, pool=pool)
    evaluation = Evaluation(benchmark(name), split or benchmark(name).splits[0], "ours", [result])
    return beside(evaluation, result)


def whys(found: Beside) -> set[str]:
    """Every reason that keeps a source away."""
    return {str(why) for notes in found.without.values() for why in notes}


def codes(found: Beside) -> set[str]:
    return {why.code for notes in found.without.values() for why in notes}


def captioned(images: int) -> dict[str, list[str]]:
    return {f"colour/{image}.jpg": [f"caption {at} of {image}" for at in range(5)] for image in range(images)}


def ilias(data: Path) -> Path:
    pictures = [f"o{at % 1000}/query/Q{at // 1000}.jpg,1" for at in range(1232)]
    worlds.write(data / "image_ids/image_query_ids.txt", "\n".join(pictures))
    worlds.write(data / "image_ids/text_query_ids.txt", "\n".join(f"o{at}/query/T.txt" for at in range(1000)))
    worlds.write(data / "image_ids/positive_ids.txt", "\n".join(f"o{at}/pos/P0.jpg,0.5,40" for at in range(1000)))
    distractors = "\n".join(f"x{at}" for at in range(110))
    for name in ("mini_ilias_yfcc100m_ids.txt", "distractor_ids.txt"):
        worlds.write(data / "image_ids" / name, distractors)
    return data


def inquire(data: Path) -> Path:
    """The official queries, with as many relevant photos as the paper's 250 have."""
    if not QUERIES.is_file():
        pytest.skip(f"needs {QUERIES}")
    data.mkdir(exist_ok=True)
    shutil.copy(QUERIES, data)
    ids = [line.split(",")[1] for line in QUERIES.read_text().splitlines()[1:]]
    pairs = [(query, f"p{query}") for query in ids] + [("validation", f"v{at}") for at in range(32_696 - len(ids))]
    notes = [{"query_id": query, "image_id": image, "image_path": f"train/{image}.jpg"} for query, image in pairs]
    worlds.table(data / "inquire_annotations.csv", notes)
    return data


def rmir(data: Path) -> Path:
    queries = [{"id": f"q{at}", "image": "f", "question": "why?", "kind": "causal"} for at in range(1634)]
    worlds.write(data / "queries.jsonl", "\n".join(map(json.dumps, queries)))
    worlds.write(data / "qrels.jsonl", "\n".join(json.dumps({"query": q["id"], "image": "i1"}) for q in queries))
    worlds.write(data / "pool.jsonl", "\n".join(json.dumps({"image": f"i{at}"}) for at in range(35_803)))
    return data


OFFICIAL: dict[str, Callable[[Path], Path]] = {
    "coco5k": lambda data: worlds.karpathy(data, count=5000),
    "coco5k-fg": lambda data: worlds.write(data / "MSCOCO_FG_ann.json", captioned(5000)).parent,
    "flickr30k": lambda data: worlds.karpathy(data, "dataset_flickr30k.json", count=1000),
    "flickr30k-fg": lambda data: worlds.write(data / "Flickr30K_FG.json", captioned(1000)).parent,
    "ilias": ilias,
    "inquire-fullrank": inquire,
    "inquire-rerank": worlds.official_rerank,
    "recos": lambda data: worlds.write(data / "recos_v1.json", captioned(1000)).parent,
    "rmir": rmir,
}
SPLITS = {"ilias": "full"}  # other than the first, which ranks whatever the gallery holds
POOLS = {"ilias": 100_000_000, "inquire-fullrank": 4_813_543}  # what --pool would say


def test_every_benchmark_with_numbers_of_papers_says_what_they_are_of() -> None:
    printing = {name: benchmark(name) for name in names() if benchmark(name).printed()}

    assert set(printing) == set(OFFICIAL)
    for one in printing.values():
        assert {(row.split or one.splits[0], row.task) for row in one.printed()} <= set(one.official)


@pytest.mark.long
@pytest.mark.parametrize("name", OFFICIAL)
def test_numbers_stand_beside_the_official_set_and_beside_no_part_of_it(name: str, tmp_path: Path) -> None:
    split = SPLITS.get(name, benchmark(name).splits[0])
    tasks = worlds.tasks_of(name, OFFICIAL[name](tmp_path), split)
    for task in tasks.values():
        whole = papers(name, task, split, POOLS.get(name))
        (part,) = sampled([task], len(task.judged.queries) - 1)
        fewer = papers(name, part, split, POOLS.get(name))
        lost = papers(name, task, split, POOLS.get(name), missing=3)

        count = benchmark(name).official[split, task.name].queries
        assert whole.rows and fewer.rows == [] and lost.rows == []
        reasons = {why.code for notes in whole.reasons.values() for why in notes}
        assert reasons == {"cut"} if name == "ilias" else whole.grounds and reasons <= {"cell"}
        assert any(f"{count - 1:,}" in why and f"{count:,}" in why for why in whys(fewer))
        assert {row.source for row in whole.rows} <= set(fewer.without)
        if name == "recos":  # table 3 prints CLIP on v0, v1 and v2; the data are v1
            assert {row.method for row in whole.rows if row.source == "ReCoS, table 3"} == {"CLIP on v1"}


@pytest.mark.parametrize(
    ("split", "pool", "shown"),
    [
        ("full", 100_000_000, {"100"}),
        ("mini", 5_004_715, {"5"}),
        ("mini", None, set()),
        ("mini", 290, set()),
        ("full", 5_004_715, set()),
        ("test", 5_004_715, set()),
        ("test", 100_000_000, set()),
    ],
)
def test_ilias_5m_is_not_ilias_100m(split: str, pool: int | None, shown: set[str], tmp_path: Path) -> None:
    task = worlds.tasks_of("ilias", ilias(tmp_path), split)["t2i"]

    found = papers("ilias", task, split, pool)

    assert {"5" if "5 million" in row.source else "100" for row in found.rows} == shown
    check_wording("\n".join(sorted(whys(found))))


def test_a_run_of_the_whole_collection_counts_and_one_of_290_photos_does_not(tmp_path: Path) -> None:
    task = worlds.tasks_of("inquire-fullrank", inquire(tmp_path))["t2i"]

    assert papers("inquire-fullrank", task).rows and papers("inquire-fullrank", task, pool=4_813_000).rows
    assert codes(papers("inquire-fullrank", task, pool=290)) == {"images"}


def test_queries_under_the_official_file_s_name_are_not_the_official_ones(tmp_path: Path) -> None:
    """One word of one query is another: the file's digest is not the one that --check knows."""
    data = inquire(tmp_path)
    (data / QUERIES.name).write_text(QUERIES.read_text().replace("mongoose", "weasel", 1))

    found = papers("inquire-fullrank", worlds.tasks_of("inquire-fullrank", data)["t2i"])

    (why,) = whys(found)
    assert found.rows == [] and why.startswith("inquire_queries_test.csv ")


@pytest.mark.long
def test_a_set_of_one_s_own_has_no_published_numbers_beside_it(tmp_path: Path) -> None:
    data = rmir(tmp_path / "rmir")
    (data / "losses.jsonl").write_text("{}\n")
    recos = worlds.tasks_of("recos", worlds.recos(tmp_path / "recos"))["i2t"]

    for found in (papers("recos", recos), papers("rmir", worlds.tasks_of("rmir", data)["it2i"])):
        assert found.rows == [] and codes(found) == {"set"}
