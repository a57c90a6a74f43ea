"""Groups of commands, and options that several verbs have."""

from __future__ import annotations

from typing import Any

import typer

USUAL = ("AP@50", "nDCG@50", "RR", "R@20")
NORM, TIES = "all", "rank"

MEASURE = typer.Option(None, "-m", "--measure", help=f"A measure, repeatable: {', '.join(USUAL)} (the default).")
PRESET = typer.Option(None, help="The measures and rules of a benchmark.")
NORM_OPTION = typer.Option(None, "--norm", help="What AP divides by: min-k, all or retrieved.", show_default=NORM)
TIES_OPTION = typer.Option(
    None, "--ties", help="How to treat equal scores: average, or rank (as given).", show_default=TIES
)
QRELS_FORMAT = typer.Option(None, "--format", help="The format of the judgements.")
RUN_FORMAT = typer.Option(None, help="The format of the rankings.")
QUERIES = typer.Option(None, help="The queries to include, with their columns: csv, jsonl, parquet.")
LAYOUT = typer.Option("rerank-set", "--layout", help="rerank-set, or inquire-rerank: the parquet files of the hub.")
COUNT_ONLY = typer.Option(False, "--dry-run", help="Only count; write nothing.")
ENCODER = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space.")


def group(help: str) -> typer.Typer:
    """An empty group of commands; one with a single command is a group, too."""
    app = typer.Typer(no_args_is_help=True, help=help)
    app.callback()(lambda: None)
    return app


def flag(name: str, help: str, **more: Any) -> Any:
    """An option without a value."""
    return typer.Option(False, name, help=help, **more)
