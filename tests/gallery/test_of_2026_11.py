"""A gallery and a work folder of November 2026 stay usable: nothing in them is embedded, judged or computed again."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from eyespot.pipelines import (
    Added,
    BatchStep,
    Context,
    Drop,
    Keep,
    MapStep,
    NoAnswer,
    Outcome,
    Record,
    Records,
    RunOptions,
    Spent,
    Step,
    drops,
    run,
)
from tests.command import confined, run_eyespot, run_process

OLD = Path(__file__).with_name("of_2026_11.zip")  # its README.md says how it was made
with zipfile.ZipFile(OLD) as packed:
    RECORDED = json.loads(packed.read("recorded.json"))
FIRST_PLACE = "/tmp/storage/of"  # where its photos lay when the gallery was made


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A copy of the photos and their gallery, whose roots are moved to where the photos now lie."""
    shutil.unpack_archive(OLD, tmp_path)
    header = tmp_path / "gallery" / "gallery.toml"
    header.write_text(header.read_text(encoding="utf-8").replace(FIRST_PLACE, str(tmp_path)), encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "gallery" / "ledger.sqlite")) as sql, sql:
        sql.execute("UPDATE roots SET path = replace(path, ?, ?)", (FIRST_PLACE, str(tmp_path)))
    return tmp_path


def printed(folder: Path, *words: str, code: int = 0) -> Any:
    """What a verb prints about the gallery with --json."""
    result = run_eyespot(*words, "-g", folder / "gallery", "--json")
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def check_items(items: list[dict[str, Any]], recorded: dict[str, list[Any]]) -> None:
    """The recorded pictures in their order, with scores that differ by rounding at most."""
    assert [(Path(item["path"]).name, item["id"]) for item in items] == [
        (name, id) for name, (id, _) in recorded.items()
    ]
    assert [item["score"] for item in items] == pytest.approx([score for _, score in recorded.values()], abs=1e-4)


def test_search_gives_the_recorded_ids_and_scores(moved: Path) -> None:
    items = printed(moved, "search", "a windmill", "--by", "look")["items"]

    check_items(items, RECORDED["a windmill"])
    assert {Path(item["path"]).name: item["legs"] for item in items if item["kind"] == "animal"} == {
        "owl.jpg": 2,
        "cow.jpg": 4,
        "panda.jpg": 4,
    }


def test_its_words_are_found(moved: Path) -> None:
    items = printed(moved, "search", "owl", "--by", "words")["items"]

    assert [Path(item["path"]).name for item in items] == ["owl.jpg"]


def test_index_embeds_nothing_again(moved: Path) -> None:
    vectors = {path: path.read_bytes() for path in (moved / "gallery" / "shards").rglob("*.npy")}

    summary = printed(moved, "index", code=3)  # 3: one file cannot be read

    assert (summary["embedded"], summary["pictures"], summary["failures"]) == (0, 6, 1)
    assert len(vectors) == 6
    assert {path: path.read_bytes() for path in (moved / "gallery" / "shards").rglob("*.npy")} == vectors
    check_items(printed(moved, "search", "a windmill", "--by", "look")["items"], RECORDED["a windmill"])


def test_it_is_read_where_nothing_may_be_written(moved: Path) -> None:
    """No run has moved its index out of the ledger yet, and none can."""
    places = [moved / "gallery", *(moved / "gallery").rglob("*")]
    for place in reversed(places):
        place.chmod(0o500 if place.is_dir() else 0o400)
    line = ("failures", "-g", moved / "gallery"), ("search", "a windmill", "-g", moved / "gallery", "--json")
    failures, found = (run_process(*words, before=confined()) for words in line)
    for place in places:
        place.chmod(0o700)

    assert (failures.returncode, found.returncode) == (0, 0), failures.stderr + found.stderr
    assert "broken.jpg" in failures.stdout and len(json.loads(found.stdout)["items"]) == 6
    assert not list((moved / "gallery").glob("index.sqlite*"))


def test_failures_names_the_broken_file(moved: Path) -> None:
    (failure,) = printed(moved, "failures")

    assert failure == {"path": str(moved / "photos" / "broken.jpg"), "reason": "truncated: Truncated File Read"}


@pytest.mark.long
def test_doctor_agrees(moved: Path) -> None:
    report = printed(moved, "doctor")

    assert [(space["rows"], space["status"]) for space in report["spaces"]] == [(6, "agrees")]
    assert report["damaged"] == []


def test_no_pair_is_judged_again(moved: Path) -> None:
    result = printed(moved, "search", "an animal", "--rerank", "encoder:starter", "--depth", "5")

    assert (result["verdicts"]["from_ledger"], result["verdicts"]["asked"]) == (5, 0)
    check_items(result["items"], RECORDED["an animal"])


# -- a pipeline ---------------------------------------------------------------------------------------------------


def numbers(_records: Records, _context: Context) -> Iterator[Outcome]:
    return (Added({"id": f"n{number}", "number": number}) for number in range(8))


def even(record: Record, _context: Context) -> Outcome:
    return Drop(record, "odd") if record["number"] % 2 else Keep(record)


def half(record: Record, context: Context) -> Outcome:
    if record["number"] == 6:
        raise NoAnswer("no half")
    return Keep({**record, **context.ask({"model": "m", "words": f"What is half of {record['number']}?"})})


def small(records: Records, context: Context) -> Iterator[Outcome]:
    for record in records:
        if record["half"] > 1:
            yield Drop(record, "large", detail="more than 1")
        else:
            yield Keep({**record, "drawn": context.chance(record["id"]).random()})


STEPS = [
    Step("numbers", BatchStep(numbers), settings={"count": 8}),
    Step("even", MapStep(even), 2),
    Step(
        "half",
        MapStep(half),
        prompts={"question": "What is half of it?"},
        models={"m": {"use": "m"}},
        expects=Spent(1, 0, 0, 0.25),
    ),
    Step("small", BatchStep(small)),
]


def no_model(_prompt: object, _meter: object) -> NoReturn:
    raise AssertionError("a model is asked again")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    shutil.unpack_archive(OLD, tmp_path)
    return tmp_path / "pipeline"


def contents(work: Path) -> dict[str, bytes]:
    return {str(path.relative_to(work)): path.read_bytes() for path in (work / "steps").rglob("*.jsonl")}


def test_finished_steps_are_not_run_again(work: Path) -> None:
    results = run(STEPS, work, RunOptions(seed=3, client=no_model))

    assert [result.ran for result in results] == [False] * 4
    assert [(result.counts.came, result.counts.kept, result.counts.failed) for result in results] == [
        (0, 8, 0),
        (8, 4, 0),
        (4, 3, 1),
        (3, 2, 0),
    ]
    assert [(type(drop).__name__, drop.reason) for result in results for drop in drops(result.folder)] == [
        *[("Drop", "odd")] * 4,
        ("Failed", "no answer"),
        ("Drop", "large"),
    ]
    assert sum(result.cost.spent.money for result in results) == 0.75


def test_outcomes_in_the_work_database_are_used_where_the_folder_of_a_step_is_lost(work: Path) -> None:
    before = contents(work)
    for folder in ("02-even", "03-half", "04-small"):
        shutil.rmtree(work / "steps" / folder)

    results = run(STEPS, work, RunOptions(seed=3, client=no_model))

    assert [result.ran for result in results] == [False, True, True, True]
    assert len(before) == 8 and contents(work) == before
