"""`eyespot index`: bring a gallery up to date with folders, tars and lists of photos."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json, note, progress_bar, summarise
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Summary
    from eyespot.types import Encoder

SOME_FAILED = 3


def run(
    photos: list[str] = typer.Argument(
        None, help="Folders, .tar, .csv or .parquet lists, pictures; none: those known."
    ),
    gallery: Path = gallery_option("Where the gallery lies or shall lie."),
    encoder: str = typer.Option(
        None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Add or update this space only."
    ),
    workers: int = typer.Option(
        0, "--workers", envvar="EYESPOT_WORKERS", min=0, max=256, help="Reading threads; 0: one a core."
    ),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Try again what could not be read before."),
    forget: bool = typer.Option(False, "--forget", help="Forget pictures that are gone, however many."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count what lies there."),
    json: bool = json_option(),
) -> None:
    """Index photos, again and again: only what is new or changed is embedded."""
    from eyespot.gallery.indexing import Options, index

    place = gallery_here(gallery)
    if dry_run:
        as_json(_counted(photos or []))
        return
    encoders = _encoders(place, encoder, bool(photos))
    with progress_bar() as progress:
        options = Options(workers or os.cpu_count() or 1, retry_failed, forget, progress=progress)
        summary = index(place, photos or [], encoders, options)
    _report(place, summary, json)


def _encoders(gallery: Path, wanted: str | None, has_paths: bool) -> list[Encoder]:
    """The encoder asked for, else all that the gallery has; the rest waits if one of these cannot be loaded."""
    from eyespot import rooms

    if wanted is not None:
        return [rooms.load("encoders", wanted)]
    if not (gallery / "gallery.toml").is_file():
        if not has_paths:
            raise UsageError(f"there is no gallery at {gallery} yet; name a folder of photos: eyespot index PHOTOS")
        return [rooms.load("encoders", "starter")]
    known = _known(gallery)
    if not known:
        return [rooms.load("encoders", "starter")] if has_paths else []
    loaded = [encoder for name in known if (encoder := _loaded(name))]
    if not loaded:
        raise EyespotError("none of this gallery's encoders can be loaded; choose one, as in: -e starter")
    return loaded


def _known(gallery: Path) -> list[str]:
    """The encoders whose spaces can grow; what was imported cannot."""
    from eyespot.gallery.disk import read_or_rebuild_header

    spaces = read_or_rebuild_header(gallery).spaces.values()
    return list(dict.fromkeys(space.encoder for space in spaces if space.revision != "imported"))


def _loaded(name: str) -> Encoder | None:
    from eyespot import rooms

    try:
        encoder: Encoder = rooms.load("encoders", name)
        return encoder
    except EyespotError as error:
        note(f"{name} gets no vectors for now: {error}")
        return None


def _counted(photos: list[str]) -> dict[str, int]:
    from eyespot.gallery.photos.sources import Seen, Unreadable, root_of, scan

    found = [record for path in photos for record in scan(root_of(path))]
    pictures = [record for record in found if isinstance(record, Seen)]
    unreadable = sum(isinstance(record, Unreadable) for record in found)
    return {"pictures": len(pictures), "bytes": sum(seen.size for seen in pictures), "unreadable": unreadable}


def _report(gallery: Path, summary: Summary, json: bool) -> None:
    for sentence in summary.notes:
        note(sentence)
    if json:
        as_json(_as_dict(gallery, summary))
    summarise(f"{summary.pictures} pictures in {gallery}, {summary.embedded} embedded now")
    if summary.failures:
        note(f"{len(summary.failures)} could not be read; see them with: eyespot failures -g {gallery}")
        raise typer.Exit(SOME_FAILED)


def _as_dict(gallery: Path, summary: Summary) -> dict[str, Any]:
    told = asdict(summary)
    told["failures"] = len(summary.failures)
    return {"gallery": str(gallery), **told}
