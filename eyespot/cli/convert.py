"""`eyespot convert`: a run or judgements from one format of the field into another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import note, print_json, print_summary
from eyespot.cli.settings import json_option
from eyespot.types import UsageError

BEIR = "beir"


def run(
    source: Path = typer.Argument(..., help="The run or the judgements to read: a file or a folder."),
    out: Path = typer.Argument(..., help="What to write; the ending says the format, else TREC."),
    qrels: bool = typer.Option(None, "--qrels/--run", help="What the source holds.", show_default="as it looks"),
    format: str = typer.Option(None, "--format", help="The format to read.", show_default="by name and content"),
    to: str = typer.Option(None, "--to", help="The format to write.", show_default="by the name's ending"),
    queries: Path = typer.Option(None, "--queries", help="A table with the texts of the queries, for --to beir."),
    force: bool = typer.Option(False, "--force", help="Replace a file that is there."),
    json: bool = json_option(),
) -> None:
    """Convert a run or judgements between TREC, JSON, parquet, npz, BEIR and the formats of benchmarks."""
    if out.exists() and (out.is_dir() or not force):
        way_out = "name a new folder" if out.is_dir() else "name another file, or replace it with --force"
        raise UsageError(f"{out} is there already; {way_out}")
    if qrels is None:
        qrels = to == BEIR or _looks_like_judgements(source, format)
    if queries is not None and to != BEIR:
        raise UsageError("--queries adds texts to a BEIR folder; write one with --to beir, or leave the option out")
    done = _qrels(source, out, (format, to), queries) if qrels else _run(source, out, (format, to))
    for sentence in done.pop("notes"):
        note(sentence)
    if json:
        print_json({"out": str(out), **done})
    print_summary(f"{done['rows']:,} rows of {done['queries']:,} queries written to {out}")


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


def _run(source: Path, out: Path, formats: tuple[str | None, str | None]) -> dict[str, Any]:
    from eyespot.runs import read_run, write_run

    found, notes = read_run(source, formats[0]), []
    write_run(found, out, formats[1])
    back = read_run(out, formats[1])
    if lost := len(found) - len(back):
        notes.append(f"{lost} queries have no results, which this format cannot say; .parquet and .json keep them")
    if cut := len(found.score) - len(back.score):
        notes.append(f"{cut} results below the depth of this format are left out")
    return {"holds": "run", "queries": len(back), "rows": len(back.score), "notes": notes}


def _qrels(source: Path, out: Path, formats: tuple[str | None, str | None], queries: Path | None) -> dict[str, Any]:
    from eyespot.runs import beir, read_judged, write_qrels
    from eyespot.runs.judged import JudgedQueries, read_queries
    from eyespot.storage.atomic import whole_folder

    judged, notes = read_judged(source, formats[0]), []
    if formats[1] == BEIR:
        texts = judged.queries if queries is None else read_queries(queries)
        silent = [query for query in judged.qrels if not texts.get(query, {}).get("text")]
        if silent:
            notes.append(f"{len(silent)} queries have no text, so their ids stand for it; name a table with --queries")
        named = {
            query: {**texts.get(query, {}), **({"text": query} if query in silent else {})} for query in judged.qrels
        }
        with whole_folder(out) as folder:
            beir.write(JudgedQueries(named, judged.qrels, judged.images), folder)
    else:
        write_qrels(judged.qrels, out, formats[1])
    return {"holds": "qrels", "queries": len(judged.qrels), "rows": len(judged.qrels.grade), "notes": notes}
