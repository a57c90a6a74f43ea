"""`eyespot build`: makes judged collections, and captions to train on. Each kind is a command of this group."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli import _building, _pairs
from eyespot.cli._judge_options import calls_option, ledger_option, money_option
from eyespot.cli._options import COUNT_ONLY, LAYOUT, QRELS_FORMAT, QUERIES, RUN_FORMAT, flag, group
from eyespot.cli.console import escaped, exit_if_failed, note, note_all, print_result, print_summary, progress_bar
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.llms.budget import Budget
from eyespot.search.parts import ledger_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.curate.captions import Captioner
    from eyespot.curate.inat.curating import Curated

app = group("Build judged collections.")
app.add_typer(_pairs.app, name="pairs")
BY, SHARE = "category", 0.2
CHECKS = ("decode", "face", "spectrogram", "empty")


@app.command("rerank")
def rerank(
    run: Path = typer.Argument(help="Rankings in any known format; their first images are the candidates."),
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    out: Path = typer.Option(..., "--out", help="A new folder."),
    queries: Path | None = QUERIES,
    depth: int = typer.Option(100, help="Candidates per query."),
    most: int = typer.Option(50, help="Drop queries with more relevant candidates than this."),
    least: int = typer.Option(1, help="Drop queries with fewer relevant candidates than this."),
    by: str | None = typer.Option(
        None, help="Split in proportion to the values of this column.", show_default="category, if there is one"
    ),
    val: int | None = typer.Option(None, help="The number of validation queries.", show_default="a fifth"),
    val_share: float | None = typer.Option(None, help="The share of validation queries."),
    keep_split: bool = flag("--keep-split", "Keep the split in the queries' column `split`."),
    seed: int = typer.Option(0, help="Another seed gives another split."),
    judged_only: bool = flag("--judged-only", "First remove hits without a judgement."),
    layout: str = LAYOUT,
    run_format: str | None = RUN_FORMAT,
    format: str | None = QRELS_FORMAT,
    json: bool = json_option(),
    dry_run: bool = COUNT_ONLY,
) -> None:
    """Make a re-ranking set: queries with candidates, of which some but not most are relevant."""
    from eyespot.curate import rerank as rerank_set
    from eyespot.curate.rerank import Division, RerankLimits, divide, select
    from eyespot.curate.rerank_files import LAYOUTS, RerankInputs, counted, write
    from eyespot.runs import read_judged, read_queries, read_run

    if sum((val is not None, val_share is not None, keep_split)) > 1:
        raise UsageError("--val, --val-share and --keep-split exclude each other; give one of them")
    if layout not in LAYOUTS:
        raise UsageError(f"no layout {layout!r}; there are: {', '.join(LAYOUTS)}")
    judged = read_judged(qrels, format)
    if queries is not None:
        judged = replace(judged, queries=read_queries(queries))
    if by is not None and not any(judged.queries.values()):
        raise UsageError("a split by a column needs the columns of the queries; name their file with --queries")
    column = by or (BY if any(BY in facts for facts in judged.queries.values()) else None)
    selected = select(read_run(run, run_format), judged, RerankLimits(depth, least, most, judged_only))
    division = None if keep_split else Division(val, SHARE if val_share is None else val_share, seed)
    made = rerank_set.keep_split(selected) if division is None else divide(selected, division, column)
    if division is not None and any("split" in facts for facts in judged.queries.values()):
        note("the queries have a split, which a new one replaces; --keep-split keeps theirs")
    note_all(made.notes)
    if not dry_run:
        files = {"run": run, "qrels": qrels} | ({} if queries is None else {"queries": queries})
        settings = asdict(made.limits) | ({"split": "that of the queries"} if division is None else asdict(division))
        if val is not None:
            del settings["share"]
        write(made, out, RerankInputs(files, settings | {"by": column}, column), layout)
    counts = counted(made, column)
    splits = counts["splits"].items()
    lines = [f"{name:<6} " + "  ".join(f"{count} {what}" for what, count in split.items()) for name, split in splits]
    lines += [f"{'out':<6} {count} queries: {reason}" for reason, count in counts["dropped"].items()]
    print_result({"out": str(out), **counts, "notes": made.notes}, lines, json)
    print_summary("nothing was written" if dry_run else f"written to {out}")


@app.command("review")
def review(
    queue: Path = typer.Argument(help="The queue: a .jsonl file written by a step of a pipeline."),
    who: str | None = typer.Option(None, "--as", help="Your name.", show_default="the name of your account"),
    json: bool = json_option(),
) -> None:
    """Review the cases a pipeline is in doubt about: accept, edit (m) or drop; each decision is saved at once."""
    import getpass

    from eyespot.cli import _reviewing
    from eyespot.pipelines.human_review import Queue

    opened = Queue(queue)
    _building.tell_lapsed([queue])
    _reviewing.review(opened, who or getpass.getuser())
    counts = opened.counts()
    line = "  ".join(f"{count} {what}" for what, count in counts.items())
    print_result({"queue": str(queue), "decisions": str(opened.decided), **counts}, [line], json)


@app.command("inat")
def inat(
    export: Path = typer.Argument(help="iNaturalist's open-data export, or a table of observations."),
    out: Path | None = typer.Option(None, "--out", help="A separate folder; run the same command again to continue."),
    targets: Path | None = typer.Option(None, help="The species to collect: csv with name, and id, taxon_id, ranks."),
    mapping: Path | None = typer.Option(None, help="Changes of taxa: csv with old, new, kind (rename, split, merge)."),
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
    check: list[str] = typer.Option(list(CHECKS), help="Checks to run on pictures."),
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
    dry_run: bool = flag("--dry-run", "Only show the funnel of the first observations."),
    json: bool = json_option(),
) -> None:
    """Build a collection like iNat24 from millions of observations: balanced, licensed, clean and documented."""
    from eyespot.curate.inat import curating, settings

    kinds = settings.ObservationFilter(settings.years_of(years), tuple(grade) or None, settings.checked(licence))
    collection = settings.CollectionSettings(
        kinds,
        settings.Species(targets, mapping),
        settings.Sampling(km, groups, cap, clusters, space_km, time_days, seed),
        settings.PictureSettings(photos, tuple(check), side, face, flagged),
        settings.Positions(coarsen, accuracy, coarse_degrees),
        memory,
        threads,
    )
    if dry_run:
        with progress_bar("steps") as tell:
            planned = curating.foretell(export, collection, sample, tell)
        _tell_funnel(planned, json, first=sample)
        print_summary("nothing was written")
        return
    if out is None:
        raise UsageError("the collection needs a folder; name one with --out, or only count with --dry-run")
    with progress_bar("steps") as tell:
        done = curating.curate(export, out, collection, tell)
    _tell_funnel(done, json, out=str(out), pictures=done.pictures)
    if photos is None:
        note(f"no --photos: {out / 'download.csv'} lists what to fetch; run the line again with the folder")
    if done.waiting:
        waiting = f"{done.waiting:,} pictures wait for a person"
        note(f"{waiting}: eyespot build review {out / 'review.jsonl'}, then run again")
    print_summary(f"{done.pictures:,} pictures in {out}")
    if done.failed:
        note(f"{done.failed:,} pictures are missing or do not decode; {out / 'card.md'} counts them")
    exit_if_failed(done.failed)


def _tell_funnel(done: Curated, json: bool, **more: object) -> None:
    note_all(done.notes)
    lines = []
    for step in done.steps:
        dropped = "".join(f"; {count:,} {reason}" for reason, count in step["dropped"].items())
        lines.append(f"{step['step']:<12} {step['came']:,} in, {step['kept']:,} kept{dropped}")
    drawn = done.drawn
    if drawn.get("spread_drawn") is not None:
        lines.append(
            f"{'spread':<12} {drawn['spread_drawn']:.1f} cells drawn, {drawn['spread_random']:.1f} by lot, "
            f"{drawn['spread_before']:.1f} before (mean effective number, {drawn['over_cap']:,} species over the cap)"
        )
    steps = [{name: step[name] for name in ("step", "came", "kept", "dropped", "ran")} for step in done.steps]
    counts = {"draw": dict(drawn), "waiting": done.waiting, "failed": done.failed}
    print_result({"steps": steps, **counts, **more}, lines, json)


app.command("rmir")(_building.rmir)
app.command("rmir-audit")(_building.rmir_audit)
app.command("recos")(_building.recos)


@app.command("captions")
def captions(
    out: Path = typer.Option(..., "--out", help="The output, .parquet or .csv, with the columns id and caption."),
    gallery: Path = gallery_option("The gallery whose labels are used."),
    common: str | None = typer.Option(
        None, metavar="COLUMN", help="The column with common names.", show_default="common_name and similar"
    ),
    species: str | None = typer.Option(
        None, metavar="COLUMN", help="The column with scientific names.", show_default="scientific_name and similar"
    ),
    templates: Path | None = typer.Option(
        None, help="Your own templates, one per line: {COLUMN} is a label, {a COLUMN} a label with its article."
    ),
    seed: int = typer.Option(0, help="Another seed selects other templates."),
    by: str | None = typer.Option(
        None,
        "--by",
        metavar="MODEL",
        help="Let a vision model write the captions: openai:MODEL.",
        show_default="templates",
    ),
    budget_calls: int | None = calls_option(),
    budget_money: float | None = money_option(),
    ledger: Path | None = ledger_option(),
    json: bool = json_option(),
    dry_run: bool = COUNT_ONLY,
) -> None:
    """Write a caption for each picture that has only labels, like a query that a person would type."""
    from eyespot.curate.captions import captioned, columns, count, write, writer_of
    from eyespot.curate.templates import Templates, parsed
    from eyespot.storage.text_files import text_of

    writer_of(out)
    place = gallery_here(gallery)
    named = {gap: column for gap, column in (("common", common), ("species", species)) if column is not None}
    captioner: Captioner
    if by is None and templates is not None:
        captioner = Templates.own(columns(place), named, parsed(text_of(templates)), seed)
    elif by is None:
        captioner = Templates.over(columns(place), named, seed)
    elif templates is not None or dry_run:
        raise UsageError("--by lets a model write; leave out --templates and --dry-run")
    else:
        from eyespot.curate.seeing import Seeing
        from eyespot.search.query_rewriting import language_model

        # The model gets the labels that templates would use.
        labels = Templates.over(columns(place), named, 0).columns.values()
        model = language_model(by, Budget(budget_calls, None, budget_money))
        captioner = Seeing(by, model, ledger_of(ledger, place), tuple(labels))
    pictures = captioned(place, captioner)
    written = count(pictures) if dry_run else write(pictures, out, captioner)
    failures = [failure._asdict() for failure in written.failures]
    counts = {"captions": written.captions, "different": len(written.different)}
    lines = ["  ".join(f"{count} {what}" for what, count in counts.items())]
    lines += [f"{count} without: {escaped(why)}" for why, count in written.without.items()]
    lines += [f"{escaped(failure.path)}\t{escaped(failure.reason)}" for failure in written.failures]
    fields = {"out": str(out), **counts, "without": dict(written.without), "failures": failures}
    print_result(fields, lines, json)
    print_summary("nothing was written" if dry_run else f"written to {out}")
    exit_if_failed(failures)
