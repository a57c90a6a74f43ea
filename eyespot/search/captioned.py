"""A gallery's pictures and what its labels say of them, as pairs of vectors to train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.opened import View
from eyespot.types import Encoder, NothingFound, UsageError, Vectors

AT_ONCE = 256  # texts


class Captioned(NamedTuple):
    """Texts (n, dim), images (m, dim), the row of each text's image (n,), and the images' ids (m,)."""

    texts: Vectors
    images: Vectors
    of: NDArray[np.int64]
    ids: list[str]


def pictures(view: View) -> tuple[Vectors, list[str]]:
    """The vectors (m, dim) and ids (m,) of all pictures that are there; `NothingFound` if none is."""
    if not view.live.any():
        raise NothingFound(f"{view.gallery.path} has no picture with vectors of {view.space.encoder}")
    ids = [str(name) for shard in view.shards for name in disk.read_items(shard, ["id"])["id"].to_pylist()]
    images = np.concatenate([np.asarray(block, np.float32) for block in view.blocks])[view.live]
    return images, [name for name, live in zip(ids, view.live.tolist(), strict=True) if live]


def captioned(view: View, encoder: Encoder, column: str) -> Captioned:
    """Every picture with each text that a column has for it; `UsageError` without such a column."""
    images, ids = pictures(view)
    found = [(row, text) for row, text in _texts(view, column) if text.strip()]
    if not found:
        raise NothingFound(f"no picture of {view.gallery.path} has a text in its column {column}")
    rows, texts = zip(*found, strict=True)
    parts = [encoder.encode_texts(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
    return Captioned(np.concatenate(parts), images, np.array(rows, np.int64), ids)


def _texts(view: View, column: str) -> Iterator[tuple[int, str]]:
    """Texts with the number of their picture among those that are there; a cell may hold one text or several."""
    numbers = (np.cumsum(view.live) - 1).tolist()
    for row, cell in enumerate(_cells(view, column)):
        if view.live[row] and cell is not None:
            yield from ((numbers[row], str(text)) for text in (cell if isinstance(cell, list) else [cell]))


def _cells(view: View, column: str) -> Iterator[object]:
    named: set[str] = set()
    tables = [disk.read_items(shard) for shard in view.shards]
    for table in tables:
        named |= set(table.column_names)
    if column not in named:
        raise UsageError(f"the gallery has no column {column}; it has: {', '.join(sorted(named))}")
    for table in tables:
        yield from table[column].to_pylist() if column in table.column_names else [None] * table.num_rows
