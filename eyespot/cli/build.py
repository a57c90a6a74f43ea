"""`eyespot build`: makes judged collections, and captions to train on. Each kind is a command of this group."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli import _captions, _curating, _pairs, _recos, _rmir
from eyespot.cli.console import note, print_json, print_line, print_summary
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.curate.rerank import Division, RerankSet
    from eyespot.curate.rerank_card import RerankInputs
    from eyespot.runs.judged import JudgedQueries

app = typer.Typer(no_args_is_help=True, help="Build judged collections.")
app.add_typer(_pairs.app, name="pairs")
BY, SHARE = "category", 0.2


@app.callback()
def options() -> None:
    """Build judged collections."""


@app.command("rerank")
def rerank(
    run: Path = typer.Argument(help="Rankings in any known format; their first images are the candidates."),
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    out: Path = typer.Option(..., "--out", help="A new folder."),
    queries: Path | None = typer.Option(None, help="The queries to include, with their columns: csv, jsonl, parquet."),
    depth: int = typer.Option(100, help="Candidates per query."),
    most: int = typer.Option(50, help="Drop queries with more relevant candidates than this."),
    least: int = typer.Option(1, help="Drop queries with fewer relevant candidates than this."),
    by: str | None = typer.Option(
        None, help="Split in proportion to the values of this column.", show_default="category, if there is one"
    ),
    val: int | None = typer.Option(None, help="The number of validation queries.", show_default="a fifth"),
    val_share: float | None = typer.Option(None, help="The share of validation queries."),
    keep_split: bool = typer.Option(False, "--keep-split", help="Keep the split in the queries' column `split`."),
    seed: int = typer.Option(0, help="Another seed gives another split."),
    judged_only: bool = typer.Option(False, "--judged-only", help="First remove hits without a judgement."),
    layout: str = typer.Option("rerank-set", help="rerank-set, or inquire-rerank: the parquet files of the hub."),
    run_format: str | None = typer.Option(None, help="The format of the rankings."),
    format: str | None = typer.Option(None, "--format", help="The format of the judgements."),
    json: bool = json_option(),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count; write nothing."),
) -> None:
    """Make a re-ranking set: queries with candidates, of which some but not most are relevant."""
    from eyespot.curate.rerank import RerankLimits, select
    from eyespot.runs import read_run

    limits, division = RerankLimits(depth, least, most, judged_only), _division(val, val_share, keep_split, seed)
    from eyespot.curate.rerank_files import LAYOUTS, write

    if layout not in LAYOUTS:
        raise UsageError(f"no layout {layout!r}; there are: {', '.join(LAYOUTS)}")
    writing = partial(write, layout=layout)
    judged = _judged(qrels, format, queries)
    # The column to split by: the one asked for, or the usual one where the queries have it
    if by is not None and not any(judged.queries.values()):
        raise UsageError("a split by a column needs the columns of the queries; name their file with --queries")
    column = by or (BY if any(BY in facts for facts in judged.queries.values()) else None)
    made = _split(select(read_run(run, run_format), judged, limits), division, column)
    for sentence in made.notes:
        note(sentence)
    if not dry_run:
        files = {"run": run, "qrels": qrels, **({} if queries is None else {"queries": queries})}
        writing(made, out, _making(files, made, division, column))
    _tell(made, column, out, json)
    print_summary("nothing was written" if dry_run else f"written to {out}")


@app.command("review")
def review(
    queue: Path = typer.Argument(help="The queue: a .jsonl file written by a step of a pipeline."),
    who: str | None = typer.Option(None, "--as", help="Your name.", show_default="the name of your account"),
    json: bool = json_option(),
) -> None:
    """Review the cases a pipeline is in doubt about: accept, mend (edit) or drop; each decision is saved at once."""
    import getpass

    from eyespot.cli import _reviewing
    from eyespot.cli._building import tell_lapsed
    from eyespot.pipelines.human_review import Queue

    opened = Queue(queue)
    tell_lapsed([queue])
    _reviewing.review(opened, who or getpass.getuser())
    counts = opened.counts()
    if json:
        print_json({"queue": str(queue), "decisions": str(opened.decided), **counts})
        return
    print_line("  ".join(f"{count} {what}" for what, count in counts.items()))


app.command("inat")(_curating.inat)
app.command("rmir")(_rmir.rmir)
app.command("rmir-audit")(_rmir.rmir_audit)
app.command("recos")(_recos.recos)
app.command("captions")(_captions.captions)


def _division(val: int | None, share: float | None, keep_split: bool, seed: int) -> Division | None:
    """How to split; None keeps the split of the queries."""
    from eyespot.curate.rerank import Division

    if sum((val is not None, share is not None, keep_split)) > 1:
        raise UsageError("--val, --val-share and --keep-split exclude each other; give one of them")
    return None if keep_split else Division(val, SHARE if share is None else share, seed)


def _judged(qrels: Path, format: str | None, queries: Path | None) -> JudgedQueries:
    from eyespot.runs import read_judged
    from eyespot.runs.queries import read_queries

    judged = read_judged(qrels, format)
    return judged if queries is None else replace(judged, queries=read_queries(queries))


def _split(made: RerankSet, division: Division | None, column: str | None) -> RerankSet:
    from eyespot.curate.rerank import divide, keep_split

    if division is None:
        return keep_split(made)
    divided = divide(made, division, column)
    if any("split" in facts for facts in made.judged.queries.values()):
        note("the queries have a split, which a new one replaces; --keep-split keeps theirs")
    return divided


def _making(files: dict[str, Path], made: RerankSet, division: Division | None, column: str | None) -> RerankInputs:
    from eyespot.curate.rerank_card import RerankInputs

    drawn = {"split": "that of the queries"} if division is None else asdict(division)
    if drawn.get("val") is not None:
        del drawn["share"]
    return RerankInputs(files, {**asdict(made.limits), **drawn, "by": column}, column)


def _tell(made: RerankSet, column: str | None, out: Path, json: bool) -> None:
    from eyespot.curate.rerank_card import counted

    told = counted(made, column)
    if json:
        print_json({"out": str(out), **told, "notes": made.notes})
        return
    for name, counts in told["splits"].items():
        print_line(f"{name:<6} " + "  ".join(f"{count} {what}" for what, count in counts.items()))
    for reason, count in told["dropped"].items():
        print_line(f"{'out':<6} {count} queries: {reason}")
