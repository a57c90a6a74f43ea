"""`eyespot fuse`: several rankings of the same queries to one, by ranks or by scores, with weights given or learned."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import escaped, print_result, warn_all
from eyespot.cli.settings import RUN_FORMAT, json_option
from eyespot.types import UsageError


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
    run_format: str = RUN_FORMAT,
    json: bool = json_option(),
) -> None:
    """Fuse the rankings of several encoders, query texts or judges."""
    from eyespot.runs import read_qrels, read_run, write_run
    from eyespot.search.fused import Fusion, learned

    if len(runs) < 2:
        raise UsageError("fusing takes two runs or more: eyespot fuse RUN_A RUN_B --out FUSED")
    if weights and learn:
        raise UsageError("--weights are given or learned, not both; drop one of them")
    try:
        given = None if weights is None else tuple(float(part) for part in weights.split(","))
    except ValueError:
        raise UsageError(f"--weights takes a number for each run, as in --weights 2,1, not {weights!r}") from None
    rankings = [read_run(path, run_format) for path in runs]
    fusion = Fusion(by, norm, k, given)
    fit = learned(fusion, rankings, read_qrels(learn), measure) if learn else None
    fused = (fit.fusion if fit else fusion)(rankings)
    write_run(fused, out.expanduser())
    warn_all(fused.notes)
    header = {name: value for name, value in fused.header.items() if name != "of"}
    counts = {"run": str(out), "queries": len(fused), "hits": len(fused.codes)}
    learning = {"measure": fit.measure, "value": fit.value, "alone": fit.alone} if fit else None
    used = ", ".join(f"{weight:g}" for weight in fused.header["weights"])
    how = f"{len(fused):,} queries, {len(fused.codes):,} hits, by {fused.header['fused']} with weights {used}"
    lines = [f"{escaped(str(out))}: {how}"]
    if fit:
        alone = ", ".join(f"{value:.4f}" for value in fit.alone)
        lines.append(f"{fit.measure} there: {fit.value:.4f}; of each run alone: {alone}")
    print_result({**counts, **header, "learned": learning}, lines, json)
