"""Verbs about one gallery, each in one room below: compact, describe, failures, map, names, publish."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import (
    SHOWN,
    conclude,
    escaped,
    exit_if_failed,
    print_result,
    print_summary,
    progress_bar,
    warn,
    warn_all,
)
from eyespot.cli.settings import encoder_option, flag, gallery_here, gallery_option, json_option
from eyespot.settings.gallery import ReadSettings
from eyespot.storage.systems import usable_cores
from eyespot.types import NothingFound, UsageError, quantity

FEWEST = 1_000  # rows of a segment


def compact(
    gallery: Path = gallery_option("The gallery whose shards are merged."),
    rows: int = typer.Option(1 << 20, help="The most rows of a segment.", metavar="N"),
    dry_run: bool = flag("--dry-run", "Only print how many shards would be merged."),
    json: bool = json_option(),
) -> None:
    """Merge small shards into large segments, so that a gallery of millions opens fast and needs few open files."""
    from eyespot.gallery import disk, segments

    if rows < FEWEST:
        raise UsageError(f"a segment has at least {FEWEST} rows; give --rows {FEWEST} or more")
    place = gallery_here(gallery, writes=True)
    if dry_run:
        groups = segments.planned(place, rows)
        merged = segments.Merged([], sum(map(len, groups)), 0, [])
        made = len(groups)
    else:
        with progress_bar() as progress:
            merged = segments.compact(place, rows, progress)
        made = len(merged.segments)
    warn_all(merged.notes)
    there = len(disk.shard_paths(place))
    verb = "would be merged" if dry_run else "merged"
    done = f"{quantity(merged.shards, 'shard')} {verb} into {quantity(made, 'segment')}" if made else "nothing to merge"
    holds = f"the gallery is in {quantity(there, 'part')}"
    facts = {"segments": made, "merged": merged.shards, "rows": merged.rows, "notes": merged.notes}
    facts |= {"shards": there, "dry_run": dry_run}
    print_result(facts, [f"{done}{'; ' if made else ': '}{holds}"], json)


def describe(
    reading: ReadSettings,
    gallery: Path = gallery_option("The gallery to describe."),
    extractor: str = typer.Option("sift", "--with", help="sift or dinov2:ORG/NAME: docs/research/rerank_baselines.md"),
    count: int = typer.Option(100, "--count", min=1, help="How many descriptors of a picture, the strongest first."),
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
        workers = reading.workers or usable_cores()
        options = Describing(count, workers, reading.retry_failed, only=only, progress=progress)
        summary = describe(place, made_by, options)
    failures = [failure._asdict() for failure in summary.failures]
    report = {"gallery": str(place), "extractor": made_by.name, "pictures": summary.pictures}
    lines = (f"{escaped(failure.path)}\t{escaped(failure.reason)}" for failure in summary.failures)
    print_result({**report, "described": summary.described, "failures": failures}, lines, json)
    print_summary(f"{quantity(summary.pictures, 'picture')} in {place}, {summary.described} new with {made_by.name}")
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
        warn(f"without local descriptors: {quantity(lacking, 'picture')} of the run that the gallery lacks")
    return {picture.id for picture in found.values()}


def failures(gallery: Path = gallery_option("The gallery."), json: bool = json_option()) -> None:
    """List the pictures, folders and label rows that could not be read, with the reason."""
    from eyespot.gallery import disk
    from eyespot.gallery.reading import reading
    from eyespot.gallery.texts import failures
    from eyespot.photos.places import full_path

    place = gallery_here(gallery)
    disk.read_header(place)
    if (place / disk.FETCHED).is_file():
        raise UsageError("what could not be read is known where the gallery was indexed and published; ask there")
    with reading(place) as ledger:
        roots, every = ledger.roots(), [*ledger.failures(), *failures(ledger)]
        rows = [{"path": full_path(roots[f.root], f.path), "reason": f.reason} for f in every]
    print_result(rows, (f"{escaped(row['path'])}\t{escaped(row['reason'])}" for row in rows), json)


def lay_out(
    gallery: Path = gallery_option("The gallery to lay out."),
    encoder: str = encoder_option("By the look in this space."),
    again: bool = flag("--again", "Compute the map anew, not only place what is new."),
    seed: int = typer.Option(0, "--seed", min=0, help="A seed; the same one gives the same map."),
    sample: int = typer.Option(
        50_000, "--sample", min=1, help="Compute it with this many photos; the others go to their neighbours."
    ),
    json: bool = json_option(),
) -> None:
    """Make the map of a gallery, or place photos on it that came since; eyespot serve shows it at /map."""
    import numpy as np

    import eyespot
    from eyespot.gallery.layout.stored import extend_layout, make_layout, place_of_layout, read_layout

    view = eyespot.open(gallery_here(gallery, writes=True), encoder).view
    known = None if again else read_layout(view)
    with progress_bar("steps") as progress:
        if known is None:
            layout = make_layout(view, seed=seed, sample=sample, progress=progress)
        else:
            layout = extend_layout(view, known, progress)
    photos = int((np.isfinite(layout.points[:, 0]) & view.live).sum())
    computed = int(view.live[layout.base].sum())
    made = {
        "file": str(place_of_layout(view)),
        "encoder": view.space.encoder,
        "photos": photos,
        "computed": computed,
        "placed": photos - computed,
        "clusters": int(layout.cells.max(initial=-1)) + 1,
        "trustworthiness": layout.notes.trust,
        "seed": layout.notes.seed,
    }
    spread = f"{computed:,} computed, {photos - computed:,} placed by their neighbours"
    line = f"{quantity(photos, 'photo')} on the map: {spread}; {made['clusters']} clusters"
    if layout.notes.trust is not None:
        line += f"; trustworthiness {layout.notes.trust:.3f}"
    print_result(made, [line], json)


def names(
    files: list[Path] = typer.Argument(
        None,
        help="Tables of names: of iNaturalist or GBIF (a folder or .zip, too), or equal names on each row of a CSV.",
    ),
    gallery: Path = gallery_option("The gallery that gets the names."),
    remove: list[str] = typer.Option(None, "--remove", metavar="NAME", help="Forget this file's names; repeatable."),
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
    print_result(fields, (f"{one.name}: {quantity(one.names, 'name')} of {one.taxa:,} taxa" for one in there), json)
    if not there:
        conclude("the gallery has no names; give it some with: eyespot names FILE")
    for summary in summaries:
        warn_all(f"left out: {one.file}:{one.line} {one.reason}" for one in summary.failures[:SHOWN])
        if summary.failed > SHOWN:
            warn(f"and {quantity(summary.failed - SHOWN, 'more row')} of {summary.file.name}; --json lists them")
    exit_if_failed(failed)


def publish(
    url: str = typer.Argument(help="s3://BUCKET/NAME, gs://…, az://…, file:///FOLDER, or another address of fsspec."),
    gallery: Path = gallery_option("The gallery to publish."),
    check: bool = flag("--check", "Read every file that is published, and send again what is damaged."),
    json: bool = json_option(),
) -> None:
    """Publish a gallery: what is new or missing is sent; others search it with -g URL."""
    from eyespot.gallery.remote import address_of, publish

    place = gallery_here(gallery, writes=True)
    url = url if address_of(url) else f"file://{Path(url).expanduser().absolute()}"  # a plain folder

    with progress_bar("bytes") as progress:
        done = publish(place, url, progress=progress, check=check)
    files = quantity(done.sent, "file")
    line = f"{files} sent ({done.size / 1e6:,.1f} MB), {done.known} were there; search it with -g {url}"
    print_result({"url": url, "sent": done.sent, "bytes": done.size, "known": done.known}, [line], json)
