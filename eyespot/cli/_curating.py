"""`eyespot build inat` at the terminal: a bar while it works, the funnel afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import note, print_json, print_line, print_summary, progress_bar
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.curate.inat.curating import Curated
    from eyespot.curate.inat.settings import CollectionSettings

_CHECKS = ("decode", "face", "spectrogram", "empty")


def inat(
    export: Path = typer.Argument(
        help="iNaturalist's open-data export, a Camtrap DP package, or a table of observations."
    ),
    out: Path | None = typer.Option(None, "--out", help="A separate folder; run the same command again to continue."),
    targets: Path | None = typer.Option(None, help="The species to collect: csv with name, and id, taxon_id, ranks."),
    mapping: Path | None = typer.Option(None, help="Changes of taxa: csv with old, new, kind (rename, split, merge)."),
    ranges: Path | None = typer.Option(None, help="Ranges of species: csv with species, west, south, east, north."),
    years: str | None = typer.Option(
        None, help="Years of observation: 2021-2023, or 2022.", show_default="2021-2023 of an export, else all"
    ),
    grade: list[str] = typer.Option([], help="Quality grades to keep.", show_default="research of an export, else all"),
    licence: list[str] = typer.Option([], help="Licences to keep.", show_default="all that allow copying"),
    cap: int = typer.Option(550, help="The most observations of a species."),
    seed: int = typer.Option(0, help="Another seed gives another sample."),
    km: float = typer.Option(10.0, help="Observations of a day within this distance are one group."),
    groups: str = typer.Option("all", help="all: groups over all species; species: groups within each."),
    clusters: int = typer.Option(200, help="The most clusters of a species' groups."),
    space_km: float = typer.Option(100.0, help="A distance that counts as much as --time-days."),
    time_days: float = typer.Option(90.0, help="A time that counts as much as --space-km."),
    photos: Path | None = typer.Option(
        None, help="The folder with the photos; without it the result is a list to download."
    ),
    check: list[str] = typer.Option(list(_CHECKS), help="Checks to run on pictures."),
    side: int = typer.Option(500, help="Pixels of the longer side."),
    face: float = typer.Option(0.5, help="The confidence from which a face goes to a person."),
    flagged: Path | None = typer.Option(None, help="Photos flagged by annotators: csv with a column photo."),
    coarsen: Path | None = typer.Option(
        None, help="Taxa whose positions are coarsened: csv with name, or one per line."
    ),
    accuracy: float = typer.Option(10_000.0, help="Positions less accurate than this (m) are coarsened."),
    coarse_degrees: float = typer.Option(0.2, help="The cell size of coarsened positions."),
    memory: float = typer.Option(3.0, help="GiB of memory for the tables."),
    threads: int = typer.Option(2, help="Number of threads."),
    sample: int = typer.Option(200_000, help="Observations that --dry-run reads."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only show the funnel of the first observations."),
    json: bool = json_option(),
) -> None:
    """Build a collection like iNat24 from millions of observations: balanced, licensed, clean and documented."""
    from eyespot.curate.inat.settings import (
        CollectionSettings,
        ObservationFilter,
        PictureSettings,
        Positions,
        Sampling,
        Species,
        years_of,
    )

    settings = CollectionSettings(
        ObservationFilter(years_of(years), tuple(grade) or None, _licences(licence)),
        Species(targets, mapping, ranges),
        Sampling(km, groups, cap, clusters, space_km, time_days, seed),
        PictureSettings(photos, tuple(check), side, face, flagged),
        Positions(coarsen, accuracy, coarse_degrees),
        memory,
        threads,
    )
    if dry_run:
        _foretell(export, settings, sample, json)
        return
    if out is None:
        raise UsageError("the collection needs a folder; name one with --out, or only count with --dry-run")
    _curate(export, out, settings, json)


def _licences(kinds: list[str]) -> tuple[str, ...]:
    """The licences that are wanted; `UsageError` for one that is not known."""
    from eyespot.curate.inat.licences import checked

    return checked(kinds)


def _curate(export: Path, out: Path, settings: CollectionSettings, json: bool) -> None:
    """Make the collection; exit code 3 if pictures are missing or do not decode."""
    from eyespot.curate.inat.curating import curate as made

    with progress_bar("steps") as tell:
        done = made(export, out, settings, tell)
    _tell(done, json, out=str(out), pictures=done.pictures)
    if settings.pictures.folder is None:
        note(f"no --photos: {out / 'download.csv'} lists what to fetch; run the line again with the folder")
    if done.waiting:
        note(
            f"{done.waiting:,} pictures wait for a person: eyespot build review {out / 'review.jsonl'}, then run again"
        )
    print_summary(f"{done.pictures:,} pictures in {out}")
    if done.failed:
        note(f"{done.failed:,} pictures are missing or do not decode; {out / 'card.md'} counts them")
        raise typer.Exit(3)


def _foretell(export: Path, settings: CollectionSettings, first: int, json: bool) -> None:
    """The funnel of the first so many observations; nothing is written."""
    from eyespot.curate.inat.curating import foretell as told

    with progress_bar("steps") as tell:
        done = told(export, settings, first, tell)
    _tell(done, json, first=first)
    print_summary("nothing was written")


def _tell(done: Curated, json: bool, **more: object) -> None:
    for sentence in done.notes:
        note(sentence)
    if json:
        shown = [{name: one[name] for name in ("step", "came", "kept", "dropped", "ran")} for one in done.steps]
        print_json({"steps": shown, "draw": dict(done.drawn), "waiting": done.waiting, "failed": done.failed, **more})
        return
    for one in done.steps:
        dropped = "".join(f"; {count:,} {reason}" for reason, count in one["dropped"].items())
        print_line(f"{one['step']:<12} {one['came']:,} in, {one['kept']:,} kept{dropped}")
    told = done.drawn
    if told.get("spread_drawn") is not None:
        print_line(
            f"{'spread':<12} {told['spread_drawn']:.1f} cells drawn, {told['spread_random']:.1f} by lot, "
            f"{told['spread_before']:.1f} before (mean effective number, {told['over_cap']:,} species over the cap)"
        )
