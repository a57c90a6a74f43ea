"""`eyespot compare`: whether one run is better than another, on which queries, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import escaped, print_result, refuse_over_input, warn, warn_all
from eyespot.cli.metrics import itself_aside, scored, scoring_of
from eyespot.cli.settings import QRELS_FORMAT, RUN_FORMAT, flag, gallery_here, gallery_option, json_option
from eyespot.settings.measure import PageSettings, ScoringSettings
from eyespot.types import EyespotError, NothingFound, Qrels, Run, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.metrics import Compared, Comparison
    from eyespot.reports.moved import Section
    from eyespot.search.collection import Collection
    from eyespot.types import Query


def run(
    settings: ScoringSettings,
    shown: PageSettings,
    runs: list[Path] = typer.Argument(
        help="Two or more rankings in any known format; all are compared with the first."
    ),
    qrels: Path = typer.Option(..., "--qrels", help="Judgements in any known format."),
    samples: int = typer.Option(10_000, min=1, max=10_000_000, help="The number of random samples of each test."),
    seed: int = typer.Option(0, min=0, help="The same seed gives the same numbers."),
    correction: str = typer.Option("holm", help="Correction for multiple tests: holm or none."),
    moved: int = typer.Option(6, min=0, help="How many of the queries that moved most to show, each way."),
    html: Path | None = typer.Option(None, "--html", help="Write a page with the images of these queries."),
    gallery: Path | None = gallery_option("The gallery with the images of the page, by id, path or file stem."),
    queries: Path | None = typer.Option(None, help="The texts of the queries, for the page: a table of id and text."),
    per_query: bool = flag("--per-query", "Also print both values and the difference of every query."),
    qrels_format: str | None = QRELS_FORMAT,
    run_format: str | None = RUN_FORMAT,
    json: bool = json_option(),
) -> None:
    """Compare rankings query by query: differences with intervals, tests, and the queries that moved most."""
    from eyespot.html import checked_address
    from eyespot.metrics import Resampling, compare
    from eyespot.reports.moved import RunPair, sections
    from eyespot.runs import read_qrels, read_queries, read_run
    from eyespot.runs.trec import trec_order

    if len(runs) < 2:
        raise UsageError("a comparison needs two runs or more: eyespot compare RUN_A RUN_B --qrels QRELS")
    if not html and (queries or shown.images):
        raise UsageError("--queries and --images are about the page; say where to write it with --html FILE")
    if html:
        refuse_over_input(html, *runs, qrels, queries)
    checked_address(shown.page)  # before all that takes long
    scoring = scoring_of(settings)
    names = [_name_of(path) for path in runs]
    names = names if len(set(names)) >= len(set(runs)) else [*map(str, runs)]  # the same path may come again
    turns = (names[:at].count(name) + 1 for at, name in enumerate(names))
    names = [f"{name} ({turn})" if turn > 1 else name for name, turn in zip(names, turns, strict=True)]
    judged = read_qrels(qrels, qrels_format)
    rankings = {
        name: itself_aside(read_run(path, run_format), judged, settings, escaped(name))
        for name, path in zip(names, runs, strict=True)
    }
    scores = {name: scored(each, judged, scoring, escaped(name)) for name, each in rankings.items()}
    comparison = compare(scores, Resampling(samples, seed), correction)
    warn_all(comparison.notes)
    if html:
        if scoring[1].order == "trec":
            rankings = {name: trec_order(each) for name, each in rankings.items()}
        table = read_queries(queries) if queries else {}
        texts = {query: str(facts["text"]) for query, facts in table.items() if facts.get("text")}
        chosen: list[Section] = []  # what moved by the first measure, one run after another
        for pair in _first_measure(comparison):
            rel = comparison.measures[pair.measure].definition.get("rel", 1)
            names = [comparison.baseline, pair.run]
            both = RunPair((names[0], names[1]), (rankings[names[0]], rankings[names[1]]), judged, rel)
            chosen += sections(both, pair, moved, texts)
        _write_page(html, comparison, chosen, gallery, shown)
    print_result(comparison.as_json(moved, per_query), _lines(comparison, moved, per_query), json)


def _name_of(path: Path) -> str:
    """The system whose report the run lies in, or its file's name."""
    from eyespot.reports.summary import read_summary

    with suppress(EyespotError):
        return str(read_summary(path.parent)["system"])
    return path.name


LEVEL = 0.05  # of the corrected p, below which a difference is called one
HEAD = (
    *("measure", "run", "baseline", "mean", "difference", "95% interval"),
    *("p", "corrected", "won/lost/tied", "effect"),
)


def _lines(comparison: Comparison, moved: int, per_query: bool) -> Iterator[str]:
    """A table with a row for each measure of each run, and the queries that moved."""
    rows: list[tuple[str, ...]] = [HEAD]
    for pair in comparison.pairs:
        (before, after), (low, high) = pair.means, pair.interval
        effect = "" if pair.effect != pair.effect else f"{pair.effect:+.2f}"
        spread = "no interval" if low != low else f"[{low:+.4f}, {high:+.4f}]"
        values = f"{before:.4f}", f"{after:.4f}", f"{pair.difference:+.4f}", spread
        ps = (f"{p:.4f}" if p >= 0.001 else f"{p:.1e}" for p in (pair.flips.p, pair.corrected_p))
        won = f"{pair.wins}/{pair.losses}/{pair.ties}"
        rows.append((pair.measure, escaped(pair.run), *values, *ps, won, effect))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    yield ""
    for pair in comparison.pairs if per_query else _first_measure(comparison):
        for move in pair.moves() if per_query else [*pair.down(moved), *pair.up(moved)]:
            numbers = f"{move.baseline:.6f}\t{move.value:.6f}\t{move.difference:+.6f}"
            yield f"{pair.measure}\t{escaped(pair.run)}\t{escaped(move.query)}\t{numbers}"


def _first_measure(comparison: Comparison) -> list[Compared]:
    return [pair for pair in comparison.pairs if pair.measure == comparison.pairs[0].measure]


def encoders(
    gallery: Path | None = gallery_option("The gallery, which has vectors of each of them."),
    encoder: list[str] = typer.Option(..., "-e", "--encoder", metavar="NAME", help="Two or more, that in use first."),
    by: list[str] = typer.Option(
        [], metavar="JUDGE", help="Only verdicts of this judge; several judges vote; `all` for every judge."
    ),
    samples: int = typer.Option(10_000, min=1, max=10_000_000, help="The number of random samples of each test."),
    json: bool = json_option(),
) -> None:
    """Compare encoders of a gallery by your own verdicts: which ranks what you judged better, and how sure that is."""
    import eyespot
    from eyespot.metrics import Resampling, Rules, compare, parse

    if len(set(encoder)) < 2:
        raise UsageError("one encoder has nothing to be compared with; name two, as in: -e starter -e siglip2-base")
    place = gallery_here(gallery)
    queries, judged = _verdicts(place, by)
    lost: dict[str, str] = {}  # why a query cannot be searched
    runs = {name: _of_judged(eyespot.open(place, name), queries, judged, lost=lost) for name in encoder}
    warn_all([f"left out: {why}" for why in lost.values()])
    grades: dict[str, dict[str, float]] = {}
    for query, given in judged.items():
        rankings = [[] if query in lost else run[query] for run in runs.values()]
        in_all = set.intersection(*({hit.image for hit in hits} for hits in rankings))
        each = {image: grade for image, grade in given.items() if image in in_all}
        if each and max(each.values()) > 0 >= min(each.values()):
            grades[query] = each
    mixed = Qrels(grades)
    if not len(mixed):
        raise NothingFound(
            f"no query has a yes and a no on record (--yes and --no leave none); give both: eyespot serve -g {place}"
        )
    measures = [parse("AP"), parse("nDCG")]
    scores = {name: scored(run, mixed, (measures, Rules()), name) for name, run in runs.items()}
    comparison = compare(scores, Resampling(samples))
    warn_all(comparison.notes)
    lines = list(_lines(comparison, 0, False))
    for pair in _first_measure(comparison):
        shown = pair.corrected_p < LEVEL  # an interval of few queries is too narrow to say so
        better = "" if not shown else pair.run if pair.difference > 0 else comparison.baseline
        finding = f"{better} ranks them better" if better else f"no difference from {pair.run} is shown"
        verdicts = quantity(sum(map(len, mixed.values())), "verdict")
        lines.append(f"{finding}, by {quantity(len(mixed), 'query')} with {verdicts}")
    print_result(comparison.as_json(0, False) | {"queries": len(mixed)}, lines, json)


def _verdicts(place: Path, by: list[str]) -> tuple[dict[str, Query], Qrels]:
    """The queries that were judged in a gallery, and their verdicts, by digest."""
    from eyespot.ledger.export import Reading, qrels, voters
    from eyespot.ledger.judgements import Judgements

    if not (place / "ledger.sqlite").is_file():
        raise NothingFound(f"nobody has judged photos of {place} yet; do so with: eyespot serve -g {place}")
    with Judgements(place / "ledger.sqlite") as ledger:
        queries = {digest: query for digest, query in ledger.queries().items() if query is not None}
        whose = voters(ledger.judges(), by)
        rows = (row for row in ledger.rows() if row.judgement.judge in whose)
        return queries, qrels(rows, {digest: digest for digest in queries}, Reading())


def _of_judged(collection: Collection, queries: Mapping[str, Query], judged: Qrels, *, lost: dict[str, str]) -> Run:
    """The judged photos of each query alone, in the order that an encoder gives them."""
    import numpy as np

    from eyespot.settings.search import SearchSettings

    found = {}
    for query in judged:
        rows = collection.view.rows_by_id(list(judged[query]))
        mask = np.zeros(int(collection.view.starts[-1]), bool)
        mask[rows[rows >= 0]] = True
        stage = collection.stage(SearchSettings.read(by="look"), k=len(rows), mask=mask & collection.view.live)
        try:
            found[query] = stage([queries[query]])[query]
        except UsageError as error:  # a picture that is gone, terms that cancel out
            lost[query] = str(error)
    return Run(found)


def _write_page(
    html: Path, comparison: Comparison, chosen: list[Section], gallery: Path | None, shown: PageSettings
) -> None:
    """The page, with pictures from the folder, and what it lacks from the gallery that is named or the nearest one."""
    from eyespot.html import checked_address
    from eyespot.reports.moved import as_html, from_folder, from_gallery, linked, shown_images, summary
    from eyespot.storage.atomic import write_whole

    wanted = shown_images(chosen)
    pictures = from_folder(shown.images, wanted) if shown.images else {}
    place = gallery_here(gallery)
    if gallery or (place / "gallery.toml").is_file():
        pictures |= from_gallery(place, [image for image in wanted if image not in pictures])
    if lacking := len(wanted) - len(pictures):
        way_out = "name the gallery that has them with -g, or the folder with --images"
        warn(f"{lacking} of the page's {len(wanted)} images were not found and are shown by their ids; {way_out}")
    chosen, pictures = linked(checked_address(shown.page), chosen, pictures)
    first = _first_measure(comparison)
    title = f"{', '.join(pair.run for pair in first)} against {comparison.baseline}"
    page = as_html(title, chosen, pictures, [summary(pair) for pair in first]).encode()
    write_whole(html, lambda file: file.write(page))
