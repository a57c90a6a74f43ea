"""`eyespot import` of facts: what detectors and camera-trap systems know of the photos of a gallery."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._exporting import SHOWN, SOME_FAILED
from eyespot.cli.console import note, print_json, print_summary, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.storage.digests import text_digest
from eyespot.types import NothingFound

if TYPE_CHECKING:
    from eyespot.formats.imports.photo_facts import ImportedFacts, PhotoFacts

DETECTORS = {
    "megadetector": "Import the boxes that MegaDetector found, as facts.",
    "speciesnet": "Import the species and boxes that SpeciesNet predicted, as facts.",
}
SYSTEMS = {
    "camtrap-dp": "Import what a Camtrap DP package says (Agouti, TRAPPER): observations, deployments, rights.",
    "wildlife-insights": "Import what a download of Wildlife Insights says: species, deployments, rights.",
    "timelapse": "Import the fields of a CSV that Timelapse exported.",
}


def add_commands(group: typer.Typer) -> None:
    """The detectors, and a command for each camera-trap system."""
    for name, about in DETECTORS.items():
        group.command(name, help=about)(import_detections)
    for name, about in SYSTEMS.items():
        group.command(name, help=about)(_system(name))


def _photos_option() -> Any:
    return typer.Option(None, "--photos", help="Where its paths begin.", show_default="the file's folder")


def import_detections(
    file: Path = typer.Argument(..., help="The detector's JSON."),
    photos: Path = _photos_option(),
    threshold: float = typer.Option(0.2, "--threshold", min=0, max=1, help="The confidence from which a box counts."),
    gallery: Path = gallery_option("The gallery whose photos were looked at."),
    json: bool = json_option(),
) -> None:
    """Import what a detector found in the photos of a gallery."""
    from eyespot.formats.imports import detections

    _import(detections.read(file, threshold), file, photos or file.parent, gallery_here(gallery, writes=True), json)


def _system(name: str) -> Any:
    def run(
        place: Path = typer.Argument(..., help="The export as it was saved: a folder, a zip, or the CSV of Timelapse."),
        photos: Path = _photos_option(),
        gallery: Path = gallery_option("The gallery with the photos."),
        json: bool = json_option(),
    ) -> None:
        from importlib import import_module

        read = import_module(f"eyespot.formats.imports.{name.replace('-', '_')}").read
        folder = photos or (place if place.is_dir() else place.parent)
        _import(read(place), place, folder, gallery_here(gallery, writes=True), json)

    return run


def _import(photos: Iterable[PhotoFacts], source: Path, folder: Path, gallery: Path, json: bool) -> None:
    """Take in facts and index them, in place of those of the same file; exit code 3 if some entries were refused."""
    from eyespot.formats.imports.photo_facts import take_in

    place = source.absolute()
    # Exports of two cameras have the same file name; a long one would be cut before its digest
    name = f"{place.stem[:40]}-{text_digest(str(place))[:8]}"
    done = take_in(gallery, photos, name, folder)
    if done.path is None:
        example = (*done.unknown, *(file for file, _ in done.failed), "none")[0]
        raise NothingFound(
            f"no photo of {source} is in {gallery}, such as {example}; say where its paths begin with --photos, or "
            "index the photos first"
        )
    done.failed += index_list(gallery, done.path)
    _report(done, gallery, json)


def index_list(gallery: Path, place: Path) -> list[tuple[str, str]]:
    """Index a list of facts of the gallery's own photos; those that could not be read by now, and why."""
    from eyespot.gallery.disk import read_header
    from eyespot.gallery.indexing import Options, index

    with progress_bar() as progress:
        summary = index(gallery, [str(place)], [], Options(progress=progress))
    own = {number for number, root in read_header(gallery).roots.items() if root.place == str(place)}
    return [(failure.path, failure.reason) for failure in summary.failures if failure.root in own]


def _report(done: ImportedFacts, gallery: Path, json: bool) -> None:
    if done.unknown:
        note(f"{len(done.unknown)} photos are not in the gallery, such as {done.unknown[0]}")
    for file, reason in done.failed[:SHOWN]:
        note(f"not imported: {file} ({reason})")
    if len(done.failed) > SHOWN:
        note(f"and {len(done.failed) - SHOWN} more; --json lists them all")
    if json:
        failed = [{"file": file, "reason": reason} for file, reason in done.failed]
        counts = {"photos": done.photos, "known": done.known, "unknown": len(done.unknown), "failed": failed}
        print_json({"gallery": str(gallery), **counts, "list": str(done.path)})
    print_summary(f"facts of {done.known} of {done.photos} photos are in {gallery}")
    if done.failed:
        raise typer.Exit(SOME_FAILED)
