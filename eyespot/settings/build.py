"""How sets are built from one's own photos, and collections from observations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from eyespot.settings import SettingsConflict
from eyespot.settings.fields import Settings, Texts, setting
from eyespot.settings.judge import BatchSettings

CHECKS = ("decode", "face", "spectrogram", "empty")  # of the pictures of a collection


class RecipeSettings(BatchSettings):
    """One run of a pipeline that a recipe describes."""

    recipe: Path = setting("The recipe, a TOML file, or a domain: everyday, plants.", default=..., argument=True)
    out: Path | None = setting("The output folder; use the same one again to continue a run.")
    limit: int | None = setting("A trial: at most this many photos; ReCoS needs 3 in its version v0.", ge=1)
    preview: int | None = setting("A trial of this many photos, with all that was asked and answered.", ge=1)
    positions: bool = setting("Keep the positions in the metadata of photos.", default=False)
    retry_failed: bool = setting("Retry what failed in earlier runs.", default=False)
    replace: bool = setting("Overwrite an earlier set even if this run lost records that it has.", default=False)
    dry_run: bool = setting("Only print how many requests would be sent, and their cost.", default=False)
    show: bool = setting("Only print the recipe with its prompts, as a start for your own.", default=False)


class RmirSettings(RecipeSettings):
    """An RMIR set."""

    gallery: Path | None = setting("The photos.", spelled=("-g", "--gallery"), usual="the recipe's")
    audit: int = setting("The number of judgements of each verdict that a person checks.", default=100, ge=0)
    pictures: bool = setting("Put the photos into the set; only if you are allowed to share them.", default=False)


class RecosSettings(RecipeSettings):
    """A ReCoS set."""

    recipe: Path = setting("A TOML file; or everyday, plants, `demonstration` (no model).", default=..., argument=True)
    gallery: Texts = setting("NAME=FOLDER per source; overrides the recipe.", default=(), spelled=("-g", "--gallery"))


class InatSettings(Settings):
    """A collection of observations: which, how many of each species, and their pictures."""

    export: Path = setting("iNaturalist's open-data export, or a table of observations.", default=..., argument=True)
    out: Path | None = setting("A separate folder; run the same command again to continue.")
    targets: Path | None = setting("The species to collect: csv with name, and id, taxon_id, ranks.")
    mapping: Path | None = setting("Changes of taxa: csv with old, new, kind (rename, split, merge).")
    years: str | None = setting("Years of observation: 2021-2023, or 2022.", usual="2021-2023 of an export, else all")
    grade: Texts = setting("Quality grades to keep.", default=(), usual="research of an export, else all")
    licence: Texts = setting("Licences to keep.", default=(), usual="all that allow copying")
    cap: int = setting("The most observations of a species.", default=550, ge=1)
    seed: int = setting("Another seed gives another sample.", default=0)
    km: float = setting("Observations of a day within this distance are one group.", default=10.0)
    groups: Literal["all", "species"] = setting("all: groups over all species; species: within each.", default="all")
    clusters: int = setting("The most clusters of a species' groups.", default=200, ge=1)
    space_km: float = setting("A distance that counts as much as --time-days.", default=100.0, gt=0)
    time_days: float = setting("A time that counts as much as --space-km.", default=90.0, gt=0)
    photos: Path | None = setting("The folder with the photos; without it the result is a list to download.")
    check: Texts = setting("Checks to run on pictures.", default=CHECKS)
    side: int = setting("Pixels of the longer side.", default=500, ge=16)
    face: float = setting("From this confidence of a face on, a person decides.", default=0.5, ge=0, le=1)
    flagged: Path | None = setting("Photos flagged by annotators: csv with a column photo.")
    coarsen: Path | None = setting("Taxa whose positions are coarsened: csv with name, or one per line.")
    accuracy: float = setting("Positions less accurate than this (m) are coarsened.", default=10_000.0, ge=0)
    coarse_degrees: float = setting("The cell size of coarsened positions.", default=0.2, gt=0, le=30)
    memory: float = setting("GiB of memory for the tables.", default=3.0)
    threads: int = setting("Number of threads.", default=2)
    sample: int = setting("Observations that --dry-run reads.", default=200_000, ge=1)
    dry_run: bool = setting("Only show the funnel of the first observations.", default=False)

    @model_validator(mode="after")
    def _known_checks(self) -> InatSettings:
        if wrong := [check for check in self.check if check not in CHECKS]:
            known = ", ".join(CHECKS)
            raise SettingsConflict("{check} has no {wrong!r}; there are: {known}", wrong=wrong[0], known=known)
        return self


class RerankSetSettings(Settings):
    """A re-ranking set: which queries and candidates, and how it is split."""

    run: Path = setting("Rankings in any known format; the first images are candidates.", default=..., argument=True)
    qrels: Path = setting("Judgements in any known format.", default=..., argument=True)
    out: Path = setting("A new folder.", default=...)
    queries: Path | None = setting("The queries to include, with their columns: csv, jsonl, parquet.")
    depth: int = setting("Candidates per query.", default=100, ge=1)
    most: int = setting("Drop queries with more relevant candidates than this.", default=50)
    least: int = setting("Drop queries with fewer relevant candidates than this.", default=1, ge=0)
    by: str | None = setting("Split in proportion to the values of this column.", usual="category, if there is one")
    val: int | None = setting("The number of validation queries.", usual="a fifth", ge=0)
    val_share: float | None = setting("The share of validation queries.", ge=0, le=1)
    keep_split: bool = setting("Keep the split in the queries' column `split`.", default=False)
    seed: int = setting("Another seed gives another split.", default=0)
    judged_only: bool = setting("First remove hits without a judgement.", default=False)
    run_format: str | None = setting("The format of the rankings.")
    format: str | None = setting("The format of the judgements.")
    dry_run: bool = setting("Only count; write nothing.", default=False)

    @model_validator(mode="after")
    def _one_split(self) -> RerankSetSettings:
        if self.least > self.most:
            raise SettingsConflict("no number of candidates is at least {least} and at most {most}; lower {least}")
        if sum((self.val is not None, self.val_share is not None, self.keep_split)) > 1:
            raise SettingsConflict("{val}, {val_share} and {keep_split} exclude each other; give one of them")
        return self


class PairSetSettings(Settings):
    """Where pairs go, and what is left out of them."""

    out: Path = setting("The output folder; each file of the set gets a folder in it.", default=...)
    without: Path | None = setting("Ids to leave out, one per line: those of a test set.", metavar="FILE")


class LabelledSettings(PairSetSettings):
    """Pairs of two pictures with one label."""

    place: Path = setting(
        "A folder with a folder for each class, a table with a column that names files, UnED's info_files, or "
        "a gallery.",
        default=...,
        argument=True,
    )
    label: str | None = setting("The column with the label.", metavar="COLUMN", usual="of a table: label, class_id")
    images: Path | None = setting("Of UnED: the folder with its pictures.", usual="images beside info_files")
    split: str = setting("Of UnED: the files to read, DATASET/SPLIT.json.", default="train")
    count: int = setting("Pictures to draw, in whole classes.", default=1_000_000, ge=2)
    per_class: int = setting("Pictures of a class, at most.", default=20, ge=2)
    partners: int = setting("Pairs in which each picture is the query.", default=1, ge=1)
    held_out: float = setting("The share of classes for validation.", default=0.05, ge=0, le=0.9)
    seed: int = setting("Another seed draws other classes and pairs.", default=0, ge=0)
    workers: int = setting("Threads that read pictures.", default=4, ge=1)
