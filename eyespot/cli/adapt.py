"""`eyespot adapt`: QuARI for people who have only arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import note
from eyespot.types import UsageError


def run(
    checkpoint: str = typer.Argument(help="A QuARI checkpoint: its folder, or hub:OWNER/NAME."),
    queries: Path = typer.Option(..., help="Vectors of the queries, .npy (queries, dim)."),
    gallery: Path = typer.Option(..., help="Vectors of the images, .npy (images, dim); memory-mapped."),
    k: int = typer.Option(50, "-k", min=1, help="The number of images per query."),
    out: Path = typer.Option(
        ..., metavar="FILE.npz", help="The output: ids, scores and refined_query, one row per query."
    ),
) -> None:
    """Search arrays with a QuARI adapter: each query transforms the space in its own way."""
    import numpy as np

    from eyespot import rooms
    from eyespot.adapters.quari.scoring import AdaptedIndex
    from eyespot.gallery.files import map_array
    from eyespot.storage.files import write_whole

    adapter = rooms.load("adapters", f"quari:{checkpoint}")
    asked, images = map_array(queries), map_array(gallery)
    if images.shape[1] != asked.shape[1]:
        raise UsageError(f"{queries} has {asked.shape[1]} components, {gallery} {images.shape[1]}; they must be alike")
    adapted = adapter.adapt(np.asarray(asked, np.float32))
    found = AdaptedIndex([images]).search(adapted, k)
    arrays: dict[str, Any] = {
        "ids": found.rows,
        "scores": found.scores,
        "refined_query": np.array([view.query for view in adapted]),
    }
    write_whole(out, lambda file: np.savez(file, allow_pickle=False, **arrays))
    note(f"{len(adapted)} queries, the best {found.rows.shape[1]} of {len(images)} images each, in {out}")
