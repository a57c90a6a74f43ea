"""`eyespot fuse`: several rankings of the same queries to one, by ranks or by scores, with weights given or learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, note, print_json, print_line
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.fused import Fusion, LearnedWeights


def run(
    runs: list[Path] = typer.Argument(help="Rankings in any known format, two or more."),
    out: Path = typer.Option(
        ..., "--out", metavar="FILE", help="The file for the fused ranking; its ending decides the format."
    ),
    by: str = typer.Option("rrf", help="rrf (reciprocal ranks), combsum or combmnz (scores)."),
    norm: str = typer.Option("min-max", help="How scores are normalised: min-max or z."),
    k: int = typer.Option(60, "-k", min=0, help="The k of rrf: 1 / (k + rank)."),
    weights: str = typer.Option(None, metavar="W,W…", help="One weight per run.", show_default="1 each"),
    learn: Path = typer.Option(None, metavar="QRELS", help="Learn the weights on these judgements (a validation set)."),
    measure: str = typer.Option("AP@50", "-m", "--measure", help="The measure that learned weights optimise."),
    run_format: str = typer.Option(None, help="The format of the rankings."),
    json: bool = json_option(),
) -> None:
    """Fuse the rankings of several encoders, query texts or judges."""
    from eyespot.runs import read_run, write_run
    from eyespot.search.fused import Fusion

    if len(runs) < 2:
        raise UsageError("fusing takes two runs or more: eyespot fuse RUN_A RUN_B --out FUSED")
    if weights and learn:
        raise UsageError("--weights are given or learned, not both; drop one of them")
    read = [read_run(path, run_format) for path in runs]
    fusion, learned = Fusion(by, norm, k, _weights(weights)), None
    if learn:
        learned = _learned(fusion, read, learn, measure)
        fusion = learned.fusion
    fused = fusion(read)
    write_run(fused, out.expanduser())
    for sentence in fused.notes:
        note(sentence)
    _tell(fused.header, learned, {"run": str(out), "queries": len(fused), "hits": len(fused.codes)}, json)


def _weights(given: str | None) -> tuple[float, ...] | None:
    try:
        return None if given is None else tuple(float(part) for part in given.split(","))
    except ValueError:
        raise UsageError(f"--weights takes a number for each run, as in --weights 2,1, not {given!r}") from None


def _learned(fusion: Fusion, runs: list[Any], qrels: Path, measure: str) -> LearnedWeights:
    from eyespot.runs import read_qrels
    from eyespot.search.fused import learned

    return learned(fusion, runs, read_qrels(qrels), measure)


def _tell(header: dict[str, Any], learned: LearnedWeights | None, made: dict[str, Any], json: bool) -> None:
    how = {name: value for name, value in header.items() if name != "of"}
    if json:
        learning = {"measure": learned.measure, "value": learned.value, "alone": learned.alone} if learned else None
        print_json({**made, **how, "learned": learning})
        return
    weights = ", ".join(f"{weight:g}" for weight in header["weights"])
    counts = f"{made['queries']:,} queries, {made['hits']:,} hits"
    print_line(f"{escaped(made['run'])}: {counts}, by {how['fused']} with weights {weights}")
    if learned:
        alone = ", ".join(f"{value:.4f}" for value in learned.alone)
        print_line(f"{learned.measure} there: {learned.value:.4f}; of each run alone: {alone}")
