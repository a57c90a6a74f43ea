"""`eyespot index`: bring a gallery up to date with folders, tars and lists of photos."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._ray import hands_on, ray_option
from eyespot.cli.console import conclude, note, print_json, print_line, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Summary
    from eyespot.gallery.photos.kinds import SkippedFiles
    from eyespot.gallery.photos.sources import Root
    from eyespot.types import Encoder

SOME_FAILED = 3


def run(
    photos: list[str] = typer.Argument(
        None, help="Folders, .tar files, .csv, .json or .parquet lists, pictures; default: the known ones."
    ),
    gallery: Path = gallery_option("The gallery; created if it does not exist."),
    encoder: str = typer.Option(
        None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Add or update this space only."
    ),
    workers: int = typer.Option(
        0,
        "--workers",
        envvar="EYESPOT_WORKERS",
        min=0,
        max=256,
        help="Reading threads, or workers on Ray; 0: all cores.",
    ),
    ray: str = ray_option(),
    half: bool = typer.Option(False, "--half", help="Store new vectors in float16, half the size, from now on."),
    codes: bool = typer.Option(False, "--codes", help="Also store int8 codes: fast exact search in little memory."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Retry what could not be read before."),
    repair: bool = typer.Option(
        False, "--repair", help="Read all vectors and facts, and rebuild what is damaged on disk."
    ),
    forget: bool = typer.Option(False, "--forget", help="Forget pictures that no longer exist, even if they are many."),
    remove: list[str] = typer.Option(
        None, "--remove", help="Remove this folder, tar or list from the gallery; its files are not touched."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count all pictures and the new ones."),
    json: bool = json_option(),
) -> None:
    """Index photos, or update an index: only new and changed photos are embedded."""
    from eyespot.gallery.indexing import Options, index

    place = gallery_here(gallery, writes=True)
    if remove and dry_run:
        raise UsageError("--remove and --dry-run exclude each other: a dry run changes nothing")
    roots = _roots(place, photos or [])
    if dry_run:
        _tell_survey(place, roots, json)
        return
    encoders = _encoders(place, encoder, bool(photos))
    with _interruptible(), progress_bar() as progress, hands_on(ray, workers) as hands:
        threads = workers or os.cpu_count() or 1
        options = Options(
            threads,
            retry_failed,
            forget,
            remove or (),
            repair=repair,
            half=half,
            codes=codes,
            progress=progress,
            hands=hands,
        )
        summary = index(place, photos or [], encoders, options)
    _report(place, summary, json)


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        note("interrupted; what is done is kept: run the same line again and it goes on there")
        raise


def _roots(gallery: Path, photos: Sequence[str]) -> list[Root]:
    """The roots to look through, checked before anything is made; a known one may be away, an unknown one not."""
    from eyespot.gallery.photos.sources import roots_of

    roots = [root for path in photos for root in roots_of(path)]
    away = [root for root in roots if not os.path.exists(root.path)]
    if roots and not away:
        return roots
    from eyespot.gallery.reading import known_roots

    known = known_roots(gallery)
    if not photos and not (gallery / "gallery.toml").exists() and not known:
        raise UsageError(f"there is no gallery at {gallery} yet; name a folder of photos: eyespot index PHOTOS")
    for root in away:
        if root.path not in [other.path for other in known]:
            raise UsageError(f"there is nothing at {root.path}; check the path")
    return roots or known


def _encoders(gallery: Path, wanted: str | None, has_paths: bool) -> list[Encoder]:
    """The encoder asked for, else all that the gallery has; the rest waits if one of these cannot be loaded."""
    from eyespot import rooms

    if wanted is not None:
        return [rooms.load("encoders", wanted)]
    if not (gallery / "gallery.toml").is_file():
        return [rooms.load("encoders", "starter")]
    # The encoders whose spaces can grow; what was imported cannot
    from eyespot.gallery.disk import read_or_rebuild_header

    spaces = read_or_rebuild_header(gallery).spaces.values()
    known = list(dict.fromkeys(space.encoder for space in spaces if space.revision != "imported"))
    if not known:
        return [rooms.load("encoders", "starter")] if has_paths else []
    loaded = [encoder for name in known if (encoder := _loaded(name))]
    if not loaded:
        raise EyespotError("none of this gallery's encoders can be loaded; choose one, as in: -e starter")
    return loaded


def _loaded(name: str) -> Encoder | None:
    from eyespot import rooms

    try:
        encoder: Encoder = rooms.load("encoders", name)
        return encoder
    except EyespotError as error:
        note(f"{name} gets no vectors for now: {error}")
        return None


def _tell_survey(gallery: Path, roots: Sequence[Root], json: bool) -> None:
    from eyespot.gallery.photos.sources import is_there
    from eyespot.gallery.survey import survey

    for root in roots:
        if not is_there(root):
            note(f"{root.path} is missing or empty (an unplugged disk?)")
    found = survey(gallery, [root for root in roots if is_there(root)])
    if json:
        print_json(vars(found) | {"files": found.files} | _other_files(found.skipped))
        return
    parts = [
        f"{found.pictures} pictures ({found.bytes / 1e6:.1f} MB), {found.new} of them new and {found.changed} changed",
        f"{found.unreadable} files, folders or rows of labels cannot be read",
        *_skipped_texts(found.skipped),
    ]
    print_line("; ".join(parts))


def _report(gallery: Path, summary: Summary, json: bool) -> None:
    for sentence in summary.notes:
        note(sentence)
    if json:
        print_json(_as_dict(gallery, summary))
    # What became of every file that was met, in one line
    found = summary.looked
    parts = [
        f"{summary.embedded:,} embedded now" if summary.embedded else "",
        _counted(found.copies, "exact cop", "y", "ies") if found.copies else "",
        *_skipped_texts(found.skipped),
        f"{found.failures:,} failed" if found.failures else "",
    ]
    head = f"{_counted(found.pictures, 'picture')} from {_counted(found.files, 'file')}"
    account = f"{head}: {', '.join(filter(None, parts))}" if any(parts) else head
    text = f"{account}; {gallery} holds {_counted(summary.pictures, 'picture')}"
    conclude(text)
    for fault in summary.damaged:
        what = f"vectors of {fault.stem}" if fault.stem else "facts"
        note(f"the {what} in shard {fault.shard} stay damaged ({fault.reason}); {fault.way_out}")
    if summary.failures:
        fresh = "" if summary.new_failures == len(summary.failures) else f", {summary.new_failures} of them new"
        note(f"{len(summary.failures)} could not be read{fresh}; see them with: eyespot failures -g {gallery}")
    if summary.failures or summary.damaged:
        raise typer.Exit(SOME_FAILED)


def _as_dict(gallery: Path, summary: Summary) -> dict[str, Any]:
    found = summary.looked
    counts = {"files": found.files, "pictures": found.pictures, "copies": found.copies, "failed": found.failures}
    told = vars(summary) | {"failures": len(summary.failures), "looked": counts | _other_files(found.skipped)}
    told["damaged"] = [fault._asdict() for fault in summary.damaged]
    return {"gallery": str(gallery), **told}


# -- what was taken and what not ----------------------------------------------------------------------------


def _skipped_texts(skipped: SkippedFiles) -> list[str]:
    return [*filter(None, [str(skipped)]), *([f"{skipped.hidden:,} hidden left out"] if skipped.hidden else [])]


def _counted(count: int, noun: str, one: str = "", more: str = "s") -> str:
    return f"{count:,} {noun}{one if count == 1 else more}"


def _other_files(skipped: SkippedFiles) -> dict[str, Any]:
    return {"skipped": skipped.rows(), "hidden": skipped.hidden}
