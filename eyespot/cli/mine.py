"""`eyespot mine`: what a training needs to know beforehand of its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._ray import backend_on, refuse_on_cluster
from eyespot.cli.console import print_result, print_summary, progress_bar, refuse_over_input, warn
from eyespot.cli.settings import group, json_option
from eyespot.settings.gallery import ClusterSettings
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.adapters.quari.mining import NeighbourSearch
    from eyespot.search.adapted import SearchBackend

app = group("Prepare data for training.")
INDEXES = ("exact", "ivf")


@app.command("semipositives")
def semipositives(
    cluster: ClusterSettings,
    vectors: Path = typer.Argument(help="Vectors of images (.npy, .pt), or pairs or a gallery as for eyespot train."),
    out: Path = typer.Option(..., "--out", metavar="FILE.npz", help="The output: rows and weights, one row per image."),
    neighbours: int = typer.Option(100, min=1, help="Neighbours that share the softmax."),
    keep: int = typer.Option(2, min=1, help="How many of the nearest neighbours to keep."),
    temperature: float = typer.Option(0.07, help="The temperature of the softmax over similarities."),
    index: str = typer.Option("exact", help="exact, or ivf: approximate and faster over millions; needs [faiss]."),
    encoder: str = typer.Option(None, "-e", "--encoder", help="For a gallery: the encoder whose vectors to use."),
    json: bool = json_option(),
) -> None:
    """Mine the nearest neighbours of each image; run it again to continue."""
    import numpy as np

    import eyespot
    from eyespot.adapters.quari.mining import Mining, mine_into
    from eyespot.adapters.quari.training.reading import read_images
    from eyespot.search.captioned import pictures

    refuse_on_cluster(None, cluster, index)
    refuse_over_input(out, vectors)
    how = Mining(neighbours, keep, temperature)
    if not (vectors / "gallery.toml").is_file():
        images, ids = read_images(vectors)
    else:
        images, ids = pictures(eyespot.open(vectors, encoder).view)
    with progress_bar() as progress, backend_on(cluster) as backend:
        found = mine_into(out, images, ids, searching(index, how, backend), progress)
    alone = int(np.all(found.rows < 0, axis=1).sum())
    print_result({"out": str(out), "images": len(found.rows), "keep": keep, "without": alone}, (), json)
    if alone:
        warn(f"{quantity(alone, 'image has', 'images have')} no semi-positive")
    print_summary(f"semi-positives of {quantity(len(found.rows), 'image')} in {out}")


def searching(index: str, how: Any, backend: SearchBackend | None = None) -> NeighbourSearch:
    """How neighbours are searched; exactly by `backend`, if there is one, in place of this process."""
    from eyespot import rooms
    from eyespot.adapters.quari.mining import NeighbourSearch

    if index not in INDEXES:
        raise UsageError(f"no index {index!r} for mining; there are: {', '.join(INDEXES)}")
    if backend is not None:
        return NeighbourSearch(index, lambda vectors: backend.index([vectors]), how)
    name, options = ("exact", {}) if index == "exact" else ("faiss", {"kind": "ivf"})
    return NeighbourSearch(index, lambda vectors: rooms.load("indexes", name, vectors, **options), how)
