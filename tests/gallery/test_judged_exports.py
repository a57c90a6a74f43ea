"""Judgements for BEIR and MTEB, and camera-trap packages: what the peers ask for is there, and fits together."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from eyespot import rooms
from eyespot.gallery.exporting import ExportOptions, ExportReport, export
from eyespot.gallery.view import View
from eyespot.runs import beir
from eyespot.runs.judged import JudgedQueries
from eyespot.types import NothingFound, Qrels, UsageError
from tests.curate.outside import loaded
from tests.lazy_import import requires
from tests.wording import raises
from tests.worlds import draw_photos, index_gallery
from tests.worlds.galleries import opened

NAMES = ("file_name", "title", "license", "author", "taken", "latitude", "longitude", "species", "boxes")
PROFILE = Path(__file__).parent / "camtrap-dp-1.0.2"


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Nine photos; the first five have a time and a position, the first two a species, the fifth a box."""
    folder = tmp_path_factory.mktemp("judged")
    boxes = json.dumps([["animal", 0.75, 0.5, 0.5, 0.25, 0.25], ["vehicle", 0.5, 0, 0, 1.5, 1]])
    with (draw_photos(folder / "photos", 9) / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        for at in range(9):
            where = (f"2024-05-0{at + 1} 10:00:00", 47 + at // 3, 8.5) if at < 5 else ("", "", "")
            seen = ("Vulpes vulpes" if at < 2 else "", boxes if at == 4 else "")
            writer.writerow((f"{at}.jpg", f"Nr {at}", "CC BY 4.0", f"Ann {at}", *where, *seen))
    index_gallery(folder / "gallery", folder / "photos")
    return opened(folder / "gallery")


def written(name: str, view: View, out: Path, **options: Any) -> ExportReport:
    return export(view, rooms.module("gallery.exports", name).write, out, ExportOptions(**options))


@pytest.fixture
def judged(view: View) -> JudgedQueries:
    """Judgements of four photos and of one that nobody has."""
    ids = [fact["id"] for fact in view.facts(range(9))]
    grades = {"fox": {ids[0]: 2, ids[1]: 0, "nobody": 1}, "q2": {ids[7]: 1, ids[8]: 0}, "q3": {"nobody": 1}}
    return JudgedQueries({"fox": {"text": "a red fox"}}, Qrels(grades))


def test_a_beir_folder_has_the_corpus_texts_and_judgements(view: View, judged: JudgedQueries, tmp_path: Path) -> None:
    report = written("beir", view, tmp_path / "out", judged=judged)
    read = beir.read(tmp_path / "out")
    assert {query: facts["text"] for query, facts in read.queries.items()} == {"fox": "a red fox", "q2": "q2"}
    assert [sorted(read.qrels[query].values()) for query in ("fox", "q2")] == [[0, 2], [0, 1]]
    said = {fact["id"]: [fact["title"], fact["license"], fact["author"]] for fact in view.facts(range(9))}
    assert {id: [one["text"], one["license"], one["author"]] for id, one in read.images.items()} == said
    assert len(report.notes) == 1 and report.notes[0].startswith("2 judgements ")


@pytest.mark.long
@requires("mteb")
def test_mtebs_loader_reads_pictures_queries_and_judgements(view: View, judged: JudgedQueries, tmp_path: Path) -> None:
    written("mteb", view, tmp_path / "out", judged=judged)
    found = loaded("mteb", tmp_path / "out")
    assert set(found["corpus"]["ids"]) == {fact["id"] for fact in view.facts(range(9))}
    assert found["corpus"]["first"]["image"] == [120, 90] and found["queries"]["ids"] == ["fox", "q2"]
    assert found["queries"]["first"]["text"] == "a red fox"
    assert [sorted(found["qrels"][query].values()) for query in ("fox", "q2")] == [[0, 2], [0, 1]]


def test_judgements_of_other_pictures_are_no_set_and_positions_are_not_told_unasked(view: View, tmp_path: Path) -> None:
    with raises(NothingFound):
        written("beir", view, tmp_path / "out", judged=JudgedQueries({}, Qrels({"q": {"nobody": 1}})))
    with raises(UsageError):
        written("camtrap_dp", view, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def tables(out: Path) -> dict[str, list[dict[str, str]]]:
    found = {}
    for path in out.glob("*.csv"):
        with path.open(newline="") as file:
            found[path.stem] = list(csv.DictReader(file))
    return found


def test_a_camera_trap_package_fits_together_and_has_the_columns_of_the_standard(view: View, tmp_path: Path) -> None:
    report = written("camtrap_dp", view, tmp_path / "out", all_columns=True)

    read, about = tables(tmp_path / "out"), json.loads((tmp_path / "out" / "datapackage.json").read_text())
    media = {row["mediaID"]: row for row in read["media"]}
    assert (report.rows, len(report.failed), len(media)) == (5, 4, 5)
    assert {row["deploymentID"] for row in media.values()} == {row["deploymentID"] for row in read["deployments"]}
    assert all((tmp_path / "out" / row["filePath"]).is_file() for row in media.values())
    seen = sorted((row["observationType"], row["scientificName"], row["bboxWidth"]) for row in read["observations"])
    foxes, boxes = [("animal", "Vulpes vulpes", "")] * 2, [("animal", "", "0.25"), ("vehicle", "", "1.0")]
    assert seen == sorted([*foxes, *boxes, *[("unclassified", "", "")] * 2])
    assert len({row["observationID"] for row in read["observations"]}) == 6
    assert [one["title"] for one in about["contributors"]] == ["eyespot", *(f"Ann {at}" for at in range(5))]
    assert about["licenses"] == [{"title": "CC BY 4.0", "scope": "media", "name": "CC-BY-4.0"}]
    for table in ("deployments", "media", "observations"):
        fields = json.loads((PROFILE / f"{table}-table-schema.json").read_text())["fields"]
        required = [field["name"] for field in fields if field.get("constraints", {}).get("required")]
        assert [*read[table][0]] == [field["name"] for field in fields]
        assert all(row[name] for row in read[table] for name in required)
