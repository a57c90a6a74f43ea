"""`eyespot build`: makes judged collections, and captions to train on. Each kind is a command of this group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli import _pairs
from eyespot.cli._judging import calls_option, ledger_of, ledger_option, money_option
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json, escaped, line, note, summarise
from eyespot.judges._budget import Budget
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.build.captions import Captioner, Written
    from eyespot.build.rerank import Division, RerankSet
    from eyespot.build.rerank_card import Making
    from eyespot.runs.judged import Judged

app = typer.Typer(no_args_is_help=True, help="Make a judged collection out of what is there.")
app.add_typer(_pairs.app, name="pairs")
BY, SHARE = "category", 0.2
SOME_FAILED = 3


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


# -- captions -----------------------------------------------------------------------------------------------


@app.command("captions")
def captions(
    out: Path = typer.Option(..., "--out", help="A .parquet or .csv file, with the columns id and caption."),
    gallery: Path = gallery_option("The gallery whose labels speak."),
    common: str | None = typer.Option(
        None, metavar="COLUMN", help="The column of everyday names.", show_default="common_name and its like"
    ),
    species: str | None = typer.Option(
        None, metavar="COLUMN", help="The column of scientific names.", show_default="scientific_name and its like"
    ),
    templates: Path | None = typer.Option(
        None, help="Own sentences, one a line: {COLUMN} stands for a label, {a COLUMN} for a label with its article."
    ),
    seed: int = typer.Option(0, help="Another seed draws other sentences."),
    by: str | None = typer.Option(
        None, "--by", metavar="MODEL", help="Let a model look and write: openai:MODEL.", show_default="templates"
    ),
    budget_calls: int | None = calls_option(),
    budget_money: float | None = money_option(),
    ledger: Path | None = ledger_option(),
    json: bool = json_option(),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count."),
) -> None:
    """Write a sentence for each picture that has labels only, such as somebody might type to find it."""
    from eyespot.build.captions import captioned, count, write, writer_of

    writer_of(out)
    place = gallery_here(gallery)
    named = {gap: column for gap, column in (("common", common), ("species", species)) if column is not None}
    if by is None:
        captioner = _captioner(place, named, templates, seed)
    elif templates is not None or dry_run:
        raise UsageError("--by lets a model write; leave out --templates and --dry-run")
    else:
        captioner = _seeing(by, place, named, (Budget(budget_calls, None, budget_money), ledger_of(ledger, place)))
    found = captioned(place, captioner)
    written = count(found) if dry_run else write(found, out, captioner)
    _tell_captions(written, out, json)
    summarise("nothing was written" if dry_run else f"written to {out}")
    if written.failures:
        raise typer.Exit(SOME_FAILED)


def _captioner(gallery: Path, named: dict[str, str], templates: Path | None, seed: int) -> Captioner:
    from eyespot.build.captions import columns
    from eyespot.build.templates import Templates, parsed
    from eyespot.runs.files import text_of

    there = columns(gallery)
    if templates is None:
        return Templates.over(there, named, seed)
    return Templates.own(there, named, parsed(text_of(templates)), seed)


def _seeing(model: str, gallery: Path, named: dict[str, str], paid: tuple[Budget, Path]) -> Captioner:
    """A model that looks; it is told the labels that templates would speak of."""
    from eyespot.build.captions import columns
    from eyespot.build.seeing import Seeing
    from eyespot.build.templates import Templates
    from eyespot.search.wordings import endpoint_of

    budget, ledger = paid
    known = Templates.over(columns(gallery), named, 0).columns
    return Seeing(model, endpoint_of(model, budget), ledger, tuple(known.values()))


def _tell_captions(written: Written, out: Path, json: bool) -> None:
    counts = {"captions": written.captions, "different": len(written.different)}
    failures = [failure._asdict() for failure in written.failures]
    if json:
        as_json({"out": str(out), **counts, "without": dict(written.without), "failures": failures})
        return
    line("  ".join(f"{count} {what}" for what, count in counts.items()))
    for why, count in written.without.items():
        line(f"{count} without: {escaped(why)}")
    for failure in written.failures:
        line(f"{escaped(failure.path)}\t{escaped(failure.reason)}")
