"""A Vespa application with its documents: `schemas/picture.sd`, `services.xml`, and `feed.jsonl` for `vespa feed`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    import pyarrow as pa

    from eyespot.formats.exporting import ExportRows

ABOUT = "Write a Vespa application: a schema with bit codes and vectors, ranking in two phases, documents and a recipe."
OPTIONS: tuple[str, ...] = ()
_OWN = ("picture_id", "row", "signs", "vector")
_LOAD = """\
## Load

`vespa deploy application`, then `vespa feed feed.jsonl`. `signs` has an HNSW graph over Hamming distances; `vector` is
bfloat16 and paged, so it is read from disk for candidates alone. The profile `vectors` weighs the bits of many
candidates with the query's numbers, and puts the best 1,000 of a node in the order of their inner products. Vectors are
filled up with zeros to a multiple of 8.

    yql=select picture_id from picture where {targetHits:10000}nearestNeighbor(signs, query_signs)
    ranking=vectors
    input.query(query_signs)=[…]       the bytes as signed integers
    input.query(query_vector)=[…]
"""
_SCHEMA = """\
schema picture {{
    document picture {{
{fields}
        field signs type tensor<int8>(x[{bytes}]) {{
            indexing: attribute | index
            attribute {{
                distance-metric: hamming
            }}
            index {{
                hnsw {{
                    max-links-per-node: 32
                    neighbors-to-explore-at-insert: 200
                }}
            }}
        }}
        field vector type tensor<bfloat16>(x[{dim}]) {{
            indexing: attribute
            attribute {{
                paged
            }}
        }}
    }}
    rank-profile signs {{
        inputs {{
            query(query_signs) tensor<int8>(x[{bytes}])
        }}
        first-phase {{
            expression {{
                closeness(field, signs)
            }}
        }}
    }}
    rank-profile vectors inherits signs {{
        inputs {{
            query(query_vector) tensor<float>(x[{dim}])
        }}
        first-phase {{
            expression {{
                sum(query(query_vector) * unpack_bits(attribute(signs)))
            }}
        }}
        second-phase {{
            expression {{
                sum(query(query_vector) * attribute(vector))
            }}
            rerank-count: {candidates}
        }}
    }}
}}
"""
_FIELD = """\
        field {name} type {type} {{
            indexing: summary | attribute
        }}"""
_SERVICES = """\
<?xml version="1.0" encoding="UTF-8"?>
<services version="1.0">
  <container id="default" version="1.0">
    <search></search>
    <document-api></document-api>
  </container>
  <content id="pictures" version="1.0">
    <redundancy>1</redundancy>
    <documents>
      <document type="picture" mode="index"></document>
    </documents>
    <nodes>
      <node distribution-key="0" hostalias="node1"></node>
    </nodes>
  </content>
</services>
"""


def write(rows: ExportRows, folder: Path) -> int:
    """`application/` (the schema and services of one node), and a document a line in `feed.jsonl`."""
    from eyespot.formats.exports._engines import CANDIDATES, mean_of, write_recipe
    from eyespot.storage.atomic import write_whole

    fields, dim = field_types(rows.columns.schema), rows.view.space.dim
    lines = "\n".join(_FIELD.format(name=name, type=type) for name, type in fields.values())
    schema = _SCHEMA.format(fields=lines, dim=-(-dim // 8) * 8, bytes=-(-dim // 8), candidates=CANDIDATES)
    (folder / "application" / "schemas").mkdir(parents=True)
    for name, text in (("schemas/picture.sd", schema), ("services.xml", _SERVICES)):
        (folder / "application" / name).write_text(text, encoding="utf-8")
    mean = mean_of(rows)
    written = 0

    def feed(file: Any) -> None:
        nonlocal written
        for written, document in enumerate(_documents(rows, fields, mean), 1):  # noqa: B007
            file.write(json.dumps(document).encode() + b"\n")

    write_whole(folder / "feed.jsonl", feed)
    write_recipe(rows, folder, ("vespa", "Vespa"), _LOAD, mean)
    return written


def field_types(schema: pa.Schema) -> dict[str, tuple[str, str]]:
    """By column: the field's name, which Vespa allows, and its type; columns of other types become text."""
    import pyarrow as pa

    fields, taken = dict[str, tuple[str, str]](), set(_OWN)
    for column in schema:
        name = "picture_id" if column.name == "id" else re.sub(r"[^A-Za-z0-9_]", "_", column.name)
        name = name if re.match("[A-Za-z_]", name) else f"f_{name}"
        while name in taken and column.name != "id":
            name += "_"
        taken.add(name)
        kind = (
            "long" if pa.types.is_integer(column.type) else "double" if pa.types.is_floating(column.type) else "string"
        )
        kind = "array<string>" if pa.types.is_list(column.type) else kind
        fields[column.name] = (name, kind)
    return fields | {"": ("row", "long")}


def _documents(rows: ExportRows, fields: dict[str, tuple[str, str]], mean: Any) -> Any:
    import numpy as np

    from eyespot.formats.exporting import known_facts
    from eyespot.formats.exports._engines import signs_of

    number = 0
    for chunk in rows.chunks():
        signs = signs_of(chunk.vectors, mean).view(np.int8)
        vectors = np.pad(chunk.vectors.astype(np.float32), ((0, 0), (0, -len(mean) % 8)))
        for facts, code, vector in zip(chunk.facts.to_pylist(), signs.tolist(), vectors, strict=True):
            values = {
                fields[name][0]: value if fields[name][1] != "string" else str(value)
                for name, value in known_facts(facts).items()
            }
            values |= {
                "row": number,
                "signs": {"values": code},
                "vector": {"values": [float(f"{x:.5g}") for x in vector]},
            }
            yield {"put": f"id:eyespot:picture::{quote(facts['id'], safe='')}", "fields": values}
            number += 1
