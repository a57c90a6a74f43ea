"""The recipes of docs/engines.md run on an export: tables, rows and a feed that hold every picture."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import eyespot
from eyespot.formats.exporting import ExportOptions, export
from eyespot.formats.exports import parquet
from eyespot.formats.imports import clip_retrieval, hdf5
from eyespot.formats.imports.registered import take_in
from eyespot.gallery.view import Gallery, View
from tests.cli.conftest import copy_of_sample_gallery
from tests.lazy_import import requires
from tests.worlds.galleries import opened

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"
BLOCKS = [
    re.sub(r"^   ", "", block, flags=re.MULTILINE) if block.startswith("   ") else block
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """The sample gallery beside its export in parquet, OUT."""
    folder = tmp_path_factory.mktemp("sample")
    gallery = Gallery(copy_of_sample_gallery(folder / "GALLERY"))
    view = gallery.view(gallery.stem())
    export(view, parquet.write, folder / "OUT", ExportOptions())
    return view


def run(word: str, view: View, monkeypatch: pytest.MonkeyPatch, **names: Any) -> dict[str, Any]:
    """The names that the recipe with this word leaves."""
    monkeypatch.chdir(view.gallery.path.parent)
    (code,) = [block for block in BLOCKS if word in block]
    exec(code.replace("ids = ...", "ids = candidates(query)").replace("a heron", "a windmill"), names)
    return names


@requires("lancedb")
def test_lancedb_finds_a_picture_by_its_own_vector(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    table = run("lancedb", view, monkeypatch)["table"]
    (nearest,) = table.search(view.vectors([5])[0]).limit(1).to_list()

    assert table.count_rows() == 208 and nearest["id"] == view.facts([5])[0]["id"]


def test_milvus_gets_plain_rows_with_vectors_and_facts(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is a stand-in: no Milvus runs here."""
    made: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    client = SimpleNamespace(
        create_collection=lambda name, dim, **options: made.update(options, name=name, dim=dim),
        insert=lambda name, some: rows.extend(some),
    )
    monkeypatch.setitem(sys.modules, "pymilvus", SimpleNamespace(MilvusClient=lambda _: client))  # type: ignore[arg-type]
    run("pymilvus", view, monkeypatch)

    assert made["name"] == "pictures" and made["dim"] == len(rows[0]["vector"]) == 512
    assert len({row["id"] for row in rows}) == 208 and all(len(row["id"]) <= made["max_length"] for row in rows)
    assert rows[0]["title"] == view.facts([0])[0]["title"]


def test_the_feed_of_vespa_has_a_document_a_line(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    run("feed.jsonl", view, monkeypatch)
    lines = (view.gallery.path.parent / "feed.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]

    assert len({document["put"] for document in documents}) == 208
    assert set(documents[5]["fields"]) == {"picture_id", "vector", "width", "height"}
    np.testing.assert_allclose(documents[5]["fields"]["vector"]["values"], view.vectors([5])[0], atol=1e-4)


@pytest.mark.parametrize("place", ["clip", "vectors.hdf5"])
def test_folders_and_files_of_vectors_come_in_again(
    view: View, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    inward: Any = clip_retrieval
    if place != "clip":
        pytest.importorskip("h5py")
        inward = hdf5
    run("img_emb" if place == "clip" else "h5py", view, monkeypatch)
    take_in(tmp_path / "again", inward.source([view.gallery.path.parent / place]), "starter")
    again = opened(tmp_path / "again")

    assert [fact["id"].partition(":")[2] for fact in again.facts(range(208))] == [
        fact["id"] for fact in view.facts(range(208))
    ]
    np.testing.assert_array_equal(again.vectors(range(208)), view.vectors(range(208)))


def test_the_answer_among_candidates_is_the_exact_one(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's part is a scan of bits, as the page makes them."""
    rows = np.flatnonzero(view.live).tolist()
    vectors, ids = view.vectors(rows), [fact["id"] for fact in view.facts(rows)]
    codes = np.packbits(vectors > vectors.mean(axis=0), axis=1)

    def candidates(query: Any) -> list[str]:
        distances = np.bitwise_count(codes ^ np.packbits(query > 0)).sum(axis=1)
        return [ids[at] for at in np.argsort(distances, kind="stable")[:150]]

    names = run("candidates", view, monkeypatch, candidates=candidates)
    exact = eyespot.open(view.gallery.path).index.search(names["query"][None], 50)
    found = set(view.rows_of(names["ids"]))
    inside = [row for row in exact.rows[0].tolist() if row in found]

    assert len(found) == 150 and len(inside) >= 36
    assert names["nearest"].rows[0].tolist()[: len(inside)] == inside  # only what the candidates lack differs
