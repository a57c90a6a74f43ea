"""`eyespot stats`: how many queries, images and pairs any judgements hold, and how many matches a query has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_result
from eyespot.cli.settings import QRELS_FORMAT, QUERIES, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.metrics import Scores
    from eyespot.runs.judged import JudgedQueries
    from eyespot.runs.statistics import Statistics
    from eyespot.types import Run

COVERAGE = ("Judged@10", "Judged@50", "Judged@100")
WIDTH = 40  # characters of the longest bar


def run(
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    queries: Path | None = QUERIES,
    run: Path | None = typer.Option(None, "--run", help="A run, to show how many of its first hits are judged."),
    by: str | None = typer.Option(None, help="Also count separately for every value of this column of the queries."),
    format: str | None = QRELS_FORMAT,
    run_format: str | None = typer.Option(None, help="The format of the run."),
    json: bool = json_option(),
) -> None:
    """Count queries, pairs, images and matches per query in judgements."""
    from eyespot.runs import read_run
    from eyespot.runs.judged import groups
    from eyespot.runs.statistics import statistics

    judged = _read(qrels, queries, format)
    scores = None if run is None else _coverage(read_run(run, run_format), judged)
    if by is not None and not any(judged.queries.values()):
        raise UsageError("a breakdown needs the columns of the queries; name their file with --queries")
    parts = {} if by is None else groups(judged.queries, by)
    pool = len(judged.images) or None
    rows: dict[str, tuple[Statistics, dict[str, float]]] = {}
    for value, ids in parts.items():
        wanted = set(ids)
        of_part = scores and scores.take([query in wanted for query in scores.queries]).means
        rows[value] = statistics(judged.qrels, ids, pool), of_part or {}
    whole = statistics(judged.qrels, list(judged.queries), pool)
    shares = {} if scores is None else scores.means
    fields = whole.as_json() | ({"run": shares} if scores else {})
    facts = [*_facts(whole), *((name, f"{share:.4f}") for name, share in shares.items())]
    lines = [f"{name:<18} {fact}" for name, fact in facts]
    lines += ["", "matches   queries"]
    top = max(bin.queries for bin in whole.histogram)
    for bin in whole.histogram:  # one that holds a query has a mark, however many the fullest has
        span = f"{bin.least}" if bin.least >= bin.most else f"{bin.least}–{bin.most}"
        lines.append(f"{span:>9} {bin.queries:>7}  {'#' * -(-bin.queries * WIDTH // top)}".rstrip())
    if by is not None:
        each = {value: part.as_json() | ({"run": own} if scores else {}) for value, (part, own) in rows.items()}
        fields |= {"by": {by: each}}
        lines += ["", *_table(by, rows, list(shares))]
    print_result(fields, lines, json)


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
            note(f"{passed} of {len(judged.qrels)} judged queries are not in {queries}; they are passed over")
        if without:
            note(f"{without} of {len(table)} queries of {queries} have no judgements; they count with 0 matches")
        judged = replace(judged, queries=table)
    elif not judged.queries:
        judged = replace(judged, queries={query: {} for query in judged.qrels})
    if not judged.queries:
        raise NothingFound(f"{qrels} judges no query; check that it is the right file")
    return judged


def _coverage(run: Run, judged: JudgedQueries) -> Scores:
    """The judged share of the first hits of every query that counts and that the run ranks."""
    from eyespot.metrics import Rules, evaluate
    from eyespot.types import Qrels

    grades = {query: judged.qrels.grades.get(query, {}) for query in judged.queries}
    scores = evaluate(run, Qrels(grades), COVERAGE, Rules(missing="skip"))
    if not scores.queries:
        raise NothingFound("the run ranks none of the queries; check that both files name queries alike")
    if scores.missing:
        note(f"{len(scores.missing)} of {len(grades)} queries are missing from the run; its shares leave them out")
    return scores


# -- as lines -----------------------------------------------------------------------------------------------


def _facts(whole: Statistics) -> Iterator[tuple[str, Any]]:
    matches = whole.matches
    yield from (("queries", whole.queries), ("judged pairs", whole.judged), ("relevant pairs", whole.relevant))
    yield from (("images judged", whole.images_judged), ("images relevant", whole.images_relevant))
    yield "images to search", "not listed" if whole.pool is None else whole.pool
    quartiles = f"quartiles {matches.lower:g} and {matches.upper:g}, {matches.least:g} to {matches.most:g}"
    yield "matches per query", f"mean {matches.mean:.2f}, median {matches.median:g}, {quartiles}"
    yield "without a match", len(whole.barren)
    yield "grades", ", ".join(f"{grade}: {count}" for grade, count in whole.grades.items()) or "none"


def _table(by: str, parts: Mapping[str, tuple[Statistics, dict[str, float]]], measures: list[str]) -> Iterator[str]:
    """A table with a row for each value of the column."""
    rows = [[by, "queries", "judged", "relevant", "mean", "median", "least", "most", *measures]]
    for value, (part, shares) in parts.items():
        counts = map(str, (part.queries, part.judged, part.relevant))
        matches = part.matches
        spread = [f"{matches.mean:.2f}", *(f"{number:g}" for number in (matches.median, matches.least, matches.most))]
        rows.append([value or "(none)", *counts, *spread, *(f"{share:.4f}" for share in shares.values())])
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *numbers in rows:
        cells = (f"{number:>{width}}" for number, width in zip(numbers, widths, strict=True))
        yield "  ".join([f"{name:<{first}}", *cells])
