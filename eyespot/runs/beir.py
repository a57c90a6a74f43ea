"""BEIR and MTEB: the three tables corpus, queries and qrels, as jsonl and tsv (BEIR) or parquet (MTEB on the hub).

Pictures in the tables are not read, only ids and what is text or a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from eyespot.runs.judged import Columns, JudgedQueries
from eyespot.storage.atomic import write_whole
from eyespot.storage.tables import opened_parquet, rows_of
from eyespot.storage.text_files import refuse, required
from eyespot.types import Qrels, UsageError

ID = ("_id", "id", "query-id", "corpus-id")
ENDINGS = ("jsonl", "tsv", "parquet", "jsonl.gz", "tsv.gz")
PLAIN = ("string", "large_string", "double", "float", "bool")


def is_layout(folder: Path) -> bool:
    """Whether a folder holds a table of queries and one of qrels."""
    return all(any(_files(folder, table, split) for split in ("test", "*")) for table in ("queries", "qrels"))


def read(folder: Path, split: str = "test") -> JudgedQueries:
    """The queries that the split judges, its judgements, and the corpus if it is there."""
    qrels = read_qrels(folder, split)
    queries = dict(_rows(_required(folder, "queries", split)))
    missing = next((query for query in qrels if query not in queries), None)
    if missing is not None:
        raise UsageError(f"{folder}: the query {missing!r} of the qrels is not among the queries; fetch both again")
    images = dict(_rows(_files(folder, "corpus", split)))
    return JudgedQueries({query: queries[query] for query in qrels}, qrels, images)


def read_qrels(place: Path, split: str = "test") -> Qrels:
    """Judgements from the folder's `qrels`, or from one such file; grades may be written as 1.0."""
    files = _required(place, "qrels", split) if place.is_dir() else [place]
    grades: dict[str, dict[str, float]] = {}
    for path in files:
        for line, row in rows_of(path, ("query-id", "query_id", "corpus-id", "corpus_id", "score")):
            query = required(path, line, row, "query-id", "query_id")
            image = required(path, line, row, "corpus-id", "corpus_id")
            if image in grades.setdefault(query, {}):
                refuse(path, f"line {line}", f"judges query {query!r}, image {image!r} a second time")
            value: Any = row.get("score")
            grade = math.nan
            with suppress(TypeError, ValueError):
                grade = math.nan if isinstance(value, bool) else float(value)
            if not abs(grade) < 2**31:
                refuse(path, f"line {line}", f"has {value!r} as score; expected a number")
            grades[query][image] = grade
    return Qrels(grades, {"source": str(place), "split": split})


def write(judged: JudgedQueries, folder: Path, split: str = "test") -> None:
    """BEIR's layout: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv; `UsageError` for ids with a tab or a break."""
    odd = next(
        (id for id in (*judged.qrels.queries, *judged.qrels.images) if len(id.splitlines()) > 1 or "\t" in id), None
    )
    if odd is not None:
        raise UsageError(f"the id {odd!r} has a tab or a line break, which no line of {folder}/qrels can hold")
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "queries.jsonl", ({"_id": id, **facts} for id, facts in judged.queries.items()))
    pool = {**{image: {} for image in judged.qrels.images}, **judged.images}
    _write_lines(folder / "corpus.jsonl", ({"_id": id, **facts} for id, facts in pool.items()))
    rows = [f"{query}\t{image}\t{grade}\n" for query in judged.qrels for image, grade in judged.qrels[query].items()]
    text = "query-id\tcorpus-id\tscore\n" + "".join(rows)
    write_whole(folder / "qrels" / f"{split}.tsv", lambda file: file.write(text.encode()))


def _write_lines(path: Path, rows: Iterable[Columns]) -> None:
    lines = (json.dumps(row, ensure_ascii=False, default=str).encode() + b"\n" for row in rows)
    write_whole(path, lambda file: file.writelines(lines))


def _files(folder: Path, table: str, split: str) -> list[Path]:
    """A table's files: `queries.jsonl`, `qrels/test.tsv`, `corpus/test-00000-of-00002.parquet`, …"""
    names = [f"{table}.{ending}" for ending in ENDINGS]
    names += [f"{table}/{split}{shard}.{ending}" for ending in ENDINGS for shard in ("", "-*")]
    if table != "qrels":
        names += [f"{table}/*.{ending}" for ending in ENDINGS]
    return next((found for name in names if (found := sorted(folder.glob(name)))), [])


def _required(folder: Path, table: str, split: str) -> list[Path]:
    files = _files(folder, table, split)
    if not files:
        raise UsageError(
            f"there is no table {table} for {split} in {folder}; expected {table}.jsonl or {table}/{split}.tsv"
        )
    return files


def _rows(files: list[Path]) -> Iterator[tuple[str, Columns]]:
    for path in files:
        if path.suffix != ".parquet":
            plain_columns = None
        else:
            with opened_parquet(path) as file:
                plain_columns = [
                    field.name for field in file.schema_arrow if str(field.type).startswith((*PLAIN, "int", "uint"))
                ]
        for line, row in rows_of(path, plain_columns):
            id = required(path, line, row, *ID)
            yield id, {name: value for name, value in row.items() if name not in ID}
