"""`eyespot map`: the photos of a gallery by look in two dimensions, for the page /map."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import print_result, progress_bar
from eyespot.cli.settings import encoder_option, flag, gallery_here, gallery_option, json_option


def run(
    gallery: Path = gallery_option("The gallery to lay out."),
    encoder: str = encoder_option("By the look in this space."),
    again: bool = flag("--again", "Compute the map anew, not only place what is new."),
    seed: int = typer.Option(0, "--seed", min=0, help="A seed; the same one gives the same map."),
    sample: int = typer.Option(
        50_000, "--sample", min=1, help="Compute it with this many photos; the others go to their neighbours."
    ),
    json: bool = json_option(),
) -> None:
    """Make the map of a gallery, or place photos on it that came since; eyespot serve shows it at /map."""
    import numpy as np

    import eyespot
    from eyespot.gallery.layout.stored import LayoutOptions, extend_layout, make_layout, place_of_layout, read_layout

    view = eyespot.open(gallery_here(gallery, writes=True), encoder).view
    known = None if again else read_layout(view)
    with progress_bar("steps") as progress:
        if known is None:
            layout = make_layout(view, LayoutOptions(seed, sample), progress)
        else:
            layout = extend_layout(view, known, progress)
    photos = int((np.isfinite(layout.points[:, 0]) & view.live).sum())
    computed = int(view.live[layout.base].sum())
    made = {
        "file": str(place_of_layout(view)),
        "encoder": view.space.encoder,
        "photos": photos,
        "computed": computed,
        "placed": photos - computed,
        "clusters": int(layout.cells.max(initial=-1)) + 1,
        "trustworthiness": layout.notes.trust,
        "seed": layout.notes.seed,
    }
    line = (
        f"{photos:,} photos on the map: {computed:,} computed, {photos - computed:,} placed by their"
        f" neighbours; {made['clusters']} clusters; trustworthiness {layout.notes.trust:.3f}"
    )
    print_result(made, [line], json)
