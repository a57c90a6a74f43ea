"""Labels leave for Label Studio, each with the people whose they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate.agreement import tasks_of
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.formats.exporting import ExportOptions, export
from eyespot.formats.exports.label_studio import write
from eyespot.gallery.view import Gallery, View
from tests.worlds import annotation as world


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    opened = Gallery(world.gallery(tmp_path_factory.mktemp("labelled"), 12, 3))
    return opened.view(opened.stem())


@pytest.fixture
def ids(view: View) -> list[str]:
    return [fact["id"] for fact in view.facts(range(12))]


def desk(folder: Path, ids: list[str]) -> AnnotationStore:
    """Two people have labelled some of the first five photos."""
    made = AnnotationStore(folder / "ledger.sqlite")
    made.take_in([AnnotationQuery("q", "a heron", {})])
    made.extend("q", [Candidate(id) for id in ids[:5]])
    made.mark("q", "ada", {ids[0]: "y", ids[1]: "n", ids[2]: "d"})
    made.mark("q", "bob@example.org", {ids[1]: "y"})
    return made


def exported(view: View, at: AnnotationStore, out: Path, **options: Any) -> list[dict[str, Any]]:
    export(view, write, out, ExportOptions(tasks=tasks_of(at), **options))
    tasks: list[dict[str, Any]] = json.loads((out / "tasks.json").read_text())
    return tasks


def test_each_mark_goes_out_with_its_person(view: View, ids: list[str], tmp_path: Path) -> None:
    with desk(tmp_path, ids) as at:
        tasks = exported(view, at, tmp_path / "out")

    found = {
        (task["data"]["image_id"], one["completed_by"]["email"]): one["result"][0]["value"]["choices"]
        for task in tasks
        for one in task["annotations"]
    }
    assert [task["data"]["image_id"] for task in tasks] == ids[:5] and len(found) == 4
    assert (found[ids[0], "ada"], found[ids[1], "bob@example.org"]) == (["relevant"], ["relevant"])
    assert all((tmp_path / "out" / task["data"]["image"].partition("d=")[2]).is_file() for task in tasks)


def test_addresses_are_below_the_one_that_is_given(view: View, ids: list[str], tmp_path: Path) -> None:
    with desk(tmp_path, ids) as at:
        tasks = exported(view, at, tmp_path / "out", images_at="https://example.org/a b/")
    assert tasks[0]["data"]["image"].startswith("https://example.org/a b/")
    assert tasks[0]["data"]["image"].endswith("pictures/0000.jpg")
    assert not (tmp_path / "out" / "images").exists()


def test_without_queries_every_photo_is_a_task(view: View, tmp_path: Path) -> None:
    report = export(view, write, tmp_path / "out", ExportOptions())
    tasks = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert report.rows == len(tasks) == 12 and not any(task["annotations"] for task in tasks)
