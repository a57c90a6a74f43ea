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
from tests.wording import check_wording, raises
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
        read = label_studio.read(tmp_path / "out" / "tasks.json").tasks
        first = label_studio.take_in(other, read, set(ids))
        again = label_studio.take_in(other, read, set(ids))

        assert [task["data"]["image_id"] for task in tasks] == ids[:5] and words(other) == before
        assert ([*first.values()], [*again.values()]) == ([5, 1, 5, 4, 0], [5, 0, 0, 0, 0])
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
    assert len(report.notes) == 1  # answers to these tasks could not be imported


def result(*choices: str, control: str = "relevance") -> dict[str, Any]:
    return {"type": "choices", "from_name": control, "value": {"choices": list(choices)}}


def task(*annotations: dict[str, Any], image: str = "a") -> dict[str, Any]:
    return {"data": {"image_id": image, "query_id": "q"}, "annotations": list(annotations)}


def by(person: Any, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"completed_by": person, "result": list(results), **more}


ANNAS = [{"id": number, "first_name": "Anna", "email": f"anna.{number}@example.org"} for number in (1, 2)]
SHORT = {"image_id": "a", "query_id": "q", "relevance": "relevant", "annotator": 7}
YES, NO = result("relevant"), result("not relevant")


@pytest.mark.parametrize(
    ("exported", "marks", "notes", "failed"),
    [
        ([SHORT, {"image_id": "b", "query_id": "q"}], {"label-studio 7": "y"}, 0, 0),
        ([task(by(1, YES, was_cancelled=True))], {}, 0, 0),
        ([task(*map(by, ANNAS, (YES, NO)))], {"anna.1@example.org": "y", "anna.2@example.org": "n"}, 0, 0),
        (
            [task(by(1, YES, updated_at="2024-02-02T00:00:00Z"), by(1, NO, updated_at="2024-02-01T23:00:00-01:00"))],
            {"label-studio 1": "n"},  # at the same moment, and last
            1,
            0,
        ),
        ([task(by(1, YES, updated_at="2024-02-02"), by(1, NO, created_at="2023"))], {"label-studio 1": "y"}, 1, 0),
        ([SHORT | {"created_at": "2024-01-02"}, SHORT | {"relevance": "doubt"}], {"label-studio 7": "y"}, 1, 0),
        ([task(by(None, YES), by(None, NO))], {"label-studio unknown": "n"}, 1, 0),
        ([task(by(1, YES, result("blurry", control="quality")))], {"label-studio 1": "y"}, 1, 0),
        ([task(by(1, YES), by(2, result("relevant", "doubt")), by(3, result("maybe")))], {"label-studio 1": "y"}, 0, 2),
    ],
)
def test_a_person_is_an_address_or_a_number_and_has_one_mark_a_photo(
    tmp_path: Path, exported: list[Any], marks: dict[str, str], notes: int, failed: int
) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(exported))
    found = label_studio.read(tmp_path / "tasks.json")
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        label_studio.take_in(at, found.tasks, {"a", "b"})
        assert words(at) == {who: {"a": mark} for who, mark in marks.items()}
    for sentence in (*found.notes, *(reason for _, reason in found.failed)):
        check_wording(sentence)
    assert (len(found.notes), len(found.failed)) == (notes, failed)


def test_a_mark_taken_back_after_an_export_does_not_return(view: View, ids: list[str], tmp_path: Path) -> None:
    with desk(tmp_path, ids) as at:
        tasks = exported(view, at, tmp_path / "out")
        at.mark("q", "ada", {ids[0]: None})
        dated = json.loads((tmp_path / "out" / "tasks.json").read_text())
        for name in ("created_at", "updated_at"):
            del tasks[0]["annotations"][0][name]
        for entries in (dated, tasks):
            (tmp_path / "out" / "tasks.json").write_text(json.dumps(entries))
            done = label_studio.take_in(at, label_studio.read(tmp_path / "out" / "tasks.json").tasks, set(ids))
            assert (done["marks"], done["older"]) == (0, 1)
        assert ids[0] not in words(at)["ada"]


def test_a_newer_cancelled_annotation_takes_the_mark_back(tmp_path: Path) -> None:
    yes, cancelled = by(1, YES, updated_at="2024-02-02"), by(1, was_cancelled=True, updated_at="2024-02-03")
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        for entries, counts in (([yes], (1, 0)), ([yes, cancelled], (1, 0)), ([yes], (0, 1))):
            (tmp_path / "tasks.json").write_text(json.dumps([task(*entries)]))
            done = label_studio.take_in(at, label_studio.read(tmp_path / "tasks.json").tasks, {"a"})
            assert (done["marks"], done["older"]) == counts
        assert words(at) == {"label-studio 1": {}}


@pytest.mark.parametrize(
    "payload",
    [
        {"tasks": []},
        [3],
        [{"data": {"image": "a.jpg"}}],
        [{"query_id": "q", "image_id": "x", "relevance": "doubt"}],  # of a photo that is not in the gallery
    ],
)
def test_what_cannot_be_read_is_named_and_nothing_is_kept(tmp_path: Path, payload: Any) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(payload))
    with AnnotationStore(tmp_path / "ledger.sqlite") as at:
        with raises(UsageError):
            label_studio.take_in(at, label_studio.read(tmp_path / "tasks.json").tasks, {"y"})
        assert not at.queries()
