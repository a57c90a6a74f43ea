"""CIRCO: annotations (a picture and how the wanted one differs), and submissions {query: [50 images, best first]}.

The annotations of the test split name no relevant images; its numbers come from the official server.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eyespot.runs.json_scores import ids_of
from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import id_of, json_of, refuse
from eyespot.types import Qrels, Run, UsageError

DEPTH = 50


def read(path: Path) -> JudgedQueries:
    """Queries with `text`, `image` (the reference picture), `shared_concept`, `semantic_aspects` and `target`."""
    rows = json_of(path)
    if not isinstance(rows, list):
        refuse(path, "", "holds no list; expected CIRCO's [{id, reference_img_id, relative_caption, …}, …]")
    queries: dict[str, Columns] = {}
    grades: dict[str, dict[str, int]] = {}
    for at, row in enumerate(rows, 1):
        query = _id(path, at, row, "id")
        if query in queries:
            refuse(path, f"entry {at}", f"has the id {query!r} a second time; keep one of the two")
        text = row.get("relative_caption")
        if not isinstance(text, str):
            refuse(path, f"entry {at}", "has no text as relative_caption")
        queries[query] = {
            "text": text,
            "image": _id(path, at, row, "reference_img_id"),
            "shared_concept": row.get("shared_concept"),
            "semantic_aspects": row.get("semantic_aspects", []),
            "target": id_of(row.get("target_img_id")),
        }
        truths = row.get("gt_img_ids", [])
        if not isinstance(truths, list):
            refuse(path, f"entry {at}", "has no list of ids as gt_img_ids")
        grades[query] = dict.fromkeys(ids_of(path, query, truths), 1)
    return JudgedQueries(queries, Qrels(grades, {"source": str(path)}))


def write_run(run: Run, path: Path) -> None:
    """A submission: the first 50 images of each query; `UsageError` for ids that are not numbers."""
    ids = {image for query in run for image in (query, *(hit.image for hit in run[query][:DEPTH]))}
    odd = next((id for id in sorted(ids) if not (id.isascii() and id.isdigit())), None)
    if odd is not None:
        raise UsageError(f"CIRCO's ids are numbers, {odd!r} is none; write .json for other rankings")
    orders = {query: [int(hit.image) for hit in run[query][:DEPTH]] for query in run}
    data = json.dumps(orders).encode()
    write_whole(path, lambda file: file.write(data))


def _id(path: Path, at: int, row: Any, name: str) -> str:
    found = id_of(row.get(name)) if isinstance(row, dict) else None
    if found is None:
        refuse(path, f"entry {at}", f"has no {name}; expected a number")
    return found
