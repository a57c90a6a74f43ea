"""`eyespot index`: bring a gallery up to date with folders, tars and lists of photos."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._ray import workers_on
from eyespot.cli.console import conclude, exit_if_failed, print_json, print_result, progress_bar, warn, warn_all
from eyespot.cli.settings import GALLERY, gallery_here, gallery_option, json_option
from eyespot.settings.gallery import IndexSettings
from eyespot.storage.systems import usable_cores
from eyespot.types import EyespotError, UsageError, codes_of, quantity

if TYPE_CHECKING:
    from eyespot.gallery.indexing import Options, Summary
    from eyespot.photos.kinds import SkippedFiles
    from eyespot.photos.places import Root
    from eyespot.types import Encoder


MANY = 10_000  # files that are counted at most to offer a folder
BEYOND_STARTER = (
    "starter finds what has a name, not scenes, people, actions or colours; a model that does: eyespot models get "
    "siglip2-base"
)


def run(
    settings: IndexSettings,
    photos: list[str] = typer.Argument(
        None, help="Folders, .tar files, .csv, .json or .parquet lists, pictures; default: the known ones."
    ),
    gallery: Path = gallery_option("The gallery; created if it does not exist."),
    json: bool = json_option(),
) -> None:
    """Index photos, or update an index: only new and changed photos are embedded."""
    from eyespot import rooms
    from eyespot.gallery.indexing import Options, index
    from eyespot.photos.memory import VARIABLE, decode_limit

    if settings.memory is not None:
        os.environ[VARIABLE] = settings.memory  # where threads, and workers that are started from here, find it
        decode_limit()
    place = gallery_here(gallery, writes=True)
    for option in ("remove", "watch", "ocr"):
        if getattr(settings, option) and settings.dry_run:
            raise UsageError(f"--{option} and --dry-run exclude each other: a dry run changes nothing")
    roots = _roots(place, photos or [])
    if settings.dry_run:
        _tell_survey(place, roots, json)
        return
    encoders = _encoders(place, settings.encoder, bool(photos))
    _tell_namesakes(place, encoders)
    threads = settings.workers or usable_cores()
    reader = rooms.load("photos.ocr", "rapidocr", threads=threads) if settings.ocr else None
    later = Options(threads, half=settings.half, codes=settings.codes, text_reader=reader)
    once = settings.model_dump(include={"retry_failed", "forget", "remove", "repair"})
    with workers_on(settings, "workers", "WorkerPool") as pool:

        def index_once(options: Options) -> None:
            try:
                with progress_bar() as progress:
                    how = replace(options, progress=progress, reader_factory=pool)
                    summary = index(place, photos or [], encoders, how)
            except KeyboardInterrupt:
                warn("interrupted; what is done is kept: run the same line again and it goes on there")
                raise
            _report(place, summary, encoders, json)

        if settings.watch:
            keep_up(place, roots, lambda: index_once(replace(later, **once)), lambda: index_once(later))
        else:
            index_once(replace(later, **once))


def keep_up(gallery: Path, roots: Sequence[Root], first: Callable[[], None], later: Callable[[], None]) -> None:
    """Do `first`, then `later` after each burst of changes in the folders among `roots`, until Ctrl-C.

    What fails in between is a warning, and the next burst tries it again. `UsageError` where no root is a folder.
    """
    folders = [root.place for root in roots if root.kind == "folder"]
    if not folders:
        raise UsageError("--watch watches folders, and none is named or known; name one: eyespot index PHOTOS --watch")
    if len(folders) < len(roots):
        warn("tars, lists and single pictures are indexed now and not watched")
    from eyespot import rooms

    with rooms.needs("--watch"):
        from eyespot.gallery.watching import changes
    if not any(map(os.path.isdir, folders)):  # then not even the first run begins
        warn(f"waiting for {', '.join(folders)}, which {'is' if len(folders) == 1 else 'are'} missing; Ctrl-C ends it")
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
                warn(f"{error}; the next change tries it again")
            except Exception as error:  # whatever one round ends in, photos that come later are indexed
                what = str(error) or "no more is known"
                warn(f"this round failed ({type(error).__name__}: {what}); the next change tries it again")
    except KeyboardInterrupt:
        conclude("no longer watching; the next eyespot index takes what comes from now on")


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
        return _offered(gallery)
    for root in away:
        if root.path not in [other.path for other in known]:
            raise UsageError(f"there is nothing at {root.place}; check the path")
    return roots or known


def _encoders(gallery: Path, name: str | None, has_paths: bool) -> list[Encoder]:
    """The named encoder, else all of the gallery."""
    from eyespot.encoders.model import chosen
    from eyespot.gallery.disk import growing_encoders

    known = growing_encoders(gallery) if name in (None, "auto") else []
    if name in (None, "auto") and not known and not has_paths and (gallery / "gallery.toml").is_file():
        return []  # imported vectors alone
    return chosen(name, known, warn)


def _offered(gallery: Path) -> list[Root]:
    """This folder, if it holds pictures and whoever sits at the terminal agrees."""
    from eyespot.photos.sources import roots_of

    named = "" if gallery == Path.cwd() / GALLERY else f" -g {quote(str(gallery))}"
    if not (count := pictures_here()):
        raise UsageError(f"there is no gallery at {gallery} yet; name a folder of photos: eyespot index PHOTOS{named}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"there is no gallery at {gallery} yet; this folder has {count}: eyespot index .{named}")
    typer.confirm(f"Index {count} of {Path.cwd()}?", default=True, abort=True, err=True)
    return list(roots_of("."))


def pictures_here() -> str:
    """How many pictures this folder holds, in words; empty for none."""
    from eyespot.photos.found import Seen
    from eyespot.photos.kinds import SkippedFiles
    from eyespot.photos.sources import roots_of, scan_counting

    files = chain.from_iterable(scan_counting(root, SkippedFiles()) for root in roots_of("."))
    count = sum(isinstance(one, Seen) for one in islice(files, MANY))
    return quantity(count, "picture", f"{'or more ' * (count == MANY)}pictures") if count else ""


def start_here() -> None:
    """What this folder holds, and the line to begin with."""
    gallery = gallery_here(None)
    if (gallery / "gallery.toml").exists():
        print(f'The gallery {gallery} is ready. Search it: eyespot search "a heron"')
    elif count := pictures_here():
        print(f'This folder has {count}. Index, then search: eyespot index . && eyespot search "a heron"')
    else:
        print("This folder has no pictures. Index a folder of photos: eyespot index PHOTOS")
    print("Try it on sample photos: eyespot demo. In the browser: eyespot serve. All verbs: eyespot --help")


def _tell_namesakes(gallery: Path, encoders: Sequence[Encoder]) -> None:
    """Say before anything is embedded that photos will not be found among imported vectors of the same name."""
    from eyespot.gallery.disk import read_or_rebuild_header, stem_of

    for encoder in encoders:
        name, new = encoder.space.encoder, stem_of(encoder.space)
        for stem, space in read_or_rebuild_header(gallery).spaces.items():
            if space.encoder == name and space.revision == "imported":
                both = f"imported vectors of {name} ({stem}), and what is indexed gets others ({new})"
                choice = f"a search finds one of the two: choose with -e {stem} or -e {new}"
                way_out = "what eyespot export npy writes is imported into the space that it came from"
                warn(f"{gallery} has {both}; {choice}; {way_out}")


def _tell_survey(gallery: Path, roots: Sequence[Root], json: bool) -> None:
    from eyespot.gallery.survey import survey
    from eyespot.photos.sources import is_there

    for root in roots:
        if not is_there(root):
            warn(f"{root.place} is missing or empty (an unplugged disk?)")
    counts = survey(gallery, [root for root in roots if is_there(root)])
    parts = [
        f"{quantity(counts.pictures, 'picture')} ({counts.bytes / 1e6:.1f} MB), {counts.new} of them new and "
        f"{counts.changed} changed",
        f"{quantity(counts.unreadable, 'file')}, folders or rows of labels cannot be read",
        *_skipped_texts(counts.skipped),
    ]
    files = counts.pictures + counts.unreadable + counts.skipped.files
    print_result(vars(counts) | {"files": files} | _other_files(counts.skipped), ["; ".join(parts)], json)


def _report(gallery: Path, summary: Summary, encoders: Sequence[Encoder], json: bool) -> None:
    from eyespot.extras import install_line

    warn_all(summary.notes)
    found, texts = summary.found, summary.texts
    if json:
        print_json({"gallery": str(gallery), **_fields(summary)})
    conclude(f"{_account(summary)}; {gallery} holds {quantity(summary.pictures, 'picture')}")
    for sentence in _lacking(summary, encoders):
        conclude(sentence)
    if found.searchable < found.pictorial:
        share = f"{found.searchable:,} of {quantity(found.pictorial, 'file', 'photos, videos and drawings')}"
        more = [f"; {files:,} more with {install_line(extra)}" for extra, files in found.by_extra.items()]
        warn(f"{share} ({found.searchable / found.pictorial:.0%}) can be searched{''.join(more)}")
    if texts:
        read_now = f"text was read in {quantity(texts.read, 'picture')} now"
        conclude(f"{read_now}; {texts.with_text:,} of the gallery have text")
        if texts.away:
            warn(f"{quantity(texts.away, 'picture')} out of reach wait to be read; run the same line again")
        if count := len(texts.failures):
            warn(f"the text of {count} could not be read; see them with: eyespot failures -g {gallery}")
    warn_all(f"still damaged: {fault}" for fault in summary.damaged)
    if summary.failures:
        fresh = "" if summary.new_failures == len(summary.failures) else f", {summary.new_failures} of them new"
        rest = "the rest is indexed" if summary.pictures else "nothing else is there"
        warn(f"{len(summary.failures)} could not be read{fresh}; {rest}; see them with: eyespot failures -g {gallery}")
    exit_if_failed(summary.failures or summary.damaged or (texts and texts.failures))


def _fields(summary: Summary) -> dict[str, Any]:
    found, texts = summary.found, summary.texts
    dates = ("undated", "misdated", "unsourced")
    counted = ("files", "pictures", "copies", *dates, "unplaced", "more_pages", "relabelled")
    counts = {name: getattr(found, name) for name in counted} | {
        "failed": found.failures,
        "respelled": [{"name": name, "path": path} for name, path in found.respelled],
        "videos": asdict(found.videos),
        "searchable": {"files": found.searchable, "of": found.pictorial, "extras": found.by_extra},
    }
    fields = vars(summary) | {"failures": len(summary.failures), "codes": codes_of(summary.notes)}
    fields["looked"] = counts | _other_files(found.skipped)
    del fields["found"]
    damaged = [asdict(fault) for fault in summary.damaged]
    return fields | {"damaged": damaged, "texts": texts and vars(texts) | {"failures": len(texts.failures)}}


def _lacking(summary: Summary, encoders: Sequence[Encoder]) -> Iterator[str]:
    """What no filter by date or place finds, and what no search does; of the encoder once, after the first run."""
    found, first = summary.found, 0 < summary.pictures == summary.embedded
    lacking = (
        (found.undated, "picture", "without a date; eyespot search --undated lists them"),
        (found.unplaced, "picture", 'without a position; eyespot search --where "latitude IS NULL" lists them'),
        (found.unsourced, "picture", "with a date of an unknown source; eyespot index --repair reads them again"),
        (found.more_pages, "page", "after the first of a TIFF file, not searched; save each as a file"),
    )
    yield from (f"{quantity(count, noun)} {fact}" for count, noun, fact in lacking if count)
    yield from [BEYOND_STARTER] * (first and [one.space.encoder for one in encoders] == ["starter"])


def _account(summary: Summary) -> str:
    """The fate of every file, in one line."""
    found = summary.found
    parts = [
        f"{summary.embedded:,} embedded now" if summary.embedded else "",
        f"{found.relabelled:,} with changed labels or sidecars" if found.relabelled else "",
        quantity(found.copies, "exact copy") if found.copies else "",
        f"{found.away:,} gone, still listed" if found.away else "",
        *_skipped_texts(found.skipped),
        f"{found.failures:,} failed" if found.failures else "",
    ]
    videos = found.videos
    frames = f" and {quantity(videos.frames, 'frame')} of {quantity(videos.videos, 'video')}" if videos.videos else ""
    account = f"{quantity(found.pictures, 'picture')}{frames} from {quantity(found.files, 'file')}"
    return account + (f": {', '.join(filter(None, parts))}" if any(parts) else "")


# -- what was taken and what not ----------------------------------------------------------------------------


def _skipped_texts(skipped: SkippedFiles) -> list[str]:
    return [*filter(None, [str(skipped)]), *skipped.left_out_texts()]


def _other_files(skipped: SkippedFiles) -> dict[str, Any]:
    return {"skipped": skipped.rows(), "hidden": skipped.hidden, "left_out": skipped.left_out_rows()}
