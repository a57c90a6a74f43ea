"""`eyespot build`: makes judged collections, and captions to train on. Each kind is a command of this group."""

from __future__ import annotations

from dataclasses import asdict, replace
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
    from eyespot.curate import rerank as rerank_set
    from eyespot.curate.rerank import Division, RerankLimits, divide, select
    from eyespot.curate.rerank_files import LAYOUTS, write
    from eyespot.runs import read_judged, read_run
    from eyespot.runs.judged import read_queries

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
    for sentence in made.notes:
        note(sentence)
    if not dry_run:
        files = {"run": run, "qrels": qrels} | ({} if queries is None else {"queries": queries})
        write(made, out, _inputs(files, made, division, column), layout)
    _print(made, column, out, json)
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


def _inputs(files: dict[str, Path], made: RerankSet, division: Division | None, column: str | None) -> RerankInputs:
    """What the card says of how the set was made."""
    from eyespot.curate.rerank_card import RerankInputs

    split = {"split": "that of the queries"} if division is None else asdict(division)
    if split.get("val") is not None:
        del split["share"]
    return RerankInputs(files, {**asdict(made.limits), **split, "by": column}, column)


def _print(made: RerankSet, column: str | None, out: Path, json: bool) -> None:
    from eyespot.curate.rerank_card import counted

    counts = counted(made, column)
    if json:
        print_json({"out": str(out), **counts, "notes": made.notes})
        return
    for name, split in counts["splits"].items():
        print_line(f"{name:<6} " + "  ".join(f"{count} {what}" for what, count in split.items()))
    for reason, count in counts["dropped"].items():
        print_line(f"{'out':<6} {count} queries: {reason}")
