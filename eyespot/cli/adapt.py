"""`eyespot adapt`: QuARI for people who have only arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import refuse_over_input, warn
from eyespot.types import EyespotError, UsageError, quantity

AT_ONCE = 1 << 16  # rows checked at once


def run(
    checkpoint: str = typer.Argument(help="A QuARI checkpoint (its folder, or hub:OWNER/NAME), or linear:FILE."),
    queries: Path = typer.Option(..., help="Vectors of the queries, .npy (queries, dim)."),
    gallery: Path = typer.Option(..., help="Vectors of the images, .npy (images, dim); memory-mapped."),
    k: int = typer.Option(50, "-k", min=1, help="The number of images per query."),
    out: Path = typer.Option(..., metavar="FILE.npz", help="The output: ids, scores, refined_query; a row per query."),
) -> None:
    """Search arrays of floats or int8 with an adapter: under QuARI each query transforms the space in its own way."""
    import numpy as np

    from eyespot.adapters.linear import Linear
    from eyespot.adapters.quari.scoring import AdaptedIndex
    from eyespot.kernels.codes import NotFiniteVectors
    from eyespot.search.adapted import adapter_named
    from eyespot.search.linear_adapted import LinearIndex
    from eyespot.storage.atomic import write_whole

    refuse_over_input(out, queries, gallery)
    adapter = adapter_named(checkpoint)
    matrix, images = _vectors(queries), _vectors(gallery)
    if images.shape[1] != matrix.shape[1]:
        raise UsageError(f"{queries} has {matrix.shape[1]} components, {gallery} {images.shape[1]}; they must be alike")
    if adapter.caution is not None:
        warn(adapter.caution)
    vectors = np.asarray(matrix, np.float32)  # (queries, dim)
    try:
        if isinstance(adapter, Linear):
            found, seen = LinearIndex(adapter, [images]).search(vectors, k), adapter.apply(vectors)
        else:
            views = adapter.adapt(vectors)
            found, seen = AdaptedIndex([images]).search(views, k), np.array([view.query for view in views])
    except NotFiniteVectors:
        starts = range(0, len(images), AT_ONCE)
        lost = (at + np.flatnonzero(~np.isfinite(images[at : at + AT_ONCE]).all(axis=1)) for at in starts)
        row = next(int(rows[0]) for rows in lost if len(rows))
        way_out = "embed it again, or leave it out"
        raise UsageError(f"row {row} (counted from 0) of {gallery} holds NaN or infinity; {way_out}") from None
    # ids and scores (queries, k), and the queries as the adapter has them
    arrays: dict[str, Any] = {"ids": found.rows, "scores": found.scores, "refined_query": seen}
    write_whole(out, lambda file: np.savez(file, allow_pickle=False, **arrays))
    warn(f"{quantity(len(matrix), 'query')}, the best {found.rows.shape[1]} of {len(images)} each, in {out}")


def _vectors(path: Path) -> Any:
    """Rows of float32 or float16 as they lie on disk; of other floats and of int8 a copy in float32.

    Only the direction of a row counts, so int8 codes are vectors if they have no offset and no scale of a component.
    `UsageError` for a file that is missing, or that is not an array of rows of numbers like these.
    """
    import numpy as np

    from eyespot.gallery.files import map_array

    if not path.is_file():
        raise UsageError(f"there is no file {path}; save the vectors there with numpy.save")
    try:
        mapped = map_array(path, kinds="fiubcSU")
    except EyespotError as error:  # a gallery's own file would be damaged; this one is an argument
        raise UsageError(str(error)) from error
    if mapped.dtype in (np.float16, np.float32):
        return mapped
    if mapped.dtype.kind != "f" and mapped.dtype != np.int8:
        raise UsageError(f"{path} holds {mapped.dtype}; save floats, and of codes what they stand for, as float32")
    with np.errstate(over="ignore"):
        return mapped.astype(np.float32)
