"""`eyespot describe`: local descriptors of every picture, for re-ranking with `eyespot search --rerank-local`."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import escaped, exit_if_failed, print_result, print_summary, progress_bar, warn
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.settings.gallery import ReadSettings
from eyespot.storage.systems import usable_cores


def run(
    reading: ReadSettings,
    gallery: Path = gallery_option("The gallery to describe."),
    extractor: str = typer.Option(
        "sift", "--with", help="sift, or dinov2:ORG/NAME (details: docs/rerank_baselines.md)."
    ),
    count: int = typer.Option(
        100, "--count", min=1, help="The number of descriptors per picture; the strongest are kept."
    ),
    json: bool = json_option(),
) -> None:
    """Compute the local descriptors of every picture once; run it again after you index more."""
    from eyespot import rooms
    from eyespot.gallery.describing import Describing, describe

    place, made_by = gallery_here(gallery, writes=True), rooms.load("descriptors", extractor)
    with progress_bar() as progress:
        options = Describing(count, reading.workers or usable_cores(), reading.retry_failed, progress)
        summary = describe(place, made_by, options)
    failures = [failure._asdict() for failure in summary.failures]
    report = {"gallery": str(place), "extractor": made_by.name, "pictures": summary.pictures}
    lines = (f"{escaped(failure.path)}\t{escaped(failure.reason)}" for failure in summary.failures)
    print_result({**report, "described": summary.described, "failures": failures}, lines, json)
    print_summary(f"{summary.pictures} pictures in {place}, {summary.described} described now with {made_by.name}")
    if summary.failures:
        warn(f"{len(summary.failures)} could not be described; fix them and run this with --retry-failed")
    exit_if_failed(failures)
