"""`eyespot describe`: local descriptors of every picture, for re-ranking with `eyespot search --rerank-local`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from eyespot.cli.console import escaped, exit_if_failed, print_result, print_summary, progress_bar, warn
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.settings.gallery import ReadSettings
from eyespot.types import NothingFound


def run(
    reading: ReadSettings,
    gallery: Path = gallery_option("The gallery to describe."),
    extractor: str = typer.Option(
        "sift", "--with", help="sift, or dinov2:ORG/NAME (details: docs/rerank_baselines.md)."
    ),
    count: int = typer.Option(
        100, "--count", min=1, help="The number of descriptors per picture; the strongest are kept."
    ),
    run_file: Path = typer.Option(
        None, "--run", metavar="FILE", help="Only pictures that this run ranks, as those that are re-ranked."
    ),
    depth: int = typer.Option(1000, "--depth", min=1, help="With --run, the number of first hits of each query."),
    json: bool = json_option(),
) -> None:
    """Compute the local descriptors of every picture once; run it again after you index more."""
    from eyespot import rooms
    from eyespot.gallery.describing import Describing, describe

    place, made_by = gallery_here(gallery, writes=True), rooms.load("descriptors", extractor)
    with progress_bar() as progress:
        only = None if run_file is None else _ranked(place, run_file, depth)
        workers = reading.workers or os.cpu_count() or 1
        options = Describing(count, workers, reading.retry_failed, only=only, progress=progress)
        summary = describe(place, made_by, options)
    failures = [failure._asdict() for failure in summary.failures]
    report = {"gallery": str(place), "extractor": made_by.name, "pictures": summary.pictures}
    lines = (f"{escaped(failure.path)}\t{escaped(failure.reason)}" for failure in summary.failures)
    print_result({**report, "described": summary.described, "failures": failures}, lines, json)
    print_summary(f"{summary.pictures} pictures in {place}, {summary.described} described now with {made_by.name}")
    if summary.failures:
        warn(f"{len(summary.failures)} could not be described; fix them and run this with --retry-failed")
    exit_if_failed(failures)


def _ranked(gallery: Path, file: Path, depth: int) -> set[str | None]:
    """The ids of the first hits of a run that the gallery has, found by their names; `NothingFound` if it has none."""
    from eyespot.reports.moved import from_gallery
    from eyespot.runs import read_run

    run = read_run(file)
    images = {hit.image for query in run for hit in run[query][:depth]}
    found = from_gallery(gallery, images)
    if not found:
        raise NothingFound(f"{gallery} has no picture that {file} ranks; choose the gallery of the run with -g")
    if lacking := len(images) - len(found):
        warn(f"{lacking:,} pictures of the run are not in the gallery, and stay without local descriptors")
    return {picture.id for picture in found.values()}
