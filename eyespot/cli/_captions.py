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
    from eyespot.curate.captions import captioned, count, write, writer_of

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
    print_summary("nothing was written" if dry_run else f"written to {out}")
    if written.failures:
        raise typer.Exit(SOME_FAILED)


def _captioner(gallery: Path, named: dict[str, str], templates: Path | None, seed: int) -> Captioner:
    from eyespot.curate.captions import columns
    from eyespot.curate.templates import Templates, parsed
    from eyespot.storage.files import text_of

    there = columns(gallery)
    if templates is None:
        return Templates.over(there, named, seed)
    return Templates.own(there, named, parsed(text_of(templates)), seed)


def _seeing(model: str, gallery: Path, named: dict[str, str], paid: tuple[Budget, Path]) -> Captioner:
    """A model that looks; it is told the labels that templates would speak of."""
    from eyespot.curate.captions import columns
    from eyespot.curate.seeing import Seeing
    from eyespot.curate.templates import Templates
    from eyespot.search.query_rewriting import language_model

    budget, ledger = paid
    known = Templates.over(columns(gallery), named, 0).columns
    return Seeing(model, language_model(model, budget), ledger, tuple(known.values()))


def _tell_captions(written: Written, out: Path, json: bool) -> None:
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
