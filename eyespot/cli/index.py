"""`eyespot index`: bring a gallery up to date with folders, tars and lists of photos."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._ray import pool_on, ray_option
from eyespot.cli._watching import keep_up
from eyespot.cli.console import conclude, note, print_json, print_line, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Options, Summary
    from eyespot.gallery.looked import Looked
    from eyespot.gallery.texts import TextSummary
    from eyespot.photos.kinds import SkippedFiles
    from eyespot.photos.sources import Root
    from eyespot.types import Encoder, TextReader

SOME_FAILED = 3


def run(
    photos: list[str] = typer.Argument(
        None, help="Folders, .tar files, .csv, .json or .parquet lists, pictures; default: the known ones."
    ),
    gallery: Path = gallery_option("The gallery; created if it does not exist."),
    encoder: str = typer.Option(
        None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Add or update this space only."
    ),
    crops: int = typer.Option(
        None,
        "--crops",
        metavar="N",
        help="Embed each picture as the mean of it and of N parts (4, 5 or 9), in a space of its own.",
    ),
    workers: int = typer.Option(
        0,
        "--workers",
        envvar="EYESPOT_WORKERS",
        min=0,
        max=256,
        help="Threads or processes that read, or workers on Ray; 0: all cores.",
    ),
    memory: str = typer.Option(
        None,
        "--memory",
        envvar="EYESPOT_DECODE_MEMORY",
        metavar="SIZE",
        help="The most that decoding takes in all of them together, as in 2G or 800M.",
        show_default="half of what is free, 0.5G to 2G",
    ),
    ray: str = ray_option(),
    half: bool = typer.Option(False, "--half", help="Store new vectors in float16, half the size, from now on."),
    codes: bool = typer.Option(False, "--codes", help="Also store int8 codes: fast exact search in little memory."),
    ocr: bool = typer.Option(False, "--ocr", help="Also read the text in pictures, once; needs the extra [ocr]."),
    retry_failed: bool = typer.Option(False, "--retry-failed", help="Retry what could not be read before."),
    repair: bool = typer.Option(
        False, "--repair", help="Read every file of the gallery, and make again what is damaged."
    ),
    forget: bool = typer.Option(False, "--forget", help="Forget pictures that no longer exist, even if they are many."),
    remove: list[str] = typer.Option(
        None, "--remove", help="Remove this folder, tar or list from the gallery; its files are not touched."
    ),
    watch: bool = typer.Option(False, "--watch", help="Go on: index new and changed photos as they come; Ctrl-C ends."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count all pictures and the new ones."),
    json: bool = json_option(),
) -> None:
    """Index photos, or update an index: only new and changed photos are embedded."""
    from eyespot.gallery.indexing import Options
    from eyespot.photos.memory import VARIABLE, decode_limit

    if memory is not None:
        os.environ[VARIABLE] = memory  # where threads, and workers that are started from here, look for it
        decode_limit()
    place = gallery_here(gallery, writes=True)
    for option, given in {"--remove": remove, "--watch": watch, "--ocr": ocr}.items():
        if given and dry_run:
            raise UsageError(f"{option} and --dry-run exclude each other: a dry run changes nothing")
    roots = _roots(place, photos or [])
    if dry_run:
        _tell_survey(place, roots, json)
        return
    encoders = _encoders(place, encoder if crops is None else f"crops:{crops}:{encoder or 'starter'}", bool(photos))
    threads = workers or os.cpu_count() or 1
    reader = _text_reader(threads) if ocr else None
    later = Options(threads, half=half, codes=codes, text_reader=reader)
    options = replace(later, retry_failed=retry_failed, forget=forget, remove=remove or (), repair=repair)
    with nullcontext() if ray is None else pool_on(ray, workers) as pool:

        def index_once(options: Options) -> None:
            try:
                with progress_bar() as progress:
                    summary = update(place, photos or [], encoders, replace(options, progress=progress, hands=pool))
            except KeyboardInterrupt:
                note("interrupted; what is done is kept: run the same line again and it goes on there")
                raise
            _report(place, summary, json)

        if watch:
            keep_up(place, roots, partial(index_once, options), partial(index_once, later))
        else:
            index_once(options)


def update(gallery: Path, photos: Sequence[str], encoders: Sequence[Encoder], options: Options) -> Summary:
    """Index; where the options say so, repair all that a gallery consists of."""
    from eyespot.gallery.indexing import index
    from eyespot.gallery.integrity import faults

    summary = index(gallery, photos, encoders, options)
    if any(fault.file.startswith(("local/", "indexes/")) for fault in summary.damaged):
        from eyespot.search.repair import repair_beside

        summary.notes += repair_beside(gallery, summary.damaged, options.progress)
        summary.damaged = faults(gallery, options.progress)
    return summary


def repair_gallery(gallery: Path) -> Summary:
    """What `eyespot index --repair` does without further options."""
    from eyespot.gallery.indexing import Options

    _roots(gallery, [])
    with progress_bar() as progress:
        return update(gallery, [], _encoders(gallery, None, False), Options(repair=True, progress=progress))


def _roots(gallery: Path, photos: Sequence[str]) -> list[Root]:
    """The roots to walk, checked before anything is written; a known root may be away, a new one may not."""
    from eyespot.photos.sources import roots_of

    roots = [root for path in photos for root in roots_of(path)]
    away = [root for root in roots if not os.path.exists(root.place)]
    if roots and not away:
        return roots
    from eyespot.gallery.reading import known_roots

    known = known_roots(gallery)
    if not photos and not (gallery / "gallery.toml").exists() and not known:
        raise UsageError(f"there is no gallery at {gallery} yet; name a folder of photos: eyespot index PHOTOS")
    for root in away:
        if root.path not in [other.path for other in known]:
            raise UsageError(f"there is nothing at {root.place}; check the path")
    return roots or known


def _encoders(gallery: Path, name: str | None, has_paths: bool) -> list[Encoder]:
    """The named encoder, else all of the gallery; its other spaces wait if one of these cannot be loaded."""
    from eyespot import rooms

    if name is not None:
        return [rooms.load("encoders", name)]
    from eyespot.gallery.disk import read_or_rebuild_header

    # Imported spaces do not grow.
    spaces = read_or_rebuild_header(gallery).spaces.values()
    known = dict.fromkeys(space.encoder for space in spaces if space.revision != "imported")
    if not known:
        return [rooms.load("encoders", "starter")] if has_paths or not (gallery / "gallery.toml").is_file() else []
    encoders = []
    for encoder in known:
        try:
            encoders.append(rooms.load("encoders", encoder))
        except EyespotError as error:
            note(f"{encoder} gets no vectors for now: {error}")
    if not encoders:
        raise EyespotError("none of this gallery's encoders can be loaded; choose one, as in: -e starter")
    return encoders


def _text_reader(threads: int) -> TextReader:
    from eyespot import rooms

    reader: TextReader = rooms.load("photos.ocr", "rapidocr", threads=threads)
    return reader


def _tell_survey(gallery: Path, roots: Sequence[Root], json: bool) -> None:
    from eyespot.gallery.survey import survey
    from eyespot.photos.sources import is_there

    for root in roots:
        if not is_there(root):
            note(f"{root.place} is missing or empty (an unplugged disk?)")
    counts = survey(gallery, [root for root in roots if is_there(root)])
    if json:
        print_json(vars(counts) | {"files": counts.files} | _other_files(counts.skipped))
        return
    parts = [
        f"{counts.pictures} pictures ({counts.bytes / 1e6:.1f} MB), {counts.new} of them new and "
        f"{counts.changed} changed",
        f"{counts.unreadable} files, folders or rows of labels cannot be read",
        *_skipped_texts(counts.skipped),
    ]
    print_line("; ".join(parts))


def _report(gallery: Path, summary: Summary, json: bool) -> None:
    for sentence in summary.notes:
        note(sentence)
    looked = summary.looked
    if json:
        counts = {
            "files": looked.files,
            "pictures": looked.pictures,
            "copies": looked.copies,
            "failed": looked.failures,
            "videos": looked.videos._asdict(),
            "searchable": {"files": looked.searchable, "of": looked.pictorial, "extras": looked.by_extra},
        }
        fields = vars(summary) | {"failures": len(summary.failures), "looked": counts | _other_files(looked.skipped)}
        damaged = [fault._asdict() for fault in summary.damaged]
        read = summary.texts and vars(summary.texts) | {"failures": len(summary.texts.failures)}
        print_json({"gallery": str(gallery), **fields, "damaged": damaged, "texts": read})
    conclude(f"{_account(summary)}; {gallery} holds {_counted(summary.pictures, 'picture')}")
    if looked.searchable < looked.pictorial:
        note(_share(looked))
    if summary.texts:
        _report_texts(summary.texts, gallery)
    for fault in summary.damaged:
        note(f"still damaged: {fault}")
    if summary.failures:
        fresh = "" if summary.new_failures == len(summary.failures) else f", {summary.new_failures} of them new"
        note(f"{len(summary.failures)} could not be read{fresh}; see them with: eyespot failures -g {gallery}")
    if summary.failures or summary.damaged or (summary.texts and summary.texts.failures):
        raise typer.Exit(SOME_FAILED)


def _account(summary: Summary) -> str:
    """The fate of every file, in one line."""
    looked = summary.looked
    parts = [
        f"{summary.embedded:,} embedded now" if summary.embedded else "",
        f"{looked.copies:,} exact {'copy' if looked.copies == 1 else 'copies'}" if looked.copies else "",
        *_skipped_texts(looked.skipped),
        f"{looked.failures:,} failed" if looked.failures else "",
    ]
    videos = looked.videos
    frames = f" and {_counted(videos.frames, 'frame')} of {_counted(videos.videos, 'video')}" if videos.videos else ""
    account = f"{_counted(looked.pictures, 'picture')}{frames} from {_counted(looked.files, 'file')}"
    return f"{account}: {', '.join(filter(None, parts))}" if any(parts) else account


def _share(looked: Looked) -> str:
    """Which share of what shows something can be searched, and which extras would bring more."""
    from eyespot.extras import install_line

    share = (
        f"{looked.searchable:,} of {looked.pictorial:,} photos, videos and drawings"
        f" ({looked.searchable / looked.pictorial:.0%})"
    )
    more = [f"; {files:,} more with {install_line(extra)}" for extra, files in looked.by_extra.items()]
    return f"{share} can be searched{''.join(more)}"


def _report_texts(texts: TextSummary, gallery: Path) -> None:
    conclude(f"text was read in {_counted(texts.read, 'picture')} now; {texts.with_text:,} of the gallery have text")
    if texts.away:
        note(f"{_counted(texts.away, 'picture')} out of reach wait to be read; run the same line again")
    if texts.failures:
        count = len(texts.failures)
        note(f"the text of {count} could not be read; see them with: eyespot failures -g {gallery}")


# -- what was taken and what not ----------------------------------------------------------------------------


def _skipped_texts(skipped: SkippedFiles) -> list[str]:
    return [*filter(None, [str(skipped)]), *skipped.left_out_texts()]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _other_files(skipped: SkippedFiles) -> dict[str, Any]:
    return {"skipped": skipped.rows(), "hidden": skipped.hidden, "left_out": skipped.left_out_rows()}
