"""`eyespot convert` and `fuse`: a run or judgements from one format into another, and several rankings to one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import escaped, print_json, print_result, print_summary, refuse_over_input, warn, warn_all
from eyespot.cli.settings import RUN_FORMAT, flag, json_option
from eyespot.types import Qrels, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.search.fused import Fusion

BEIR = "beir"


def run(
    source: Path = typer.Argument(..., help="The run or the judgements to read: a file or a folder."),
    out: Path = typer.Argument(..., help="What to write; the ending says the format, else TREC."),
    qrels: bool = typer.Option(None, "--qrels/--run", help="What the source holds.", show_default="as it looks"),
    format: str = typer.Option(None, "--format", help="The format to read.", show_default="by name and content"),
    to: str = typer.Option(None, "--to", help="The format to write.", show_default="by the name's ending"),
    queries: Path = typer.Option(None, "--queries", help="A table with the texts of the queries, for --to beir."),
    force: bool = flag("--force", "Replace a file that is there."),
    json: bool = json_option(),
) -> None:
    """Convert a run or judgements between TREC, JSON, parquet, npz, BEIR and the formats of benchmarks."""
    from eyespot.runs import read_run, write_run

    if out.exists() and (out.is_dir() or not force):
        way_out = "name a new folder" if out.is_dir() else "name another file, or replace it with --force"
        raise UsageError(f"{out} is there already; {way_out}")
    if qrels is None:
        qrels = to == BEIR or _looks_like_judgements(source, format)
    if queries is not None and to != BEIR:
        raise UsageError("--queries adds texts to a BEIR folder; write one with --to beir, or leave the option out")
    if qrels:
        found = _write_qrels(source, out, format, to, queries)
        written = len(found), len(found.grade)
    else:
        run = read_run(source, format)
        write_run(run, out, to)
        back = read_run(out, to)
        if lost := len(run) - len(back):
            warn(f"{quantity(lost, 'query')} without results: this format cannot say so; .parquet and .json keep them")
        if cut := len(run.score) - len(back.score):
            warn(f"{cut} results below the depth of this format are left out")
        written = len(back), len(back.score)
    if json:
        holds = "qrels" if qrels else "run"
        print_json({"out": str(out), "holds": holds, "queries": written[0], "rows": written[1]})
    print_summary(f"{quantity(written[1], 'row')} of {quantity(written[0], 'query')} written to {out}")


def _looks_like_judgements(source: Path, format: str | None) -> bool:
    """By the format if only judgements have it; else a folder or table of them, or lines `query 0 image grade`."""
    from eyespot.runs import QRELS_FORMATS, RUN_FORMATS
    from eyespot.runs.table import GRADE, SCORE, columns_of
    from eyespot.storage.text_files import data_of

    if format is not None:
        return format.partition(":")[0] in QRELS_FORMATS.keys() - RUN_FORMATS.keys()
    name = source.name.lower().removesuffix(".gz")
    if source.is_dir():
        return True
    if name.endswith((".csv", ".tsv", ".jsonl")):
        columns = columns_of(source)  # a score alone is that of a ranking, but BEIR calls grades so, too
        return columns.isdisjoint(SCORE) or not columns.isdisjoint({"corpus-id", "corpus_id", *GRADE} - {*SCORE})
    if name.endswith((".json", ".parquet", ".npz")):
        return "qrel" in name
    lines = (line.split() for line in data_of(source)[: 1 << 16].split(b"\n"))
    first = next(filter(None, lines), [])
    return len(first) == 4 and first[1] == b"0" and first[3].lstrip(b"-").isdigit()


def _write_qrels(source: Path, out: Path, format: str | None, to: str | None, queries: Path | None) -> Qrels:
    """Judgements in another format; a BEIR folder also has the texts of the queries."""
    from eyespot.runs import beir, read_judged, read_queries, write_qrels
    from eyespot.runs.judged import JudgedQueries
    from eyespot.storage.atomic import whole_folder

    judged = read_judged(source, format)
    if to != BEIR:
        write_qrels(judged.qrels, out, to)
        return judged.qrels
    texts = judged.queries if queries is None else read_queries(queries)
    named = {query: {**texts.get(query, {})} for query in judged.qrels}
    silent = [query for query, facts in named.items() if not facts.get("text")]
    named |= {query: named[query] | {"text": query} for query in silent}
    if silent:
        warn(f"{quantity(len(silent), 'query')} without a text: the id stands for it; name a table with --queries")
    with whole_folder(out) as folder:
        beir.write(JudgedQueries(named, judged.qrels, judged.images), folder)
    return judged.qrels


# -- several rankings to one ------------------------------------------------------------------------------------------


def fuse(
    runs: list[Path] = typer.Argument(help="Rankings in any known format, two or more."),
    out: Path = typer.Option(..., "--out", metavar="FILE", help="The fused ranking; its ending decides the format."),
    by: str = typer.Option("rrf", help="rrf (reciprocal ranks), combsum or combmnz (scores)."),
    norm: str | None = typer.Option(
        None, help="How scores are normalised: min-max, or z above the lowest score.", show_default="min-max"
    ),
    k: int | None = typer.Option(None, "-k", min=0, help="The k of rrf: 1 / (k + rank).", show_default="60"),
    weights: str = typer.Option(None, metavar="W,W…", help="One weight per run.", show_default="1 each"),
    learn: Path = typer.Option(None, metavar="QRELS", help="Learn the weights on these judgements (a validation set)."),
    measure: str | None = typer.Option(
        None, "-m", "--measure", help="The measure that learned weights optimise.", show_default="AP@50"
    ),
    run_format: str = RUN_FORMAT,
    json: bool = json_option(),
) -> None:
    """Fuse the rankings of several encoders, query texts or judges."""
    from eyespot.runs import read_qrels, read_run, write_run
    from eyespot.search.fused import learned

    if len(runs) < 2:
        raise UsageError("fusing takes two runs or more: eyespot fuse RUN_A RUN_B --out FUSED")
    if measure is not None and learn is None:
        raise UsageError("--measure is about learned weights; add --learn QRELS, or leave it out")
    if weights and learn:
        raise UsageError("--weights are given or learned, not both; drop one of them")
    refuse_over_input(out.expanduser(), *runs, learn)
    fusion, measure = _fusion_of(by, norm, k, weights), measure or "AP@50"
    rankings = [read_run(path, run_format) for path in runs]
    value, alone = 0.0, tuple[float, ...]()
    if learn:
        fusion, value, alone = learned(fusion, rankings, read_qrels(learn), measure)
    fused = fusion(rankings)
    write_run(fused, out.expanduser())
    lacking = {str(path): sum(not run.get(query) for query in fused) for path, run in zip(runs, rankings, strict=True)}
    warn_all(
        f"{escaped(path)} ranks nothing for {some} of {len(fused)} queries" for path, some in lacking.items() if some
    )
    warn_all(fused.notes)
    header = {name: value for name, value in fused.header.items() if name != "of"}
    counts = {"run": str(out), "queries": len(fused), "hits": len(fused.codes)}
    learning = {"measure": measure, "value": value, "alone": alone} if learn else None
    used = ", ".join(f"{weight:g}" for weight in fused.header["weights"])
    how = f"{quantity(len(fused), 'query')}, {quantity(len(fused.codes), 'hit')}"
    how = f"{how}, by {fused.header['fused']} with weights {used}"
    lines = [f"{escaped(str(out))}: {how}"]
    if learn:
        each = ", ".join(f"{one:.4f}" for one in alone)
        lines.append(f"{measure} there: {value:.4f}; of each run alone: {each}")
    print_result({**counts, **header, "learned": learning}, lines, json)


def _fusion_of(by: str, norm: str | None, k: int | None, weights: str | None) -> Fusion:
    """The fusion that the options name; `UsageError` for one that its way of fusing does not use."""
    from eyespot.search.fused import Fusion

    if norm is not None and by == "rrf":
        raise UsageError("--norm is about scores; add --by combsum, or leave it out")
    if k is not None and by != "rrf":
        raise UsageError("-k is about ranks; add --by rrf, or leave it out")
    try:
        given = None if weights is None else tuple(float(part) for part in weights.split(","))
    except ValueError:
        raise UsageError(f"--weights takes a number for each run, as in --weights 2,1, not {weights!r}") from None
    return Fusion(by, norm or "min-max", 60 if k is None else k, given)
