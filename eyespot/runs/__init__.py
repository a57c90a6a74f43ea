"""Rankings and judgements on disk, one file each format.

`read_run` and `read_qrels` tell the format by the file's name and, where that is not enough, by what is in it;
`--format` names it. A colon adds which part is meant: `karpathy:i2t`, `inquire:image_path`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from eyespot.runs import beir, circo, eccv, ilias, inquire, json_scores, karpathy, matrix, reranking, rmir, table, trec
from eyespot.runs.judged import Columns, JudgedQueries, queries_of_table
from eyespot.storage.tables import opened_parquet, rows_of
from eyespot.storage.text_files import data_of
from eyespot.types import Qrels, Run, UsageError
from eyespot.types.kinds import checked_names

__all__ = [
    "QRELS_FORMATS",
    "RUN_FORMATS",
    "read_judged",
    "read_qrels",
    "read_queries",
    "read_run",
    "write_qrels",
    "write_run",
]

RUN_FORMATS = {
    "trec": "query Q0 image rank score tag, a line each hit",
    "json": "{query: {image: score}}, {query: [image, …]} or [{query, image, score}, …], also gzipped (ILIAS, CIRCO)",
    "parquet": "columns query, image, score, with how the run was made",
    "rows": "rows of query, image and score: .jsonl, or .csv and .tsv with the names of their columns",
    "npz": "a similarity matrix, or the k best ids of each query; npz:i2t reads the matrix the other way",
    "circo": "{query: [image, …]}, the first 50 (write; reads as json)",
    "inquire-rerank": "the order of the candidates in INQUIRE-Rerank's parquet",
    "rerank-set": "the candidates of a folder that `eyespot build rerank` made; rerank-set:SPLIT",
}
QRELS_FORMATS = {
    "trec": "query 0 image grade, a line each judgement",
    "json": "{query: {image: grade}} or {query: [relevant image, …]}",
    "parquet": "columns query, image, grade",
    "rows": "rows of query, image and grade: .jsonl, or .csv and .tsv with the names of their columns",
    "beir": "BEIR's or MTEB's folder, or its qrels file; beir:SPLIT",
    "inquire": "INQUIRE's annotations; inquire:image_path names images by their path",
    "inquire-rerank": "INQUIRE-Rerank's parquet from the hub",
    "ilias": "ILIAS's folder image_ids",
    "karpathy": "COCO's or Flickr30K's split JSON, or FG captions; karpathy:t2i, karpathy:i2t",
    "eccv": "eccv-caption's folder of JSON; eccv:t2i, eccv:i2t",
    "cxc": "the same for CxC",
    "pm": "the same for the plausible matches of PMRP",
    "coco": "the same for COCO 5k's own pairs",
    "circo": "CIRCO's annotations",
    "rmir": "an RMIR folder",
    "rerank-set": "a folder that `eyespot build rerank` made; rerank-set:SPLIT",
}


TABLES = (".csv", ".tsv", ".jsonl")
PARQUETS = ("*.parquet", "data/*.parquet")  # where the hub's layout has them


def read_run(path: Path | str, format: str | None = None) -> Run:
    """A run from disk; `UsageError` in one sentence that names the file, the line and what was expected there."""
    with _hinting_at_a_swap(Path(path), lambda: _read_qrels(Path(path)), "judgements"):
        return _read_run(Path(path), format)


def _read_run(path: Path, format: str | None = None) -> Run:
    name, _, part = (format or _run_format(path)).partition(":")
    if name == "rerank-set":
        return _candidates(reranking.read(path, part or None))
    readers: dict[str, Callable[[Path], Run]] = {
        "trec": trec.read_run,
        "json": json_scores.read_run,
        "circo": json_scores.read_run,
        "parquet": table.read_run,
        "rows": lambda path: json_scores.run_of_rows(path, rows_of(path)),
        "npz": matrix.read_run,
        "npz:i2t": matrix.read_run_of_images,
        "inquire-rerank": lambda path: _candidates(inquire.read_rerank(_parquets(path))),
    }
    reader: Callable[[Path], Run] = _chosen(readers, f"{name}:{part}" if part else name, RUN_FORMATS)
    return reader(path)


def read_qrels(path: Path | str, format: str | None = None) -> Qrels:
    """Judgements from disk; `UsageError` in one sentence that names the file, the line and what was expected there."""
    with _hinting_at_a_swap(Path(path), lambda: _read_run(Path(path)), "a ranking"):
        return _read_qrels(Path(path), format)


def _read_qrels(path: Path, format: str | None = None) -> Qrels:
    name, _, part = (format or _qrels_format(path)).partition(":")
    collections = _collections(path, part)
    if name in collections:
        return collections[name]().qrels
    readers: dict[str, Callable[[Path], Qrels]] = {
        "trec": trec.read_qrels,
        "json": json_scores.read_qrels,
        "parquet": table.read_qrels,
        "rows": lambda path: json_scores.qrels_of_rows(path, rows_of(path)),
        "beir": partial(beir.read_qrels, split=part or "test"),
        "inquire": partial(inquire.read_qrels, image=part or "image_id"),
        **{truth: partial(eccv.read_qrels, truth=truth, direction=part or "t2i") for truth in eccv.FILES},
    }
    reader: Callable[[Path], Qrels] = _chosen(readers, name, QRELS_FORMATS)
    return reader(path)


@contextmanager
def _hinting_at_a_swap(path: Path, other: Callable[[], object], what: str) -> Iterator[None]:
    """Let the error of this block say if the file reads well as the `other` thing."""
    try:
        yield
    except UsageError as error:
        with suppress(UsageError, OSError):
            other()
            error.args = (f"{error}; as {what} it reads well: are two files swapped?",)
        raise


def read_judged(path: Path | str, format: str | None = None) -> JudgedQueries:
    """Judgements with the queries and images that the same files list; of a format that lists none both are empty."""
    path = Path(path)
    stated = format or _qrels_format(path)
    name, _, part = stated.partition(":")
    collections = _collections(path, part)
    if path.is_dir():
        collections["beir"] = lambda: beir.read(path, part or "test")
        collections |= dict.fromkeys(eccv.FILES, lambda: eccv.read(path, name, part or "t2i"))
    return collections[name]() if name in collections else JudgedQueries({}, read_qrels(path, stated))


def _collections(path: Path, part: str) -> dict[str, Callable[[], JudgedQueries]]:
    """The formats whose files are always read as a whole."""
    ways = {"t2i": karpathy.text_to_image, "i2t": karpathy.image_to_text}
    return {
        "inquire-rerank": lambda: inquire.read_rerank(_parquets(path)),
        "ilias": lambda: ilias.read(path),
        "karpathy": lambda: _chosen(ways, part or "t2i", ways)(karpathy.read(path)),
        "circo": lambda: circo.read(path),
        "rmir": lambda: rmir.read(path),
        "rerank-set": lambda: reranking.read(path, part or None),
    }


def read_queries(place: Path | str) -> dict[str, Columns]:
    """Queries by id, with `text` where a column tells it and all other columns as they are.

    `place` is a csv, tsv, jsonl or parquet table with a column of ids (query_id, id …), or a folder of a layout that
    lists its queries. Raises `UsageError` for a query that stands twice and for one without an id.
    """
    place = Path(place)
    if not place.is_dir():
        return queries_of_table(place)
    found = read_judged(place).queries
    if not found:
        raise UsageError(f"{place} lists no queries; give the csv, jsonl or parquet file that does")
    return found


def write_run(run: Run, path: Path | str, format: str | None = None) -> None:
    """A run, or the hits of a search, to disk, whole or not at all; without a format by its ending, else TREC."""
    rooms = {"trec": trec, "json": json_scores, "parquet": table, "npz": matrix, "circo": circo}
    _chosen(rooms, format or _written(Path(path)), rooms).write_run(getattr(run, "run", run), Path(path))


def write_qrels(qrels: Qrels, path: Path | str, format: str | None = None) -> None:
    """Judgements to disk, whole or not at all; without a format by the name's ending, TREC if it says nothing."""
    rooms = {"trec": trec, "json": json_scores, "parquet": table}
    _chosen(rooms, format or _written(Path(path)), rooms).write_qrels(qrels, Path(path))


def _candidates(judged: JudgedQueries) -> Run:
    assert judged.candidates is not None
    return judged.candidates


def _chosen(there: dict[str, Any], name: str, named: Iterable[str]) -> Any:
    if name not in there:
        raise UsageError(f"no format {name!r} here; there are: {', '.join(named)}")
    return there[name]


def _by_ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return next((format for format in ("parquet", "npz", "json") if name.endswith(f".{format}")), "trec")


def _written(path: Path) -> str:
    """The format of what is written to `path`; `UsageError` for a table, which would not be read again."""
    if path.name.lower().removesuffix(".gz").endswith(TABLES):
        raise UsageError(f"{path} names a table, which eyespot only reads; write .parquet, .json or .txt")
    return _by_ending(path)


def _run_format(path: Path) -> str:
    if path.is_dir():
        return "rerank-set" if reranking.is_layout(path) else "inquire-rerank"
    name, by_ending = path.name.lower().removesuffix(".gz"), _by_ending(path)
    if name.endswith((".csv", ".tsv")) and not table.columns_of(path).isdisjoint(table.QUERY):
        return "rows"
    by_ending = "rows" if name.endswith(".jsonl") else by_ending
    return "inquire-rerank" if by_ending == "parquet" and _is_rerank(path) else by_ending


def _qrels_format(path: Path) -> str:
    if path.is_dir():
        formats = {"rerank-set": reranking, "ilias": ilias, "eccv": eccv, "rmir": rmir, "beir": beir}
        found = next((format for format, room in formats.items() if room.is_layout(path)), None)
        if found is None and any(_is_rerank(file) for pattern in PARQUETS for file in sorted(path.glob(pattern))[:1]):
            return "inquire-rerank"
        if found is None:
            raise UsageError(
                f"{path} has no layout that eyespot knows; name it with --format: {', '.join(QRELS_FORMATS)}"
            )
        return found
    name, by_ending = path.name.lower().removesuffix(".gz"), _by_ending(path)
    if by_ending == "json":
        # By the first characters: CIRCO's is a list; Karpathy's has images and a data set; FG's lists texts
        head = data_of(path)[:4096].decode("utf-8-sig", "replace").lstrip()
        if head.startswith("["):
            return "circo" if set(re.findall(r'"([^"]*)"\s*:', head)).isdisjoint(table.QUERY) else "json"
        key, _, value = head.removeprefix("{").strip().partition(":")
        captions = value.lstrip(" [\n").startswith('"') and " " in value.strip(" [\n").partition('",')[0]
        return "karpathy" if key in ('"images"', '"dataset"') or (captions and "[" in value[:3]) else "json"
    if by_ending == "parquet":
        return "inquire-rerank" if _is_rerank(path) else "parquet"
    return _table_format(path) if name.endswith(TABLES) else "trec"


def _table_format(path: Path) -> str:
    """The format of judgements in a table, by the names of its columns."""
    columns = table.columns_of(path)
    # `relevant` beside INQUIRE's own columns is that of its annotations; any other column of grades is read as such
    graded = columns & set(table.GRADE) - ({"relevant"} if {"query_id", "image_id"} <= columns else set())
    if graded and not columns.isdisjoint(table.QUERY):
        return "rows"
    return "inquire" if ".csv" in path.name.lower() else "trec"


def _is_rerank(path: Path) -> bool:
    with opened_parquet(path) as file:
        names = set(file.schema_arrow.names)
        return {"query", "relevant"} < names and not names.isdisjoint(inquire.HUB_PAIR[:2])


def _parquets(path: Path) -> list[Path]:
    found = [path] if path.is_file() else [file for pattern in PARQUETS for file in sorted(path.glob(pattern))]
    if not found:
        raise UsageError(f"there are no parquet files in {path}; give the folder that holds them, or one file")
    return found


globals().update(checked_names(globals(), __all__))
