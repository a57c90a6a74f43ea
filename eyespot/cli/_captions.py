"""`eyespot build captions`: a sentence for each picture that has labels only, to train on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli._judge_options import calls_option, ledger_of, ledger_option, money_option
from eyespot.cli.console import escaped, print_json, print_line, print_summary
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.llms.budget import Budget
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.curate.captions import Captioner, Written

SOME_FAILED = 3


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
    dry_run: bool = typer.Option(False, "--dry-run", help="Only count; write nothing."),
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
    _print(written, out, json)
    print_summary("nothing was written" if dry_run else f"written to {out}")
    if written.failures:
        raise typer.Exit(SOME_FAILED)


def _print(written: Written, out: Path, json: bool) -> None:
    counts = {"captions": written.captions, "different": len(written.different)}
    failures = [failure._asdict() for failure in written.failures]
    if json:
        print_json({"out": str(out), **counts, "without": dict(written.without), "failures": failures})
        return
    print_line("  ".join(f"{count} {what}" for what, count in counts.items()))
    for why, count in written.without.items():
        print_line(f"{count} without: {escaped(why)}")
    for failure in written.failures:
        print_line(f"{escaped(failure.path)}\t{escaped(failure.reason)}")
