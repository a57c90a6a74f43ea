"""`eyespot names`: names in other languages, synonyms and higher taxa, by which a search by words finds more."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import SHOWN, conclude, exit_if_failed, print_result, progress_bar, warn, warn_all
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import UsageError


def run(
    files: list[Path] = typer.Argument(
        None,
        help="Tables of names: of iNaturalist or GBIF (a folder or .zip, too), or equal names on each row of a CSV.",
    ),
    gallery: Path = gallery_option("The gallery that gets the names."),
    remove: list[str] = typer.Option(
        None, "--remove", metavar="NAME", help="Forget the names of this file; repeatable."
    ),
    json: bool = json_option(),
) -> None:
    """Give a gallery names: "garza", "heron" and "Ardeidae" become one query. Without a file, list what it has."""
    from eyespot.gallery.taxonomy.name_index import NameIndex, add_names, remove_names
    from eyespot.gallery.view import Gallery

    place = Gallery(gallery_here(gallery, writes=True)).path
    if files and len({file.resolve().name for file in files}) < len(files):
        raise UsageError("two of these files have one name; a gallery keeps names by it, so rename one")
    for name in remove or ():
        remove_names(place, name)
    summaries = []
    for file in files or ():
        with progress_bar("rows") as progress:
            summaries.append(add_names(place, file.resolve(), progress))
    index = NameIndex.of(place)
    there = [] if index is None else index.files
    failed = sum(summary.failed for summary in summaries)
    failures = [failure._asdict() for summary in summaries for failure in summary.failures]
    fields = {"files": [file._asdict() for file in there], "failed": failed, "failures": failures}
    print_result(fields, (f"{known.name}: {known.names:,} names of {known.taxa:,} taxa" for known in there), json)
    if not there:
        conclude("the gallery has no names; give it some with: eyespot names FILE")
    for summary in summaries:
        warn_all(f"left out: {one.file}:{one.line} {one.reason}" for one in summary.failures[:SHOWN])
        if summary.failed > SHOWN:
            warn(f"and {summary.failed - SHOWN:,} more rows of {summary.file.name}; --json lists them")
    exit_if_failed(failed)
