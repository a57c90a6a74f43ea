"""How sets are built from one's own photos, and collections from observations."""

from __future__ import annotations

from pathlib import Path

from eyespot.settings.fields import Settings, Texts, setting
from eyespot.settings.judge import BudgetSettings


class RecipeSettings(BudgetSettings):
    """One run of a pipeline that a recipe describes."""

    recipe: Path = setting("The recipe, a TOML file; docs/rmir.md has one to start with.", default=..., argument=True)
    out: Path | None = setting("The output folder; use the same one again to continue a run.")
    limit: int | None = setting("A trial: ask about at most this many photos.", ge=1)
    positions: bool = setting("Keep the positions that photos tell in their metadata.", default=False)
    retry_failed: bool = setting("Retry what failed in earlier runs.", default=False)
    replace: bool = setting("Overwrite an earlier set even if this run lost records that it has.", default=False)
    dry_run: bool = setting("Only print how many requests would be sent, and their cost.", default=False)


class RmirSettings(RecipeSettings):
    """An RMIR set."""

    out: Path = setting("The output folder; use the same one again to continue a run.", default=...)
    gallery: Path | None = setting("The photos.", spelled=("-g", "--gallery"), usual="the recipe's")
    audit: int = setting("The number of judgements of each verdict that a person checks.", default=100, ge=0)
    pictures: bool = setting("Put the photos into the set; only if you are allowed to share them.", default=False)


class RecosSettings(RecipeSettings):
    """A ReCoS set."""

    recipe: Path = setting(
        "The recipe, a TOML file; or `demonstration`, which needs no model.", default=..., argument=True
    )
    gallery: Texts = setting(
        "NAME=FOLDER, once per source; overrides the recipe.", default=(), spelled=("-g", "--gallery")
    )
    limit: int | None = setting("A trial: at most this many pictures in v0.", ge=1)
    show: bool = setting("Only print the recipe, as a start for your own.", default=False)


class InatSettings(Settings):
    """A collection of observations: which, how many of each species, and their pictures."""

    export: Path = setting(
        "iNaturalist's open-data export, a Camtrap DP package, or a table of observations.", default=..., argument=True
    )
    out: Path | None = setting("A separate folder; run the same command again to continue.")
    targets: Path | None = setting("The species to collect: csv with name, and id, taxon_id, ranks.")
    mapping: Path | None = setting("Changes of taxa: csv with old, new, kind (rename, split, merge).")
    ranges: Path | None = setting("Ranges of species: csv with species, west, south, east, north.")
    years: str | None = setting("Years of observation: 2021-2023, or 2022.", usual="2021-2023 of an export, else all")
    grade: Texts = setting("Quality grades to keep.", default=(), usual="research of an export, else all")
    licence: Texts = setting("Licences to keep.", default=(), usual="all that allow copying")
    cap: int = setting("The most observations of a species.", default=550)
    seed: int = setting("Another seed gives another sample.", default=0)
    km: float = setting("Observations of a day within this distance are one group.", default=10.0)
    groups: str = setting("all: groups over all species; species: groups within each.", default="all")
    clusters: int = setting("The most clusters of a species' groups.", default=200)
    space_km: float = setting("A distance that counts as much as --time-days.", default=100.0)
    time_days: float = setting("A time that counts as much as --space-km.", default=90.0)
    photos: Path | None = setting("The folder with the photos; without it the result is a list to download.")
    check: Texts = setting("Checks to run on pictures.", default=("decode", "face", "spectrogram", "empty"))
    side: int = setting("Pixels of the longer side.", default=500)
    face: float = setting("The confidence from which a face goes to a person.", default=0.5)
    flagged: Path | None = setting("Photos flagged by annotators: csv with a column photo.")
    coarsen: Path | None = setting("Taxa whose positions are coarsened: csv with name, or one per line.")
    accuracy: float = setting("Positions less accurate than this (m) are coarsened.", default=10_000.0)
    coarse_degrees: float = setting("The cell size of coarsened positions.", default=0.2)
    memory: float = setting("GiB of memory for the tables.", default=3.0)
    threads: int = setting("Number of threads.", default=2)
    sample: int = setting("Observations that --dry-run reads.", default=200_000)
    dry_run: bool = setting("Only show the funnel of the first observations.", default=False)
