"""Similarity matrices as rankings: an .npz of `scores` with the ids of its rows and columns, or of the k best ids.

Whole: `scores` (queries, images), `queries`, `images`. The k best: `ids` (queries, k) best first, `queries`, and
`scores` (queries, k) if there are any; an id of -1 is a place that nothing filled. Object arrays are refused: they are
pickles, and a pickle runs what it likes.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.storage.atomic import write_whole
from eyespot.storage.text_files import ALLOWANCE, EXPANSION, refuse
from eyespot.types import IdColumn, Run, UsageError

DEPTH = 1000
Arrays = dict[str, NDArray[Any]]


def read_run(path: Path, depth: int = DEPTH) -> Run:
    """The `depth` best of each row of the matrix, equal scores in the order of the columns, or the k best as given."""
    arrays = arrays_of(path)
    run = _run_of_ids(path, arrays) if "ids" in arrays else _best_of_matrix(path, arrays, depth)
    run.header["source"] = str(path)
    return run


def read_run_of_images(path: Path, depth: int = DEPTH) -> Run:
    """The same matrix read the other way: its columns are the queries (image→text of a text→image matrix)."""
    arrays = arrays_of(path)
    if "ids" in arrays:
        refuse(path, "", "holds the k best of each query, which cannot be read the other way; give the whole matrix")
    turned = {"queries": arrays.get("images"), "images": arrays.get("queries")}
    arrays |= {name: array for name, array in turned.items() if array is not None}
    run = _best_of_matrix(path, {**arrays, "scores": arrays.get("scores", np.zeros(0)).T}, depth)
    run.header["source"] = str(path)
    return run


def ranked_matrix(queries: list[str], images: list[str], scores: NDArray[Any], depth: int = DEPTH) -> Run:
    """A run of the `depth` best columns of each row of scores (queries, images)."""
    best = (
        np.stack([_best(row, depth) for row in scores]) if len(scores) else np.zeros((0, 0), np.int64)
    )  # (queries, k)
    query = np.repeat(np.arange(len(queries)), best.shape[1])  # (queries · depth,)
    ranked = np.take_along_axis(scores, best, 1).ravel()
    run = Run.from_columns(IdColumn(_objects(queries), query), IdColumn(_objects(images), best.ravel()), ranked)
    if best.shape[1] < len(images):
        run.header["depth"] = best.shape[1]
    return run


def _best(row: NDArray[Any], depth: int) -> NDArray[np.int64]:
    """The columns of the `depth` highest scores, best first, equal ones in the order of the columns."""
    if depth >= len(row):
        return np.argsort(-row, kind="stable")
    last = np.partition(row, len(row) - depth)[len(row) - depth]
    above = np.flatnonzero(row > last)
    best = np.concatenate([above, np.flatnonzero(row == last)[: depth - len(above)]])
    return best[np.argsort(-row[best], kind="stable")]


def write_run(run: Run, path: Path) -> None:
    """The k best as `queries`, `ids` and `scores`; `UsageError` if the rankings differ in length."""
    lengths = set(np.diff(run.offsets).tolist()) or {0}
    if len(lengths) > 1:
        raise UsageError(f"{path}: an npz holds rankings of one length, these have several; write .parquet or .json")
    shape = (len(run), lengths.pop())
    arrays: dict[str, Any] = {
        "queries": np.array(run.queries, dtype=np.str_),
        "ids": np.array(run.image.tolist(), dtype=np.str_).reshape(shape),
        "scores": run.score.reshape(shape),
    }
    write_whole(path, lambda file: np.savez_compressed(file, allow_pickle=False, **arrays))


def ids_in_npy(path: Path, kinds: str, what: str) -> list[Any]:
    """The row of ids in an .npy file; `UsageError` for another kind of numbers or text, and for Python objects."""
    try:
        ids = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (ValueError, OSError, EOFError) as error:
        refuse(path, "", f"is not an array of ids ({error}); expected one row of {what}")
    if ids.ndim != 1 or ids.dtype.kind not in kinds:
        refuse(path, "", f"has {ids.dtype} of shape {ids.shape}; expected one row of {what}")
    found: list[Any] = ids.tolist()
    return found


def arrays_of(path: Path) -> Arrays:
    """The arrays of an .npz; `UsageError` for pickles, damage, and a file that unfolds beyond all measure."""
    try:
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                unfolded = sum(member.file_size for member in archive.infolist())
            if unfolded > ALLOWANCE + EXPANSION * path.stat().st_size:
                refuse(path, "", f"unfolds to more than {EXPANSION} times its size; unpack it yourself if you trust it")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}") from None
    except (ValueError, OSError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        text = " ".join(str(error).split())
        if "pickle" in text.lower() or "object" in text.lower():
            refuse(path, "", "holds Python objects, which are not read; save ids as text and scores as numbers")
        refuse(path, "", f"is not an .npz file ({text or type(error).__name__})")


def _run_of_ids(path: Path, arrays: Arrays) -> Run:
    """The k best of each query as given; without scores by their places."""
    ids, queries = _array(path, arrays, "ids", "(queries, k)"), _names(path, arrays, "queries")
    scores = arrays.get("scores")
    if ids.ndim != 2 or len(ids) != len(queries) or (scores is not None and scores.shape != ids.shape):
        shapes = f"ids {ids.shape}, scores {None if scores is None else scores.shape}"
        refuse(path, "", f"has {shapes} for {len(queries)} queries; expected (queries, k) for both")
    if scores is None:
        scores = np.broadcast_to(-np.arange(1.0, ids.shape[1] + 1), ids.shape)
    filled = ids != (-1 if ids.dtype.kind == "i" else "")  # (queries, k)
    _refuse_infinite(path, scores[filled])
    values, codes = np.unique(ids[filled], return_inverse=True)
    query = np.broadcast_to(np.arange(len(ids))[:, None], ids.shape)[filled]
    try:
        return Run.from_columns(IdColumn(_objects(queries), query), IdColumn(_texts(values), codes), scores[filled])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _best_of_matrix(path: Path, arrays: Arrays, depth: int) -> Run:
    scores = _array(path, arrays, "scores", "(queries, images)")
    queries, images = (_names(path, arrays, name) for name in ("queries", "images"))
    expected = (len(queries), len(images))
    if scores.shape != expected:
        refuse(path, "", f"has scores of shape {scores.shape}; its queries and images make {expected}")
    _refuse_infinite(path, scores)
    return ranked_matrix(queries, images, scores.astype(np.float64, copy=False), depth)


def _array(path: Path, arrays: Arrays, name: str, shape: str) -> NDArray[Any]:
    if name not in arrays:
        refuse(path, "", f"has no array {name!r} {shape}; there are: {', '.join(arrays) or 'none'}")
    return arrays[name]


def _names(path: Path, arrays: Arrays, name: str) -> list[str]:
    ids = _array(path, arrays, name, "of ids")
    if ids.ndim != 1 or ids.dtype.kind not in "iuU":
        refuse(path, "", f"has {ids.dtype} of shape {ids.shape} as {name}; expected one row of ids, text or numbers")
    names: list[str] = _texts(ids).tolist()
    first = {id: place for place, id in reversed([*enumerate(names)])}
    if len(first) < len(names):
        twice = next(id for place, id in enumerate(names) if first[id] < place)
        refuse(path, "", f"has the id {twice!r} twice among its {name}; keep one of the two")
    return names


def _texts(values: NDArray[Any]) -> NDArray[np.object_]:
    return values.astype(np.str_).astype(object)


def _objects(values: list[str]) -> NDArray[np.object_]:
    return np.array([*values, None], dtype=object)[:-1]


def _refuse_infinite(path: Path, scores: NDArray[Any]) -> None:
    if scores.dtype.kind not in "fiu" or not np.isfinite(scores).all():
        refuse(path, "", f"has scores that are not finite numbers ({scores.dtype}); clean them first")
