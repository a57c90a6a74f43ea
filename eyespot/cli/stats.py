"""`eyespot stats`: how many queries, images and pairs any judgements hold, and how many matches a query has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import print_result, warn
from eyespot.cli.settings import QRELS_FORMAT, QUERIES, json_option
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.runs.judged import JudgedQueries
    from eyespot.runs.statistics import MatchCountBin

WIDTH = 40  # characters of the longest bar
MOST_GRADES = 12  # which are listed one by one


def run(
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    queries: Path | None = QUERIES,
    by: str | None = typer.Option(None, help="Also count separately for every value of this column of the queries."),
    format: str | None = QRELS_FORMAT,
    json: bool = json_option(),
) -> None:
    """Count queries, pairs, images and matches per query in judgements."""
    from eyespot.runs.judged import groups
    from eyespot.runs.statistics import statistics

    judged = _read(qrels, queries, format)
    if by is not None and not any(judged.queries.values()):
        raise UsageError("a breakdown needs the columns of the queries; name their file with --queries")
    pool = len(judged.images) or None
    whole = statistics(judged.qrels, list(judged.queries), pool)
    matches = whole.matches
    quartiles = f"quartiles {matches.lower:g} and {matches.upper:g}, {matches.least:g} to {matches.most:g}"
    facts = {
        "queries": whole.queries,
        "judged pairs": whole.judged,
        "relevant pairs": whole.relevant,
        "images judged": whole.images_judged,
        "images relevant": whole.images_relevant,
        "images to search": "not listed" if whole.pool is None else whole.pool,
        "matches per query": f"mean {matches.mean:.2f}, median {matches.median:g}, {quartiles}",
        "without a match": len(whole.without_relevant),
        "grades": ", ".join(f"{grade}: {count}" for grade, count in [*whole.grades.items()][:MOST_GRADES]) or "none",
    }
    if (more := len(whole.grades) - MOST_GRADES) > 0:
        facts["grades"] = f"{facts['grades']}, and {more:,} more: are these scores of a run?"
    lines = [*(f"{name:<18} {fact}" for name, fact in facts.items()), "", "matches   queries", *_bars(whole.histogram)]
    fields = asdict(whole)
    if by is not None:
        fields["by"] = {by: {}}
        rows = [[by, "queries", "judged", "relevant", "mean", "median", "least", "most"]]
        for value, ids in groups(judged.queries, by).items():
            part = statistics(judged.qrels, ids, pool)
            fields["by"][by][value] = asdict(part)
            of, counts = part.matches, map(str, (part.queries, part.judged, part.relevant))
            spread = f"{of.mean:.2f}", f"{of.median:g}", f"{of.least:g}", f"{of.most:g}"
            rows.append([value or "(none)", *counts, *spread])
        lines += ["", *_aligned(rows)]
    print_result(fields, lines, json)


def _bars(histogram: Sequence[MatchCountBin]) -> Iterator[str]:
    """How many queries have how many matches; a bin that holds a query has a mark, however many the fullest has."""
    top = max(bin.queries for bin in histogram)
    for bin in histogram:
        span = f"{bin.least}" if bin.least >= bin.most else f"{bin.least}–{bin.most}"
        yield f"{span:>9} {bin.queries:>7}  {'#' * -(-bin.queries * WIDTH // top)}".rstrip()


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    """Rows as lines: names to the left, numbers to the right."""
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield "  ".join([f"{name:<{first}}", *right])


def _read(qrels: Path, queries: Path | None, format: str | None) -> JudgedQueries:
    """The judgements with the queries that count: those of `--queries`, else those that the same files list."""
    from eyespot.runs import read_judged, read_queries

    judged = read_judged(qrels, format)
    if queries is not None:
        table = read_queries(queries)
        passed, without = sum(q not in table for q in judged.qrels), sum(q not in judged.qrels for q in table)
        if without == len(table):
            raise NothingFound(f"none of the queries of {queries} is judged; check that both files name queries alike")
        if passed:
            warn(f"passed over: {passed} of {quantity(len(judged.qrels), 'judged query')}, not in {queries}")
        if without:
            warn(f"counted with 0 matches: {without} of {quantity(len(table), 'query')} of {queries}, not judged")
        judged = replace(judged, queries=table)
    elif not judged.queries:
        judged = replace(judged, queries={query: {} for query in judged.qrels})
    if not judged.queries:
        raise NothingFound(f"{qrels} judges no query; check that it is the right file")
    return judged
