"""`eyespot stats`: how many queries, images and pairs any judgements hold, and how many matches a query has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json, print_line
from eyespot.cli.settings import json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.metrics import Scores
    from eyespot.runs.judged import JudgedQueries
    from eyespot.runs.statistics import MatchCountBin, Statistics

COVERAGE = ("Judged@10", "Judged@50", "Judged@100")
WIDTH = 40  # characters of the longest bar


def run(
    qrels: Path = typer.Argument(help="Judgements in any known format."),
    queries: Path | None = typer.Option(None, help="The queries to include, with their columns: csv, jsonl, parquet."),
    run: Path | None = typer.Option(None, "--run", help="A run, to show how many of its first hits are judged."),
    by: str | None = typer.Option(None, help="Also count separately for every value of this column of the queries."),
    format: str | None = typer.Option(None, "--format", help="The format of the judgements."),
    run_format: str | None = typer.Option(None, help="The format of the run."),
    json: bool = json_option(),
) -> None:
    """Count queries, pairs, images and matches per query in judgements."""
    judged = _read(qrels, queries, format)
    scores = None if run is None else _coverage(run, run_format, judged)
    whole = _statistics(judged, list(judged.queries))
    from eyespot.runs.queries import groups

    if by is None:
        parts = {}
    else:
        if not any(judged.queries.values()):
            raise UsageError("a breakdown needs the columns of the queries; name their file with --queries")
        parts = {value: (ids, _statistics(judged, ids)) for value, ids in groups(judged.queries, by).items()}
    if json:
        print_json(_as_json(whole, parts, by, scores))
        return
    for text in _lines(whole, parts, by, scores):
        print_line(text)


def _read(qrels: Path, queries: Path | None, format: str | None) -> JudgedQueries:
    """The judgements with the queries that count: those of `--queries`, else those that the same files list."""
    from dataclasses import replace

    from eyespot.runs import read_judged

    judged = read_judged(qrels, format)
    if queries is not None:
        from eyespot.runs.queries import read_queries

        found = read_queries(queries)
        passed, without = sum(q not in found for q in judged.qrels), sum(q not in judged.qrels for q in found)
        if without == len(found):
            raise NothingFound(f"none of the queries of {queries} is judged; check that both files name queries alike")
        if passed:
            note(f"{passed} of {len(judged.qrels)} judged queries are not in {queries}; they are passed over")
        if without:
            note(f"{without} of {len(found)} queries of {queries} have no judgements; they count with 0 matches")
        judged = replace(judged, queries=found)
    elif not judged.queries:
        judged = replace(judged, queries={query: {} for query in judged.qrels})
    if not judged.queries:
        raise NothingFound(f"{qrels} judges no query; check that it is the right file")
    return judged


def _statistics(judged: JudgedQueries, queries: list[str]) -> Statistics:
    from eyespot.runs.statistics import statistics

    return statistics(judged.qrels, queries, len(judged.images) or None)


def _coverage(path: Path, format: str | None, judged: JudgedQueries) -> Scores:
    """The judged share of the first hits of every query that counts and that the run ranks."""
    from eyespot.metrics import Rules, evaluate
    from eyespot.runs import read_run
    from eyespot.types import Qrels

    ranked = read_run(path, format)
    grades = {query: judged.qrels.grades.get(query, {}) for query in judged.queries}
    scores = evaluate(ranked, Qrels(grades), COVERAGE, Rules(missing="skip"))
    if not scores.queries:
        raise NothingFound("the run ranks none of the queries; check that both files name queries alike")
    if scores.missing:
        note(f"{len(scores.missing)} of {len(grades)} queries are missing from the run; its shares leave them out")
    return scores


def _of(scores: Scores, queries: Iterable[str]) -> dict[str, float]:
    wanted = set(queries)
    return scores.take([query in wanted for query in scores.queries]).means


# -- as JSON ------------------------------------------------------------------------------------------------


def _as_json(
    whole: Statistics, parts: Mapping[str, tuple[list[str], Statistics]], by: str | None, scores: Scores | None
) -> dict[str, Any]:
    told = whole.as_json() | ({} if scores is None else {"run": scores.means})
    if by is None:
        return told
    return {**told, "by": {by: {value: _part(ids, part, scores) for value, (ids, part) in parts.items()}}}


def _part(ids: list[str], part: Statistics, scores: Scores | None) -> dict[str, Any]:
    return part.as_json() | ({} if scores is None else {"run": _of(scores, ids)})


# -- as lines -----------------------------------------------------------------------------------------------


def _lines(
    whole: Statistics, parts: Mapping[str, tuple[list[str], Statistics]], by: str | None, scores: Scores | None
) -> Iterator[str]:
    shown = [*_facts(whole), *(() if scores is None else ((name, f"{v:.4f}") for name, v in scores.means.items()))]
    yield from (f"{name:<18} {value}" for name, value in shown)
    yield ""
    yield from _bars(whole.histogram)
    if by is not None:
        yield ""
        head = [
            by,
            "queries",
            "judged",
            "relevant",
            "mean",
            "median",
            "least",
            "most",
            *(scores.means if scores else ()),
        ]
        rows = [head, *(_row(value, *part, scores) for value, part in parts.items())]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *numbers in rows:
            yield "  ".join([f"{name:<{widths[0]}}", *(f"{n:>{w}}" for n, w in zip(numbers, widths[1:], strict=True))])


def _facts(whole: Statistics) -> Iterator[tuple[str, Any]]:
    found = whole.matches
    yield from (("queries", whole.queries), ("judged pairs", whole.judged), ("relevant pairs", whole.relevant))
    yield from (("images judged", whole.images_judged), ("images relevant", whole.images_relevant))
    yield "images to search", "not listed" if whole.pool is None else whole.pool
    quartiles = f"quartiles {found.lower:g} and {found.upper:g}, {found.least:g} to {found.most:g}"
    yield "matches per query", f"mean {found.mean:.2f}, median {found.median:g}, {quartiles}"
    yield "without a match", len(whole.barren)
    yield "grades", ", ".join(f"{grade}: {count}" for grade, count in whole.grades.items()) or "none"


def _bars(bins: list[MatchCountBin]) -> Iterator[str]:
    """A histogram; a bin that holds a query has a mark, however many the fullest has."""
    top = max(bin.queries for bin in bins)
    spans = [f"{bin.least}" if bin.least >= bin.most else f"{bin.least}–{bin.most}" for bin in bins]
    yield "matches   queries"
    for span, bin in zip(spans, bins, strict=True):
        yield f"{span:>9} {bin.queries:>7}  {'#' * -(-bin.queries * WIDTH // top)}".rstrip()


def _row(value: str, ids: list[str], part: Statistics, scores: Scores | None) -> list[str]:
    found = part.matches
    counts = [part.queries, part.judged, part.relevant]
    spread = [f"{found.mean:.2f}", *(f"{number:g}" for number in (found.median, found.least, found.most))]
    shares = _of(scores, ids).values() if scores else ()
    return [value or "(none)", *map(str, counts), *spread, *(f"{share:.4f}" for share in shares)]
