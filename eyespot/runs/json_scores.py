"""JSON rankings and judgements: {query: {image: score}} as ILIAS exchanges them, and {query: [image, …]} best first.

With scores the order is by descending score, equal scores in the order of the file; a list is its own order.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eyespot.runs.table import GRADE, IMAGE, QUERY, SCORE
from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import id_of, json_of, refuse, required
from eyespot.types import Qrels, RankedImage, Run


def read_run(path: Path) -> Run:
    """A run, also from a list of rows; `UsageError` names the query and the image that are not as they should be."""
    value = json_of(path)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return run_of_rows(path, enumerate(value, 1))
    run = run_of(path, queries_of(path, value))
    run.header["source"] = str(path)
    return run


def run_of(path: Path, rankings: Mapping[str, Any]) -> Run:
    """A run from what a JSON file holds: every query with scores, or every query with a list."""
    listed = {query: ids_of(path, query, images) for query, images in rankings.items() if isinstance(images, list)}
    if listed and len(listed) == len(rankings):
        return Run.from_orders(listed)
    scored = {}
    for query, images in rankings.items():
        if not isinstance(images, dict):
            refuse(path, f"query {query!r}", f"holds {_kind(images)}; expected {{image: score}}")
        hits = [RankedImage(image, _score(path, query, image, score)) for image, score in images.items()]
        scored[query] = sorted(hits, key=lambda hit: -hit.score)
    return Run(scored)


def run_of_rows(path: Path, rows: Iterable[tuple[int, Any]]) -> Run:
    """A run from rows of query, image and score with their lines; columns are named as in a parquet file."""
    return run_of(path, _of_rows(path, rows, SCORE))


def read_qrels(path: Path) -> Qrels:
    """Judgements, {query: {image: grade}} or a list of rows; of {query: [image, …]} all are relevant."""
    value = json_of(path)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return qrels_of_rows(path, enumerate(value, 1))
    return _qrels_of(path, queries_of(path, value))


def qrels_of_rows(path: Path, rows: Iterable[tuple[int, Any]]) -> Qrels:
    """Judgements from rows of query, image and grade with their lines; columns are named as in a parquet file."""
    return _qrels_of(path, _of_rows(path, rows, GRADE))


def _of_rows(path: Path, rows: Iterable[tuple[int, Any]], values: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """{query: {image: value}}; a text that is a number becomes one."""
    found: dict[str, dict[str, Any]] = {}
    for line, row in rows:
        fields = row if isinstance(row, dict) else {}
        query, image = (required(path, line, fields, *names) for names in (QUERY, IMAGE))
        if image in found.setdefault(query, {}):
            refuse(path, f"line {line}", f"has image {image!r} of query {query!r} a second time; keep one of the two")
        column = next((name for name in values if name in fields), None)
        if column is None:
            refuse(path, f"line {line}", f"has no column {values[0]}; there are: {', '.join(map(str, fields))}")
        found[query][image] = value = fields[column]
        with suppress(ValueError):
            found[query][image] = float(value) if isinstance(value, str) else value
    return found


def _qrels_of(path: Path, judged: Mapping[str, Any]) -> Qrels:
    grades: dict[str, dict[str, float]] = {}
    for query, images in judged.items():
        if isinstance(images, list):
            images = dict.fromkeys(ids_of(path, query, images), 1)
        if not isinstance(images, dict):
            refuse(path, f"query {query!r}", f"holds {_kind(images)}; expected {{image: grade}}")
        for image, grade in images.items():
            if isinstance(grade, bool) or not isinstance(grade, int | float) or not abs(grade) < 2**31 or not image:
                refuse(path, f"query {query!r}", f"gives image {image!r} the grade {grade!r}; expected a number")
        grades[query] = images
    return Qrels(grades, {"source": str(path)})


def write_run(run: Run, path: Path) -> None:
    """{query: {image: score}}, each ranking in its order."""
    rankings = {query: {hit.image: hit.score for hit in run[query]} for query in run}
    write_whole(path, lambda file: _dump(rankings, file))


def write_qrels(qrels: Qrels, path: Path) -> None:
    """{query: {image: grade}}."""
    write_whole(path, lambda file: _dump(qrels.grades, file))


def _dump(value: Any, file: Any) -> None:
    file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def queries_of(path: Path, value: Any) -> dict[str, Any]:
    """The object whose keys are the queries."""
    if not isinstance(value, dict):
        refuse(path, "", f"holds {_kind(value)}; expected an object {{query: {{image: score}}}}")
    if "" in value:
        refuse(path, "", "has an empty query id")
    return value


def ids_of(path: Path, query: str, images: list[Any]) -> list[str]:
    """A list of ids, each once, as text."""
    ids = [id_of(image) for image in images]
    if None in ids:
        refuse(path, f"query {query!r}", f"ranks {images[ids.index(None)]!r}; expected an id of an image")
    names = [id for id in ids if id is not None]
    if len(set(names)) < len(names):
        twice = next(id for place, id in enumerate(names) if id in names[:place])
        refuse(path, f"query {query!r}", f"ranks image {twice!r} twice; keep one of the two")
    return names


def _score(path: Path, query: str, image: str, score: Any) -> float:
    try:
        number = math.nan if isinstance(score, bool) or not isinstance(score, int | float) else float(score)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not image:
        refuse(path, f"query {query!r}", f"gives image {image!r} the score {score!r}; expected a finite number")
    return number


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")
