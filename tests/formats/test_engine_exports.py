"""Exports for search engines: the codes find, and a search among the candidates is eyespot's exact one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import eyespot
from eyespot import rooms
from eyespot.formats.exporting import ExportOptions, export
from eyespot.gallery.view import Gallery, View
from tests.cli.conftest import copy_of_sample_gallery


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    gallery = Gallery(copy_of_sample_gallery(tmp_path_factory.mktemp("sample") / "gallery"))
    return gallery.view(gallery.stem())


def written(name: str, view: View, out: Path) -> Path:
    report = export(view, rooms.module("formats.exports", name).write, out, ExportOptions())
    assert report.rows == 208
    return out


def feed(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "feed.jsonl").read_text().splitlines()]


def test_milvus_gets_rows_that_fit_its_schema(view: View, tmp_path: Path) -> None:
    out = written("milvus", view, tmp_path / "out")
    (part,) = (out / "data").iterdir()
    table, schema = pq.read_table(part), json.loads((out / "schema.json").read_text())
    sizes = {field["name"]: field.get("dim") for field in schema["fields"]}
    first = table.slice(0, 1).to_pylist()[0]

    assert table.column_names == [*sizes, "$meta"]
    assert len(first["vector"]) == sizes["vector"] == 512 and len(first["signs"]) * 8 == sizes["signs"]
    assert table["row"].to_pylist() == list(range(208))
    facts = view.facts([0])[0]
    assert first["id"] == facts["id"] and json.loads(first["$meta"])["title"] == facts["title"]
    assert {index["field_name"] for index in schema["indexes"]} == {"vector", "signs"}


def test_vespa_gets_documents_whose_fields_its_schema_has(view: View, tmp_path: Path) -> None:
    out = written("vespa", view, tmp_path / "out")
    schema = (out / "application" / "schemas" / "picture.sd").read_text()
    kinds = dict(re.findall(r"field (\w+) type (\S+) \{", schema))
    rows = feed(out)

    assert kinds["signs"] == "tensor<int8>(x[64])" and kinds["vector"] == "tensor<bfloat16>(x[512])"
    assert kinds["paths"] == "array<string>" and kinds["width"] == "long" and kinds["title"] == "string"
    assert len(rows) == 208 and all(set(row["fields"]) <= set(kinds) for row in rows)
    assert all(-128 <= code < 128 for row in rows for code in row["fields"]["signs"]["values"])
    np.testing.assert_allclose(rows[5]["fields"]["vector"]["values"], view.vectors([5])[0], atol=1e-4)
    assert schema.count("{") == schema.count("}")


def test_a_column_that_vespa_cannot_name_gets_another_name() -> None:
    import pyarrow as pa

    from eyespot.formats.exports.vespa import field_types

    names = ["id", "dwc:species", "dwc species", "1st", "row", "vector", "paths"]
    kinds = [pa.string(), pa.string(), pa.float64(), pa.int32(), pa.bool_(), pa.string(), pa.list_(pa.string())]
    columns: list[Any] = list(zip(names, kinds, strict=True))
    fields = field_types(pa.schema(columns))

    assert [fields[name] for name in names] == [
        ("picture_id", "string"),
        ("dwc_species", "string"),
        ("dwc_species_", "double"),
        ("f_1st", "long"),
        ("row_", "string"),
        ("vector_", "string"),
        ("paths", "array<string>"),
    ]


@pytest.mark.parametrize("name", ["milvus", "vespa"])
def test_the_recipe_gives_the_exact_answer_among_the_candidates(name: str, view: View, tmp_path: Path) -> None:
    """The Python of README.md is run; the engine's part, a scan of the codes, is done here."""
    out = written(name, view, tmp_path / "out")
    if name == "milvus":
        table = pq.read_table(next((out / "data").iterdir()))
        ids, codes = table["id"].to_pylist(), np.array(table["signs"].to_pylist(), np.uint8)
    else:
        fields = [row["fields"] for row in feed(out)]
        ids = [row["picture_id"] for row in fields]
        codes = np.array([row["signs"]["values"] for row in fields], np.int8).view(np.uint8)

    def candidates(signs: Any) -> list[str]:
        distances = np.bitwise_count(codes ^ signs).sum(axis=1)
        return [ids[at] for at in np.argsort(distances, kind="stable")[:150]]

    (code,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL)
    code = code.replace("ids = ...", "ids = candidates(signs)").replace('"a heron"', '"a windmill"')
    names: dict[str, Any] = {"GALLERY": view.gallery.path, "candidates": candidates}
    exec(code, names)

    exact = eyespot.open(view.gallery.path).index.search(names["query"][None], 50)
    found, nearest = set(view.rows_of(names["ids"])), names["nearest"].rows[0].tolist()
    inside = [row for row in exact.rows[0].tolist() if row in found]
    assert len(found) == 150 and len(inside) >= 36
    assert nearest[: len(inside)] == inside  # what the candidates lack is the only difference
