"""`eyespot metrics`: any qrels and any run to numbers that name their definition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import print_result, warn, warn_all
from eyespot.cli.settings import QRELS_FORMAT, RUN_FORMAT, flag, json_option
from eyespot.settings.measure import NORM, TIES, USUAL, ScoringSettings
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.metrics import Measure, Rules, Scores
    from eyespot.types import Qrels, Run


def run(
    scoring: ScoringSettings,
    qrels: Path = typer.Argument(help="Judgements in any known format, or `list` for the measures and presets."),
    run: Path | None = typer.Argument(None, help="Rankings in any known format."),
    per_query: bool = flag("--per-query", "Also print the values of every query."),
    qrels_format: str | None = QRELS_FORMAT,
    run_format: str | None = RUN_FORMAT,
    json: bool = json_option(),
) -> None:
    """Score rankings against judgements; every number comes with its definition."""
    from eyespot.metrics import OUTSIDE, PRESETS, names
    from eyespot.runs import read_qrels, read_run

    if run is None:
        if str(qrels) != "list":
            raise UsageError("a run is missing: eyespot metrics QRELS RUN, or eyespot metrics list")
        outside = {name: f"by ir-measures (extra [ir]): {sentence}" for name, sentence in OUTSIDE.items()}
        lines = [f"{'measure':<8} {name:<15} {sentence}" for name, sentence in (names() | outside).items()]
        lines += [f"{'preset':<8} {name:<15} {sentence}" for name, sentence in PRESETS.items()]
        print_result({"measures": names(), "ir-measures": OUTSIDE, "presets": PRESETS}, lines, json)
        return
    judged = read_qrels(qrels, qrels_format)
    scores = scored(itself_aside(read_run(run, run_format), judged, scoring), judged, scoring_of(scoring))
    warn_all(scores.notes)
    values = scores.as_json(per_query)
    width = max(map(len, values["measures"]))
    lines = []
    for name, facts in values["measures"].items():
        low, high = facts["interval"]
        spread = "no interval" if low != low else f"[{low:.4f}, {high:.4f}]"
        # The parts of its definition, beside its name and cutoff
        parts = {part: str(text) for part, text in facts["definition"].items() if text is not None}
        quoted = {part: f"'{text}'" if " " in text else text for part, text in parts.items()}
        definition = " ".join(f"{part}={text}" for part, text in quoted.items() if part not in ("measure", "cutoff"))
        lines.append(f"{name:<{width}}  {facts['mean']:.4f}  {spread}  {definition}")
    for query, of_query in values.get("queries", {}).items():
        lines += [f"{name}\t{query}\t{value:.6f}" for name, value in of_query.items()]
    print_result(values, lines, json)


def scoring_of(settings: ScoringSettings) -> tuple[list[Measure], Rules]:
    """The measures of `-m`, after those of the preset, with the preset's rules."""
    from eyespot.metrics import Rules, parse, preset

    named, norm, ties = settings.preset, settings.norm, settings.ties
    if named and not settings.measure and (norm or ties):
        raise UsageError("a preset has its own norm and ties; leave --norm and --ties to measures given with -m")
    chosen, rules = preset(named).scoring if named else ((), Rules())
    spellings = settings.measure or (() if named else USUAL)
    return [*chosen, *(parse(spelling, norm or NORM, ties or TIES) for spelling in spellings)], rules


def itself_aside(run: Run, qrels: Qrels, settings: ScoringSettings, name: str = "") -> Run:
    """The run as it is scored: with `--ignore-self` no query finds an image of its own id; a warning says it else."""
    hits = run.self_hits()
    found = {query: row for query, row in hits.items() if not (query in qrels and qrels[query].get(query, 0) > 0)}
    if found and settings.ignore_self:
        return run.without(found.values())
    if found:
        ranked = f"{len(found)} of {quantity(len(run), 'query')} rank an image of their own id"
        warn(f"{f'{name}: ' * bool(name)}{ranked}, which counts as not relevant; --ignore-self leaves it out")
    return run


def scored(run: Run, qrels: Qrels, scoring: tuple[list[Measure], Rules], name: str = "the run") -> Scores:
    """A run's scores; `NothingFound` if it ranks no judged query or the rules leave none."""
    from eyespot.metrics import evaluate

    if (qrels.grade % 1 != 0).sum() * 2 > len(qrels.grade) and {*run.score.tolist()} <= {0, 1, 2, 3, 4}:
        raise UsageError(f"the grades are fractions and the scores of {name} are none, so the files seem to be swapped")
    scores = evaluate(run, qrels, *scoring)
    if len(scores.missing) == len(qrels):
        raise NothingFound(f"{name} ranks none of the judged queries; check that both files name queries alike")
    if not scores.queries:
        raise NothingFound("no query is left to score; the preset leaves out those without a relevant image")
    return scores
