"""`eyespot failures`: what could not be read, and why."""

from __future__ import annotations

from pathlib import Path

from eyespot.cli.console import escaped, print_result
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import UsageError


def run(gallery: Path = gallery_option("The gallery."), json: bool = json_option()) -> None:
    """List the pictures, folders and label rows that could not be read, with the reason."""
    failures_gallery = gallery_here(gallery)
    from eyespot.gallery import disk
    from eyespot.gallery.reading import reading
    from eyespot.gallery.texts import failures
    from eyespot.photos.places import full_path

    disk.read_header(failures_gallery)
    if (failures_gallery / disk.FETCHED).is_file():
        raise UsageError("what could not be read is known where the gallery was indexed and published; ask there")
    with reading(failures_gallery) as ledger:
        roots, every = ledger.roots(), [*ledger.failures(), *failures(ledger)]
        rows = [{"path": full_path(roots[f.root], f.path), "reason": f.reason} for f in every]
    print_result(rows, (f"{escaped(row['path'])}\t{escaped(row['reason'])}" for row in rows), json)
