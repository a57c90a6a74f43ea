"""`croissant.json` of all three builders and of a release: MLCommons' own reader and pandas read the same tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eyespot.bridges.hubs import Release, publish
from tests.worlds import recos, rmir
from tests.worlds.inat import collect, seen

CARD = """
[card]
licence = "CC-BY-4.0"
[card.motivation]
makers = "Ada's laboratory"
[card.distribution]
how = "At https://example.org/set."
when = "Since 2026-11-22."
[card.composition]
people = "Hands only."
"""


def an_rmir_set(folder: Path) -> Path:
    place = rmir.recipe(folder, rmir.photos(folder / "photos"))
    place.write_text(place.read_text(encoding="utf-8") + CARD, encoding="utf-8")
    rmir.made(place, folder / "out")
    return folder / "out" / "set"


def a_recos_set(folder: Path) -> Path:
    recos.made(recos.recipe(folder, recos.photos(folder / "photos")), folder / "out")
    return folder / "out" / "set"


def an_inat_collection(folder: Path) -> Path:
    collect(folder, [seen("a"), seen("b")])
    return folder / "out"


def a_release(folder: Path) -> Path:
    """A ReCoS set whose recipe says no date, as it is published."""
    place = recos.recipe(folder, recos.photos(folder / "photos"))
    place.write_text(f'{place.read_text(encoding="utf-8")}\n[card]\nlicence = "CC-BY-4.0"\n', encoding="utf-8")
    recos.made(place, folder / "out")
    publish(Release.of(folder / "out" / "set", "1.0.0"), str(folder / "release"))
    return folder / "release"


TABLES: dict[Callable[[Path], Path], set[str]] = {
    an_rmir_set: {"queries", "qrels", "pool", "judgements", "losses"},
    a_recos_set: {"captions", "images"},
    a_release: {"captions", "images"},
    an_inat_collection: {"pictures", "attributions", "taxonomy", "funnel"},
}


@pytest.fixture(scope="module", params=list(TABLES), ids=lambda builder: builder.__name__)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """A set, and the names of its tables."""
    builder: Callable[[Path], Path] = request.param
    return builder(tmp_path_factory.mktemp("built")), TABLES[builder]


def read_croissant(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "croissant.json").read_text(encoding="utf-8"))
    return found


def test_every_table_stands_there_with_its_digest(built: tuple[Path, set[str]]) -> None:
    folder, tables = built
    description = read_croissant(folder)

    assert {one["name"] for one in description["recordSet"]} == tables
    for one in description["distribution"]:
        assert one["sha256"] == hashlib.sha256((folder / one["contentUrl"]).read_bytes()).hexdigest()
    for one in description["recordSet"]:
        place = folder / one["field"][0]["source"]["fileObject"]["@id"]
        if place.suffix == ".parquet":
            columns = [column.name for column in pq.read_schema(place) if not str(column.type).startswith("list")]
            assert [field["name"] for field in one["field"]] == columns
    assert description["rai:dataPreprocessingProtocol"] and description["rai:dataCollection"]


@pytest.mark.long
def test_what_the_recipe_says_stands_there(tmp_path: Path) -> None:
    description = read_croissant(an_rmir_set(tmp_path))

    assert (description["license"], description["datePublished"]) == ("CC-BY-4.0", "2026-11-22")
    assert description["url"] == "https://example.org/set"
    assert description["creator"] == [{"@type": "Organization", "name": "Ada's laboratory"}]
    assert description["rai:personalSensitiveInformation"] == "Hands only."
    assert description["rai:machineAnnotationTools"].startswith("demonstration:first")
    assert "A person's audit (red): No person has read" in description["rai:dataAnnotationAnalysis"]


def test_mlcroissant_takes_it_and_reads_the_tables(built: tuple[Path, set[str]]) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed; make extras installs it")
    pandas = pytest.importorskip("pandas")  # which it needs
    folder, tables = built

    dataset = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))

    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not (folder.name == "release" and issues.warnings)
    for table in tables:
        rows = list(dataset.records(record_set=table))
        assert rows and all(name.startswith(f"{table}/") for name in rows[0])
        assert not (place := folder / f"{table}.parquet").is_file() or len(pandas.read_parquet(place)) == len(rows)
