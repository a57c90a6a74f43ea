"""`eyespot build`: makes judged collections. Each kind of collection is a command of this group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli import _recos, _rmir
from eyespot.cli.settings import json_option
from eyespot.cli.telling import as_json, line, note, summarise
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.build.rerank import Division, RerankSet
    from eyespot.build.rerank_card import Making
    from eyespot.runs.judged import Judged

app = typer.Typer(no_args_is_help=True, help="Make a judged collection out of what is there.")
BY, SHARE = "category", 0.2
_CHECKS = ("decode", "face", "spectrogram", "empty")


@app.callback()
def options() -> None:
    """Make a judged collection out of what is there."""


@app.command("rerank")
def rerank(
    run: Path = typer.Argument(help="Rankings in any known format; their first images are the candidates."),
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    out: Path = typer.Option(..., "--out", help="A new folder."),
    queries: Path | None = typer.Option(None, help="The queries that count, with their columns: csv, jsonl, parquet."),
    depth: int = typer.Option(100, help="Candidates of each query."),
    most: int = typer.Option(50, help="Drop queries with more relevant candidates."),
    least: int = typer.Option(1, help="Drop queries with fewer relevant candidates."),
    by: str | None = typer.Option(
        None, help="Split in proportion to the values of this column.", show_default="category, if there is one"
    ),
    val: int | None = typer.Option(None, help="How many queries are for validation.", show_default="a fifth"),
    val_share: float | None = typer.Option(None, help="What share of them is."),
    keep_split: bool = typer.Option(
        False, "--keep-split", help="Keep the split that the queries' column `split` says."
    ),
    seed: int = typer.Option(0, help="Another seed is another split."),
    judged_only: bool = typer.Option(False, "--judged-only", help="Leave hits without a judgement out first."),
    layout: str = typer.Option("rerank-set", help="rerank-set, or inquire-rerank: the hub's parquet."),
    run_format: str | None = typer.Option(None, help="The format of the rankings."),
    format: str | None = typer.Option(None, "--format", help="The format of the judgements."),
    json: bool = json_option(),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count."),
) -> None:
    """Make a re-ranking set: queries with candidates of which some, and not most, are relevant."""
    from eyespot.build.rerank import Limits, select
    from eyespot.runs import read_run

    limits, division = Limits(depth, least, most, judged_only), _division(val, val_share, keep_split, seed)
    writing = _writing(layout)
    judged = _judged(qrels, format, queries)
    column = _column(judged, by)
    made = _split(select(read_run(run, run_format), judged, limits), division, column)
    for sentence in made.notes:
        note(sentence)
    if not dry_run:
        files = {"run": run, "qrels": qrels, **({} if queries is None else {"queries": queries})}
        writing(made, out, _making(files, made, division, column))
    _tell(made, column, out, json)
    summarise("nothing was written" if dry_run else f"written to {out}")


@app.command("review")
def review(
    queue: Path = typer.Argument(help="The queue: a .jsonl file that a step of a pipeline wrote."),
    who: str | None = typer.Option(None, "--as", help="Who decides.", show_default="the name of your account"),
    json: bool = json_option(),
) -> None:
    """Decide what a pipeline was in doubt of: accept, mend or drop, case by case; each decision is kept at once."""
    import getpass

    from eyespot.build._review import Queue
    from eyespot.cli import _reviewing

    opened = Queue(queue)
    _reviewing.review(opened, who or getpass.getuser())
    counts = opened.counts()
    if json:
        as_json({"queue": str(queue), "decisions": str(opened.decided), **counts})
        return
    line("  ".join(f"{count} {what}" for what, count in counts.items()))


@app.command("inat")
def inat(
    export: Path = typer.Argument(help="iNaturalist's open-data export, a Camtrap DP, or a table of observations."),
    out: Path | None = typer.Option(None, "--out", help="A folder of its own; run the line again to go on."),
    targets: Path | None = typer.Option(None, help="The species to collect: csv with name, and id, taxon_id, ranks."),
    mapping: Path | None = typer.Option(None, help="How taxa changed: csv with old, new, kind (rename, split, merge)."),
    ranges: Path | None = typer.Option(None, help="Where species live: csv with species, west, south, east, north."),
    years: str | None = typer.Option(None, help="2021-2023, or 2022.", show_default="2021-2023 of an export, else all"),
    grade: list[str] = typer.Option([], help="Quality grades.", show_default="research of an export, else all"),
    licence: list[str] = typer.Option([], help="Licences that are wanted.", show_default="all that allow copying"),
    cap: int = typer.Option(550, help="Observations of a species at most."),
    seed: int = typer.Option(0, help="Another seed is another draw."),
    km: float = typer.Option(10.0, help="Observations of a day within this distance are one group."),
    groups: str = typer.Option("all", help="Groups over all species, or within each: species."),
    clusters: int = typer.Option(200, help="Clusters of a species' groups at most."),
    space_km: float = typer.Option(100.0, help="A distance that counts as much as --time-days."),
    time_days: float = typer.Option(90.0, help="A time that counts as much as --space-km."),
    photos: Path | None = typer.Option(None, help="Where the photos lie; without it a list to fetch is made."),
    check: list[str] = typer.Option(list(_CHECKS), help="What to look for in pictures."),
    side: int = typer.Option(500, help="Pixels of the longer side."),
    face: float = typer.Option(0.5, help="How sure a face is that a person should look at."),
    flagged: Path | None = typer.Option(None, help="Photos that annotators flagged: csv with a column photo."),
    coarsen: Path | None = typer.Option(None, help="Taxa whose positions are coarsened: csv with name, or lines."),
    accuracy: float = typer.Option(10_000.0, help="Positions less accurate than this (m) are coarsened."),
    coarse_degrees: float = typer.Option(0.2, help="The cells that positions are coarsened to."),
    memory: float = typer.Option(3.0, help="GiB for the tables."),
    threads: int = typer.Option(2, help="Threads for the work."),
    sample: int = typer.Option(200_000, help="Observations that --dry-run takes."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only show the funnel of the first observations."),
    json: bool = json_option(),
) -> None:
    """Curate a collection like iNat24: balanced, licensed, clean and documented, out of millions of observations."""
    from eyespot.build.inat.settings import Pictures, Positions, Sampling, Settings, Species, Wanted, years_of
    from eyespot.cli import _curating

    settings = Settings(
        Wanted(years_of(years), tuple(grade) or None, _curating.licences(licence)),
        Species(targets, mapping, ranges),
        Sampling(km, groups, cap, clusters, space_km, time_days, seed),
        Pictures(photos, tuple(check), side, face, flagged),
        Positions(coarsen, accuracy, coarse_degrees),
        memory,
        threads,
    )
    if dry_run:
        _curating.foretell(export, settings, sample, json)
        return
    if out is None:
        raise UsageError("the collection needs a folder; name one with --out, or only count with --dry-run")
    _curating.curate(export, out, settings, json)


app.command("rmir")(_rmir.rmir)
app.command("rmir-audit")(_rmir.rmir_audit)
app.command("recos")(_recos.recos)


def _division(val: int | None, share: float | None, keep_split: bool, seed: int) -> Division | None:
    """How to split; None keeps the split of the queries."""
    from eyespot.build.rerank import Division

    if sum((val is not None, share is not None, keep_split)) > 1:
        raise UsageError("--val, --val-share and --keep-split exclude each other; give one of them")
    return None if keep_split else Division(val, SHARE if share is None else share, seed)


def _writing(layout: str) -> Callable[[RerankSet, Path, Making], None]:
    from eyespot.build.rerank_files import LAYOUTS, write

    if layout not in LAYOUTS:
        raise UsageError(f"no layout {layout!r}; there are: {', '.join(LAYOUTS)}")
    return partial(write, layout=layout)


def _judged(qrels: Path, format: str | None, queries: Path | None) -> Judged:
    from eyespot.runs import read_judged
    from eyespot.runs.queries import read_queries

    judged = read_judged(qrels, format)
    return judged if queries is None else replace(judged, queries=read_queries(queries))


def _column(judged: Judged, by: str | None) -> str | None:
    """The column to split by: the one asked for, or the usual one where the queries have it."""
    if by is not None and not any(judged.queries.values()):
        raise UsageError("a split by a column needs the columns of the queries; name their file with --queries")
    return by or (BY if any(BY in facts for facts in judged.queries.values()) else None)


def _split(made: RerankSet, division: Division | None, column: str | None) -> RerankSet:
    from eyespot.build.rerank import divide, keep_split

    if division is None:
        return keep_split(made)
    divided = divide(made, division, column)
    if any("split" in facts for facts in made.judged.queries.values()):
        note("the queries have a split, which a new one replaces; --keep-split keeps theirs")
    return divided


def _making(files: dict[str, Path], made: RerankSet, division: Division | None, column: str | None) -> Making:
    from eyespot.build.rerank_card import Making

    drawn = {"split": "that of the queries"} if division is None else asdict(division)
    if drawn.get("val") is not None:
        del drawn["share"]
    return Making(files, {**asdict(made.limits), **drawn, "by": column}, column)


def _tell(made: RerankSet, column: str | None, out: Path, json: bool) -> None:
    from eyespot.build.rerank_card import counted

    told = counted(made, column)
    if json:
        as_json({"out": str(out), **told, "notes": made.notes})
        return
    for name, counts in told["splits"].items():
        line(f"{name:<6} " + "  ".join(f"{count} {what}" for what, count in counts.items()))
    for reason, count in told["dropped"].items():
        line(f"{'out':<6} {count} queries: {reason}")
