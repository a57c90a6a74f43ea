"""`eyespot metrics`: any qrels and any run to numbers that name their definition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json
from eyespot.cli.settings import json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.metrics import Measure, Rules, Scores
    from eyespot.types import Qrels, Run

USUAL = ("AP@50", "nDCG@50", "RR", "R@20")
NORM, TIES = "all", "rank"


def run(
    qrels: Path = typer.Argument(help="Judgements in any known format, or `list` for the measures and presets."),
    run: Path | None = typer.Argument(None, help="Rankings in any known format."),
    measure: list[str] | None = typer.Option(
        None, "-m", "--measure", help=f"A measure, repeatable: {', '.join(USUAL)} (the default)."
    ),
    preset: str | None = typer.Option(None, help="The measures and rules of a benchmark."),
    norm: str | None = typer.Option(None, help="What AP divides by: min-k, all or retrieved.", show_default=NORM),
    ties: str | None = typer.Option(
        None, help="How to treat equal scores: average, or rank (as given).", show_default=TIES
    ),
    per_query: bool = typer.Option(False, "--per-query", help="Also print the values of every query."),
    keys: str = typer.Option("ir-measures", help="The names of measures in JSON: ir-measures or mteb."),
    qrels_format: str | None = typer.Option(None, "--format", help="The format of the judgements."),
    run_format: str | None = typer.Option(None, help="The format of the rankings."),
    json: bool = json_option(),
) -> None:
    """Score rankings against judgements; every number comes with its definition."""
    from eyespot.runs import read_qrels, read_run

    if run is None:
        _list(qrels, json)
        return
    scoring = scoring_of(measure, preset, norm, ties)
    scores = scored(read_run(run, run_format), read_qrels(qrels, qrels_format), scoring)
    for sentence in scores.notes:
        note(sentence)
    values = scores.as_json(per_query, keys)
    if json:
        print_json(values)
        return
    width = max(map(len, values["measures"]))
    for name, facts in values["measures"].items():
        low, high = facts["interval"]
        typer.echo(f"{name:<{width}}  {facts['mean']:.4f}  [{low:.4f}, {high:.4f}]  {_text(facts['definition'])}")
    for query, own in values.get("queries", {}).items():
        for name, value in own.items():
            typer.echo(f"{name}\t{query}\t{value:.6f}")


def scoring_of(
    stated: list[str] | None, named: str | None, norm: str | None, ties: str | None
) -> tuple[list[Measure], Rules]:
    """The measures of `-m`, after those of the preset, with the preset's rules."""
    from eyespot.metrics import Rules, parse, preset

    if named and not stated and (norm or ties):
        raise UsageError("a preset has its own norm and ties; leave --norm and --ties to measures given with -m")
    chosen, rules = preset(named).scoring if named else ((), Rules())
    spellings = stated or (() if named else USUAL)
    return [*chosen, *(parse(spelling, norm or NORM, ties or TIES) for spelling in spellings)], rules


def scored(run: Run, qrels: Qrels, scoring: tuple[list[Measure], Rules], name: str = "the run") -> Scores:
    """A run's scores; `NothingFound` if it ranks no judged query or the rules leave none."""
    from eyespot.metrics import evaluate

    scores = evaluate(run, qrels, *scoring)
    if len(scores.missing) == len(qrels):
        raise NothingFound(f"{name} ranks none of the judged queries; check that both files name queries alike")
    if not scores.queries:
        raise NothingFound("no query is left to score; the preset leaves out those without a relevant image")
    return scores


def _text(definition: dict[str, Any]) -> str:
    """The parts of a measure's definition, beside its name and cutoff, as PART=VALUE."""
    parts = ((part, str(value)) for part, value in definition.items() if value is not None)
    quoted = ((part, f"'{value}'" if " " in value else value) for part, value in parts)
    return " ".join(f"{part}={value}" for part, value in quoted if part not in ("measure", "cutoff"))


def _list(word: Path, json: bool) -> None:
    from eyespot.metrics import OUTSIDE, PRESETS, names

    if str(word) != "list":
        raise UsageError("a run is missing: eyespot metrics QRELS RUN, or eyespot metrics list")
    if json:
        print_json({"measures": names(), "ir-measures": OUTSIDE, "presets": PRESETS})
        return
    outside = {name: f"by ir-measures (extra [ir]): {sentence}" for name, sentence in OUTSIDE.items()}
    for kind, rows in (("measure", names() | outside), ("preset", PRESETS)):
        for name, sentence in rows.items():
            typer.echo(f"{kind:<8} {name:<15} {sentence}")
