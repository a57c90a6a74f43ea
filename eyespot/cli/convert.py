"""`eyespot convert`: a run or judgements from one format of the field into another."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import print_json, print_summary, warn
from eyespot.cli.settings import flag, json_option
from eyespot.types import Qrels, UsageError

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
            warn(f"{lost} queries have no results, which this format cannot say; .parquet and .json keep them")
        if cut := len(run.score) - len(back.score):
            warn(f"{cut} results below the depth of this format are left out")
        written = len(back), len(back.score)
    if json:
        holds = "qrels" if qrels else "run"
        print_json({"out": str(out), "holds": holds, "queries": written[0], "rows": written[1]})
    print_summary(f"{written[1]:,} rows of {written[0]:,} queries written to {out}")


def _looks_like_judgements(source: Path, format: str | None) -> bool:
    """By the format if only judgements have it; else a folder or table of them, or lines `query 0 image grade`."""
    from eyespot.runs import QRELS_FORMATS, RUN_FORMATS
    from eyespot.storage.text_files import data_of

    if format is not None:
        return format.partition(":")[0] in QRELS_FORMATS.keys() - RUN_FORMATS.keys()
    name = source.name.lower().removesuffix(".gz")
    if source.is_dir() or name.endswith((".csv", ".tsv", ".jsonl")):
        return True
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
        warn(f"{len(silent)} queries have no text, so their ids stand for it; name a table with --queries")
    with whole_folder(out) as folder:
        beir.write(JudgedQueries(named, judged.qrels, judged.images), folder)
    return judged.qrels
