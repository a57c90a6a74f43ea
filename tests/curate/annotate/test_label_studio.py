"""Labels leave for Label Studio and come back from it, each to whom it belongs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eyespot.curate.annotate import label_studio
from eyespot.curate.annotate.annotation_store import AnnotationStore, mark_of
from eyespot.curate.annotate.queries import AnnotationQuery
from eyespot.formats.exporting import ExportOptions, export
from eyespot.formats.exports.label_studio import write
from eyespot.gallery.view import Gallery, View
from eyespot.types import UsageError
from tests.wording import raises
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
    made.extend("q", [label_studio.Candidate(id) for id in ids[:5]])
    made.mark("q", "ada", {ids[0]: "y", ids[1]: "n", ids[2]: "d"})
    made.mark("q", "bob@example.org", {ids[1]: "y"})
    return made


def words(at: AnnotationStore) -> dict[str, dict[str, str]]:
    judgements = at.said_by("q", at.annotators())
    return {who: {image: mark_of(one) for image, one in marks.items()} for who, marks in judgements.items()}


def exported(view: View, at: AnnotationStore, out: Path, **options: Any) -> list[dict[str, Any]]:
    export(view, write, out, ExportOptions(tasks=label_studio.tasks_of(at), **options))
    tasks: list[dict[str, Any]] = json.loads((out / "tasks.json").read_text())
    return tasks


def test_what_goes_out_comes_back_the_same(view: View, ids: list[str], tmp_path: Path) -> None:
    with desk(tmp_path, ids) as at:
        tasks = exported(view, at, tmp_path / "out")
        before = words(at)
    (tmp_path / "other").mkdir()
    with AnnotationStore(tmp_path / "other" / "ledger.sqlite") as other:
        read = label_studio.read(tmp_path / "out" / "tasks.json")
        first = label_studio.take_in(other, read, set(ids))
        again = label_studio.take_in(other, read, set(ids))

        assert [task["data"]["image_id"] for task in tasks] == ids[:5] and words(other) == before
        assert (first, again) == ((5, 1, 5, 4), (5, 0, 0, 0))
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


def test_the_short_export_is_read_too(tmp_path: Path) -> None:
    short = [{"image_id": "a", "query_id": "q", "query": "a heron", "relevance": "relevant", "annotator": 7}]
    (tmp_path / "min.json").write_text(json.dumps([*short, {"image_id": "b", "query_id": "q"}]))
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        label_studio.take_in(at, label_studio.read(tmp_path / "min.json"), {"a", "b"})
        assert words(at) == {"label-studio 7": {"a": "y"}} and at.photos("q") == ["a", "b"]


def test_what_was_cancelled_does_not_count(tmp_path: Path) -> None:
    result = {"type": "choices", "value": {"choices": ["relevant"]}}
    annotations = [{"was_cancelled": True, "completed_by": 1, "result": [result]}]
    task = {"data": {"image_id": "a", "query_id": "q"}, "annotations": annotations}
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    assert label_studio.read(tmp_path / "tasks.json")[0].marks == {}


@pytest.mark.parametrize(
    "payload",
    [
        {"tasks": []},
        [3],
        [{"data": {"image": "a.jpg"}}],
        [{"query_id": "q", "image_id": "x", "relevance": "maybe"}],
        [{"query_id": "q", "image_id": "x", "relevance": "doubt"}],  # of a photo that is not in the gallery
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_kept(tmp_path: Path, payload: Any) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(payload))
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        with raises(UsageError):
            label_studio.take_in(at, label_studio.read(tmp_path / "tasks.json"), {"y"})
        assert not at.queries()
