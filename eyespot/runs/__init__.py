"""Rankings and judgements on disk, one file each format.

`read_run` and `read_qrels` tell the format by the file's name and, where that is not enough, by what is in it;
`--format` names it. A colon adds which part is meant: `karpathy:i2t`, `inquire:image_path`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.storage.tables import opened_parquet
from eyespot.storage.text_files import data_of
from eyespot.types import Qrels, Run, UsageError

if TYPE_CHECKING:
    from eyespot.runs.judged import JudgedQueries

__all__ = ["QRELS_FORMATS", "RUN_FORMATS", "read_judged", "read_qrels", "read_run", "write_qrels", "write_run"]

RUN_FORMATS = {
    "trec": "query Q0 image rank score tag, a line each hit",
    "json": "{query: {image: score}} or {query: [image, …]}, also gzipped (ILIAS results, CIRCO submissions)",
    "parquet": "columns query, image, score, with how the run was made",
    "npz": "a similarity matrix, or the k best ids of each query; npz:i2t reads the matrix the other way",
    "circo": "{query: [image, …]}, the first 50 (write; reads as json)",
    "inquire-rerank": "the order of the candidates in INQUIRE-Rerank's parquet",
    "rerank-set": "the candidates of a folder that `eyespot build rerank` made; rerank-set:SPLIT",
}
QRELS_FORMATS = {
    "trec": "query 0 image grade, a line each judgement",
    "json": "{query: {image: grade}} or {query: [relevant image, …]}",
    "parquet": "columns query, image, grade",
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


PARQUETS = ("*.parquet", "data/*.parquet")  # where the hub's layout has them


def read_run(path: Path | str, format: str | None = None) -> Run:
    """A run from disk; `UsageError` in one sentence that names the file, the line and what was expected there."""
    path = Path(path)
    name, _, part = (format or _run_format(path)).partition(":")
    readers: dict[str, Callable[[], Run]] = {
        "trec": lambda: _room("trec").read_run(path),
        "json": lambda: _room("json_scores").read_run(path),
        "circo": lambda: _room("json_scores").read_run(path),
        "parquet": lambda: _room("table").read_run(path),
        "npz": lambda: _room("matrix").read_run(path),
        "npz:i2t": lambda: _room("matrix").read_run_of_images(path),
        "inquire-rerank": lambda: _room("inquire").read_rerank(_parquets(path)).candidates,
    }
    if name == "rerank-set":
        return _room("reranking").read(path, part or None).candidates  # type: ignore[no-any-return]
    run: Run = _chosen(readers, f"{name}:{part}" if part else name, RUN_FORMATS)()
    return run


def read_qrels(path: Path | str, format: str | None = None) -> Qrels:
    """Judgements from disk; `UsageError` in one sentence that names the file, the line and what was expected there."""
    path = Path(path)
    name, _, part = (format or _qrels_format(path)).partition(":")
    readers: dict[str, Callable[[], Qrels]] = {
        "trec": lambda: _room("trec").read_qrels(path),
        "json": lambda: _room("json_scores").read_qrels(path),
        "parquet": lambda: _room("table").read_qrels(path),
        "beir": lambda: _room("beir").read_qrels(path, part or "test"),
        "inquire": lambda: _room("inquire").read_qrels(path, part or "image_id"),
        "eccv": lambda: _room("eccv").read_qrels(path, name, part or "t2i"),
    }
    readers |= dict.fromkeys(("cxc", "coco", "pm"), readers["eccv"])
    collections = _collections(path, part)
    if name in collections:
        return collections[name]().qrels
    qrels: Qrels = _chosen(readers, name, QRELS_FORMATS)()
    return qrels


def read_judged(path: Path | str, format: str | None = None) -> JudgedQueries:
    """Judgements with the queries and images that the same files list; of a format that lists none both are empty."""
    from eyespot.runs.judged import JudgedQueries

    path = Path(path)
    stated = format or _qrels_format(path)
    name, _, part = stated.partition(":")
    collections = _collections(path, part)
    if path.is_dir():
        collections["beir"] = lambda: _room("beir").read(path, part or "test")
        for truth in ("eccv", "cxc", "coco", "pm"):
            collections[truth] = lambda: _room("eccv").read(path, name, part or "t2i")
    return collections[name]() if name in collections else JudgedQueries({}, read_qrels(path, stated))


def _collections(path: Path, part: str) -> dict[str, Callable[[], JudgedQueries]]:
    """The formats whose files are always read as a whole."""
    return {
        "inquire-rerank": lambda: _room("inquire").read_rerank(_parquets(path)),
        "ilias": lambda: _room("ilias").read(path),
        "karpathy": lambda: _captions(path, part or "t2i"),
        "circo": lambda: _room("circo").read(path),
        "rmir": lambda: _room("rmir").read(path),
        "rerank-set": lambda: _room("reranking").read(path, part or None),
    }


def write_run(run: Run, path: Path | str, format: str | None = None) -> None:
    """A run to disk, whole or not at all; without a format by the name's ending, TREC if it says nothing."""
    rooms = {"trec": "trec", "json": "json_scores", "parquet": "table", "npz": "matrix", "circo": "circo"}
    path = Path(path)
    _room(_chosen(rooms, format or _by_ending(path), rooms)).write_run(run, path)


def write_qrels(qrels: Qrels, path: Path | str, format: str | None = None) -> None:
    """Judgements to disk, whole or not at all; without a format by the name's ending, TREC if it says nothing."""
    rooms = {"trec": "trec", "json": "json_scores", "parquet": "table"}
    path = Path(path)
    _room(_chosen(rooms, format or _by_ending(path), rooms)).write_qrels(qrels, path)


def _room(name: str) -> Any:
    return import_module(f"eyespot.runs.{name}")


def _chosen(there: dict[str, Any], name: str, named: Iterable[str]) -> Any:
    if name not in there:
        raise UsageError(f"no format {name!r} here; there are: {', '.join(named)}")
    return there[name]


def _by_ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return next((format for format in ("parquet", "npz", "json") if name.endswith(f".{format}")), "trec")


def _run_format(path: Path) -> str:
    if path.is_dir():
        return "rerank-set" if _room("reranking").is_layout(path) else "inquire-rerank"
    by_ending = _by_ending(path)
    return "inquire-rerank" if by_ending == "parquet" and _is_rerank(path) else by_ending


def _qrels_format(path: Path) -> str:
    if path.is_dir():
        formats = {"rerank-set": "reranking", "ilias": "ilias", "eccv": "eccv", "rmir": "rmir", "beir": "beir"}
        found = next((format for format, room in formats.items() if _room(room).is_layout(path)), None)
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
            return "circo"
        key, _, value = head.removeprefix("{").strip().partition(":")
        captions = value.lstrip(" [\n").startswith('"') and " " in value.strip(" [\n").partition('",')[0]
        return "karpathy" if key in ('"images"', '"dataset"') or (captions and "[" in value[:3]) else "json"
    if by_ending == "parquet":
        return "inquire-rerank" if _is_rerank(path) else "parquet"
    if name.endswith(".csv"):
        return "inquire"
    tabled = name.endswith((".tsv", ".jsonl"))
    head = data_of(path)[:4096].decode("utf-8-sig", "replace").partition("\n")[0] if tabled else ""
    return "beir" if "query-id" in head or "query_id" in head else "trec"


def _is_rerank(path: Path) -> bool:
    with opened_parquet(path) as file:
        return {"query", "relevant"} < set(file.schema_arrow.names)


def _parquets(path: Path) -> list[Path]:
    files = [path] if path.is_file() else [file for pattern in PARQUETS for file in sorted(path.glob(pattern))]
    if not files:
        raise UsageError(f"there are no parquet files in {path}; give the folder that holds them, or one file")
    return files


def _captions(path: Path, direction: str) -> JudgedQueries:
    room = _room("karpathy")
    ways = {"t2i": room.text_to_image, "i2t": room.image_to_text}
    found: JudgedQueries = _chosen(ways, direction, ways)(room.read(path))
    return found
