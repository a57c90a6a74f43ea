"""`eyespot index`: bring a gallery up to date with folders, tars and lists of photos."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._options import flag
from eyespot.cli._ray import pool_on, ray_option
from eyespot.cli.console import conclude, exit_if_failed, note, note_all, print_json, print_result, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Options, Summary
    from eyespot.photos.kinds import SkippedFiles
    from eyespot.photos.sources import Root
    from eyespot.types import Encoder


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
    half: bool = flag("--half", "Store new vectors in float16, half the size, from now on."),
    codes: bool = flag("--codes", "Also store int8 codes: fast exact search in little memory."),
    ocr: bool = flag("--ocr", "Also read the text in pictures, once; needs the extra [ocr]."),
    retry_failed: bool = flag("--retry-failed", "Retry what could not be read before."),
    repair: bool = flag("--repair", "Read every file of the gallery, and make again what is damaged."),
    forget: bool = flag("--forget", "Forget pictures that no longer exist, even if they are many."),
    remove: list[str] = typer.Option(
        None, "--remove", help="Remove this folder, tar or list from the gallery; its files are not touched."
    ),
    watch: bool = flag("--watch", "Go on: index new and changed photos as they come; Ctrl-C ends."),
    dry_run: bool = flag("--dry-run", "Only count all pictures and the new ones."),
    json: bool = json_option(),
) -> None:
    """Index photos, or update an index: only new and changed photos are embedded."""
    from eyespot import rooms
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
    reader = rooms.load("photos.ocr", "rapidocr", threads=threads) if ocr else None
    later = Options(threads, half=half, codes=codes, text_reader=reader)
    options = replace(later, retry_failed=retry_failed, forget=forget, remove=remove or (), repair=repair)
    with nullcontext() if ray is None else pool_on(ray, workers) as pool:

        def index_once(options: Options) -> None:
            try:
                with progress_bar() as progress:
                    summary = update(
                        place, photos or [], encoders, replace(options, progress=progress, reader_factory=pool)
                    )
            except KeyboardInterrupt:
                note("interrupted; what is done is kept: run the same line again and it goes on there")
                raise
            _report(place, summary, json)

        if watch:
            keep_up(place, roots, partial(index_once, options), partial(index_once, later))
        else:
            index_once(options)


def keep_up(gallery: Path, roots: Sequence[Root], first: Callable[[], None], later: Callable[[], None]) -> None:
    """Do `first`, then `later` after each burst of changes in the folders among `roots`, until Ctrl-C.

    What fails in between is a note, and the next burst tries it again. `UsageError` where no root is a folder.
    """
    folders = [root.place for root in roots if root.kind == "folder"]
    if not folders:
        raise UsageError("--watch watches folders, and none is named or known; name one: eyespot index PHOTOS --watch")
    if len(folders) < len(roots):
        note("tars, lists and single pictures are indexed now and not watched")
    from eyespot import rooms

    with rooms.needs("--watch"):
        from eyespot.gallery.watching import changes
    if not any(map(os.path.isdir, folders)):  # then not even the first run begins
        note(f"waiting for {', '.join(folders)}, which {'is' if len(folders) == 1 else 'are'} missing; Ctrl-C ends it")
    watching = changes(folders, gallery)
    next(watching)  # what changes while the first run goes on is seen after it
    with suppress(typer.Exit):  # some files cannot be read
        first()
    conclude(f"watching {', '.join(folders)}; Ctrl-C ends it")
    try:
        for _ in watching:
            try:
                with suppress(typer.Exit):
                    later()
            except EyespotError as error:
                note(f"{error}; the next change tries it again")
            except Exception as error:  # whatever one round ends in, photos that come later are indexed
                what = str(error) or "no more is known"
                note(f"this round failed ({type(error).__name__}: {what}); the next change tries it again")
    except KeyboardInterrupt:
        conclude("no longer watching; the next eyespot index takes what comes from now on")


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


def _tell_survey(gallery: Path, roots: Sequence[Root], json: bool) -> None:
    from eyespot.gallery.survey import survey
    from eyespot.photos.sources import is_there

    for root in roots:
        if not is_there(root):
            note(f"{root.place} is missing or empty (an unplugged disk?)")
    counts = survey(gallery, [root for root in roots if is_there(root)])
    parts = [
        f"{counts.pictures} pictures ({counts.bytes / 1e6:.1f} MB), {counts.new} of them new and "
        f"{counts.changed} changed",
        f"{counts.unreadable} files, folders or rows of labels cannot be read",
        *_skipped_texts(counts.skipped),
    ]
    print_result(vars(counts) | {"files": counts.files} | _other_files(counts.skipped), ["; ".join(parts)], json)


def _report(gallery: Path, summary: Summary, json: bool) -> None:
    from eyespot.extras import install_line

    note_all(summary.notes)
    looked, texts = summary.looked, summary.texts
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
        read = texts and vars(texts) | {"failures": len(texts.failures)}
        print_json({"gallery": str(gallery), **fields, "damaged": damaged, "texts": read})
    conclude(f"{_account(summary)}; {gallery} holds {_counted(summary.pictures, 'picture')}")
    if looked.searchable < looked.pictorial:
        share = f"{looked.searchable:,} of {looked.pictorial:,} photos, videos and drawings"
        more = [f"; {files:,} more with {install_line(extra)}" for extra, files in looked.by_extra.items()]
        note(f"{share} ({looked.searchable / looked.pictorial:.0%}) can be searched{''.join(more)}")
    if texts:
        read_now = f"text was read in {_counted(texts.read, 'picture')} now"
        conclude(f"{read_now}; {texts.with_text:,} of the gallery have text")
        if texts.away:
            note(f"{_counted(texts.away, 'picture')} out of reach wait to be read; run the same line again")
        if count := len(texts.failures):
            note(f"the text of {count} could not be read; see them with: eyespot failures -g {gallery}")
    note_all(f"still damaged: {fault}" for fault in summary.damaged)
    if summary.failures:
        fresh = "" if summary.new_failures == len(summary.failures) else f", {summary.new_failures} of them new"
        note(f"{len(summary.failures)} could not be read{fresh}; see them with: eyespot failures -g {gallery}")
    exit_if_failed(summary.failures or summary.damaged or (texts and texts.failures))


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


# -- what was taken and what not ----------------------------------------------------------------------------


def _skipped_texts(skipped: SkippedFiles) -> list[str]:
    return [*filter(None, [str(skipped)]), *skipped.left_out_texts()]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _other_files(skipped: SkippedFiles) -> dict[str, Any]:
    return {"skipped": skipped.rows(), "hidden": skipped.hidden, "left_out": skipped.left_out_rows()}
