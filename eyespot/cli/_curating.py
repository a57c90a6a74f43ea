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
    from eyespot.curate.inat import curating, settings

    kinds = settings.ObservationFilter(settings.years_of(years), tuple(grade) or None, settings.checked(licence))
    collection = settings.CollectionSettings(
        kinds,
        settings.Species(targets, mapping, ranges),
        settings.Sampling(km, groups, cap, clusters, space_km, time_days, seed),
        settings.PictureSettings(photos, tuple(check), side, face, flagged),
        settings.Positions(coarsen, accuracy, coarse_degrees),
        memory,
        threads,
    )
    if dry_run:
        with progress_bar("steps") as tell:
            planned = curating.foretell(export, collection, sample, tell)
        _tell(planned, json, first=sample)
        print_summary("nothing was written")
        return
    if out is None:
        raise UsageError("the collection needs a folder; name one with --out, or only count with --dry-run")
    with progress_bar("steps") as tell:
        done = curating.curate(export, out, collection, tell)
    _tell(done, json, out=str(out), pictures=done.pictures)
    if photos is None:
        note(f"no --photos: {out / 'download.csv'} lists what to fetch; run the line again with the folder")
    if done.waiting:
        waiting = f"{done.waiting:,} pictures wait for a person"
        note(f"{waiting}: eyespot build review {out / 'review.jsonl'}, then run again")
    print_summary(f"{done.pictures:,} pictures in {out}")
    if done.failed:
        note(f"{done.failed:,} pictures are missing or do not decode; {out / 'card.md'} counts them")
        raise typer.Exit(3)


def _tell(done: Curated, json: bool, **more: object) -> None:
    for sentence in done.notes:
        note(sentence)
    if json:
        fields = ("step", "came", "kept", "dropped", "ran")
        steps = [{name: step[name] for name in fields} for step in done.steps]
        print_json({"steps": steps, "draw": dict(done.drawn), "waiting": done.waiting, "failed": done.failed, **more})
        return
    for step in done.steps:
        dropped = "".join(f"; {count:,} {reason}" for reason, count in step["dropped"].items())
        print_line(f"{step['step']:<12} {step['came']:,} in, {step['kept']:,} kept{dropped}")
    drawn = done.drawn
    if drawn.get("spread_drawn") is not None:
        print_line(
            f"{'spread':<12} {drawn['spread_drawn']:.1f} cells drawn, {drawn['spread_random']:.1f} by lot, "
            f"{drawn['spread_before']:.1f} before (mean effective number, {drawn['over_cap']:,} species over the cap)"
        )
