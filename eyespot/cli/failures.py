"""`eyespot failures`: what could not be read, and why."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json


def run(
    gallery: Path = gallery_option("The gallery."),
    json: bool = json_option(),
) -> None:
    """List the pictures, folders and label rows that could not be read, with the reason."""
    from eyespot.gallery import disk
    from eyespot.gallery.photos.sources import full_path
    from eyespot.gallery.record import Ledger

    place = gallery_here(gallery)
    disk.read_header(place)
    ledger = Ledger(place / "ledger.sqlite")
    roots = ledger.roots()
    rows = [{"path": full_path(roots[f.root], f.path), "reason": f.reason} for f in ledger.failures()]
    ledger.close()
    if json:
        as_json(rows)
    else:
        for row in rows:
            typer.echo(f"{row['path']}\t{row['reason']}")
