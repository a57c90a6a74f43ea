"""Stage 0, the seed set: photos in clusters of alike ones, and from each cluster a few, so that no scene prevails.

RMIR, section 3.1: 2,018,175 photos in 50,000 clusters, ten from each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.curate._world import PhotoWorld
from eyespot.gallery.view import View
from eyespot.kernels.kmeans import KMeans, drawn_from_each
from eyespot.parallel import batches
from eyespot.pipelines import Context, Records
from eyespot.storage.atomic import write_whole
from eyespot.types import NothingFound

NOT_DRAWN, NO_VECTOR = "not drawn from its cluster", "no vector or no picture"
TOLD = "clusters.json"
AT_ONCE = 8192
COLUMNS = {
    "kept": ("id", "path", "cluster", "description", "labels"),
    "dropped": ("id", "reason", "detail", "path"),
}


@dataclass(frozen=True)
class SeedSettings:
    """`clusters` None makes no clusters and takes every photo; else `each` photos are drawn from a cluster.

    Centroids are learned from `sample` photos where that is fewer than all. A photo's description is the first of the
    columns `descriptions` that is filled; `labels` are columns that a demonstration may read as well.
    """

    clusters: int | None = None
    each: int = 10
    iterations: int = 10
    sample: int | None = None
    space: str | None = None
    descriptions: tuple[str, ...] = ("description", "caption", "caption_1", "text", "title")
    labels: tuple[str, ...] = ()


def draw(world: PhotoWorld, settings: SeedSettings, folder: Path, context: Context) -> int:
    """Fill a step's folder with the drawn and the other photos; how many there are in all."""
    view = world.view(settings.space)
    rows = np.flatnonzero(view.live)  # (photos,)
    if not len(rows):
        raise NothingFound(f"{world.gallery} has no photos yet; add some with: eyespot index PHOTOS -g {world.gallery}")
    labels = _labels(world, rows, settings, folder, context)
    taken = drawn_from_each(labels, settings.each, context.seed) if settings.clusters else np.arange(len(rows))
    chosen = np.zeros(len(labels), bool)
    chosen[taken] = True
    _write(folder / "kept.parquet", _drawn(view, rows[chosen], labels[chosen], settings))
    others = [(rows[~chosen], NOT_DRAWN), (np.flatnonzero(~view.live), NO_VECTOR)]
    _write(folder / "dropped.parquet", _others(view, others))
    return int(view.starts[-1])


def work(world: PhotoWorld, settings: SeedSettings) -> Any:
    """The same as the work of a step."""

    def fill(_records: Records, folder: Path, context: Context) -> int:
        return draw(world, settings, folder, context)

    return fill


# -- clusters ---------------------------------------------------------------------------------------------------


def _labels(
    world: PhotoWorld, rows: NDArray[np.int64], settings: SeedSettings, folder: Path, context: Context
) -> NDArray[np.int32]:
    """The cluster of each photo, (photos,); what clustering came to is told in the step's folder."""
    if settings.clusters is None:
        return np.arange(len(rows), dtype=np.int32)
    how = KMeans(
        min(settings.clusters, len(rows)), settings.iterations, context.seed, unit=True, sample=settings.sample
    )
    view, scratch = world.view(settings.space), folder / "vectors.npy"
    found = world.clustering(_gathered(view, rows, scratch), how, context.tell)
    scratch.unlink(missing_ok=True)
    note = {"photos": len(rows), "clusters": how.clusters, "inertia": float(found.inertia), "space": view.space.encoder}
    write_whole(folder / TOLD, lambda file: file.write(json.dumps(note).encode()))
    return found.labels


def _gathered(view: View, rows: NDArray[np.int64], scratch: Path) -> NDArray[Any]:
    """The rows' vectors as one array on the disk, (rows, dim), so that millions need no memory."""
    if len(view.blocks) == 1 and len(rows) == len(view.blocks[0]):
        return view.blocks[0]
    shape = len(rows), view.space.dim
    whole = np.lib.format.open_memmap(scratch, "w+", view.blocks[0].dtype, shape)
    at = 0
    for start, block in zip(view.starts.tolist(), view.blocks, strict=False):
        mine = rows[(rows >= start) & (rows < start + len(block))] - start
        for part in range(0, len(mine), AT_ONCE):
            some = mine[part : part + AT_ONCE]
            whole[at : at + len(some)] = block[some]
            at += len(some)
    return np.asarray(whole)


# -- tables -----------------------------------------------------------------------------------------------------


def _drawn(
    view: View, rows: NDArray[np.int64], labels: NDArray[np.int32], settings: SeedSettings
) -> Iterator[dict[str, Any]]:
    for some in batches(zip(rows.tolist(), labels.tolist(), strict=True), AT_ONCE):
        facts = view.facts([row for row, _ in some])
        for (_, label), its in zip(some, facts, strict=True):
            description = next(iter(_column_texts(its, settings.descriptions)), "")
            labelled = "; ".join(_column_texts(its, settings.labels))
            place = {"id": its["id"], "path": its["path"] or "", "cluster": label}
            yield {**place, "description": description, "labels": labelled}


def _column_texts(facts: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """What these columns say of a photo, as far as they are filled."""
    return [text for name in columns if (text := str(facts.get(name) or "").strip())]


def _others(view: View, parts: Iterable[tuple[NDArray[np.int64], str]]) -> Iterator[dict[str, Any]]:
    for rows, reason in parts:
        for some in batches(rows.tolist(), AT_ONCE):
            for its in view.facts(some):
                yield {"id": its["id"], "reason": reason, "detail": "", "path": its["path"] or ""}


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """A parquet file of rows of text and whole numbers, some thousands in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = {"cluster": pa.int64()}
    schema = pa.schema([(name, whole.get(name, pa.string())) for name in COLUMNS[path.stem]])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for some in batches(rows, AT_ONCE):
            writer.write_table(pa.Table.from_pylist(some, schema))
