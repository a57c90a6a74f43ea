"""An RMIR set in the hands of `datasets`, MTEB and pandas: with its pictures, without, and as it is published."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from eyespot.bridges.hubs import Release, publish
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.making import write_set
from eyespot.formats.pictures import without_position
from tests.worlds.outside import loaded
from tests.worlds.rmir import ran, recipe

pytestmark = pytest.mark.skipif(find_spec("mteb") is None, reason="mteb is not installed")


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory, gallery: Path, demonstrated: FinishedSteps) -> FinishedSteps:
    """The demonstration's set with queries in both splits."""
    out = Path(shutil.copytree(demonstrated.pipe.work.parent, tmp_path_factory.mktemp("parted") / "made"))
    threshold = min(one["tsr"] for one in demonstrated.queries)
    written = recipe(out, gallery, split=f"threshold = {threshold}\napart = false")
    written.write_text(f'{written.read_text(encoding="utf-8")}\n[card]\nlicence = "CC-BY-4.0"\n', encoding="utf-8")
    return ran(written, out)


@pytest.fixture(scope="module", params=["with pictures", "without", "published"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, parted: FinishedSteps) -> Path:
    """Where it lies."""
    out = tmp_path_factory.mktemp("outside")
    write_set(parted, out, share=None if request.param == "without" else without_position)
    if request.param == "published":
        return Path(publish(Release.of(out / "set", "1.0.0"), str(out / "published")))
    return Path(shutil.move(out / "set", out / request.param))


def targets(made: FinishedSteps) -> dict[str, dict[str, int]]:
    """What is judged of each test query."""
    pool, rows = set(made.pool), made.in_split("test")
    grades = {one["id"]: dict.fromkeys(one["negatives"], 0) | dict.fromkeys(one["targets"], 1) for one in rows}
    return {query: {id: grade for id, grade in judged.items() if id in pool} for query, judged in grades.items()}


@pytest.mark.long
def test_mtebs_loader_reads_the_folder_for_mteb(place: Path, parted: FinishedSteps) -> None:
    found = loaded("mteb", place / "mteb")

    assert found["corpus"]["ids"] == parted.pool
    assert found["queries"]["ids"] == [one["id"] for one in parted.in_split("test")]
    assert found["qrels"] == targets(parted)
    shown = [bool(found[table]["first"]["image"]) for table in ("corpus", "queries")]
    assert shown == [place.name != "without"] * 2


def test_datasets_reads_every_configuration_and_pandas_the_tables(place: Path, parted: FinishedSteps) -> None:
    found = loaded("datasets", place)

    splits = {name: {split: summary["rows"] for split, summary in rows.items()} for name, rows in found.items()}
    test, train = (len(parted.in_split(name)) for name in ("test", "train"))
    assert splits["default"] == splits["queries"] == {"test": test, "train": train} and test and train
    assert splits["qrels"]["test"] == sum(map(len, targets(parted).values()))
    assert splits["pool"] == {"whole": len(parted.pool)}
    assert {"judgements", "losses", "mteb-corpus", "mteb-queries", "mteb-qrels"} <= set(splits)
    assert all(summary["first"] for rows in found.values() for summary in rows.values())
    pandas = pytest.importorskip("pandas")
    assert set(pandas.read_parquet(place / "qrels.parquet")["image"]) <= set(parted.pool)
