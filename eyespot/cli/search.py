"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._answering import open_collection
from eyespot.cli._hits_out import (
    HitsOut,
    album_option,
    all_columns_option,
    copy_option,
    csv_option,
    open_option,
    xmp_option,
)
from eyespot.cli._judge_options import end
from eyespot.cli._ray import means_on, ray_option, refuse_on_cluster, workers_option
from eyespot.cli._rerank_view import RerankView, SearchOutput, calibration_options
from eyespot.cli.console import SOME_FAILED, escaped, note, print_json, print_line, print_raw, progress_bar
from eyespot.cli.settings import (
    PanelCommand,
    gallery_option,
    index_option,
    json_option,
    searched_here,
    with_settings,
)
from eyespot.search.parts import condition_of, judge_options, ledger_of, moves_of, rewriter
from eyespot.settings.fields import EVERYDAY, JUDGES, RESEARCH
from eyespot.settings.judge import DEPTH
from eyespot.settings.search import FEW, SearchSettings
from eyespot.types import Note, NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
    from eyespot.types import Mask, Query, Run


UNSAID, SHARES = (
    ("look", "taught", "moved"),
    ("term", "word", "without labels"),
)  # codes of reasons: in no line, and in a line of their own
OUTPUT = "Output"


class Command(PanelCommand):
    """A verb whose query may begin with a minus and a space, which no option does."""

    panels = (EVERYDAY, OUTPUT, JUDGES, RESEARCH)
    panel_of = dict.fromkeys(("index", "ray", "workers"), RESEARCH) | dict.fromkeys(
        ("why", "json", "paths", "print0", "html", "open", "copy", "album", "csv", "all_columns", "xmp"), OUTPUT
    )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let such a query pass as an argument."""
        return super().parse_args(ctx, [f" {arg}" if arg.startswith("- ") else arg for arg in args])


@with_settings(SearchSettings)
def run(
    context: typer.Context,
    settings: SearchSettings,
    query: list[str] = typer.Argument(
        None, help="Words, pictures, weights: 2:heron + ./pool.jpg - people; without any, filters list by date."
    ),
    gallery: Path = gallery_option("The gallery to search."),
    image: Path = typer.Option(None, "--image", help="A picture to search with, alone or with words."),
    index: str = index_option(),
    ray: str = ray_option(),
    workers: int = workers_option(),
    why: bool = typer.Option(False, "--why", help="Say what each term and word of the query adds."),
    json: bool = json_option(),
    paths: bool = typer.Option(False, "--paths", help="Print only paths, one per line."),
    print0: bool = typer.Option(False, "--print0", help="Print only paths, each followed by a NUL (for xargs -0)."),
    html: Path = typer.Option(None, "--html", help="Write a contact sheet."),
    open: bool = open_option(),
    copy: Path = copy_option(),
    album: Path = album_option(),
    csv: Path = csv_option(),
    all_columns: bool = all_columns_option(),
    xmp: str = xmp_option(),
    server: bool = typer.Option(True, "--server/--no-server", help="Ask a server of this gallery that runs here."),
) -> None:
    """Find pictures by words, by picture, or both."""
    output = Printing(_path_end(json, paths, print0), json, html, HitsOut(copy, album, csv, all_columns, xmp, open))
    refuse_on_cluster(settings.adapt, ray)
    words = _words(query, [settings.where or "", *settings.label])
    if without_query := words is None and image is None:
        _refuse_without_words(settings, why)
    curve, few = calibration_options(settings), settings.k or FEW
    grouped = curve is None if settings.grouped is None else settings.grouped
    settings = _with_depth(settings, few)
    started = time.perf_counter()
    collection = open_collection(searched_here(gallery, settings.encoder), settings.encoder, index)
    collection.means = context.with_resource(means_on(ray, workers)) or collection.means
    mask = _allowed(collection, settings)
    if without_query and settings.filters:
        listed = collection.by_date(mask, few, grouped, settings)
        return _show(SearchOutput(listed, {}, {}, listed, column="taken"), started, output)
    wanted = collection.query(words, image)
    ledger = ledger_of(settings.ledger, collection.gallery.path)
    rewriting = rewriter(settings.expand, ledger) if settings.expand else None
    if settings.ledger is not None and settings.feedback and not ledger.exists():
        note(f"there is no ledger {ledger} yet; without --ledger the gallery's own is read")
    moves, deep = moves_of(collection, wanted, settings), max(few, settings.depth or 0)
    stage = collection.stage(settings, k=deep, mask=mask, feedback=moves, rewriting=rewriting, grouped=grouped)
    results = collection.answered(wanted, stage, settings)
    _refuse_no_words(results)
    _note_wordings(settings.expand, wanted, results)
    look = RerankView(settings, curve, collection.gallery.path)
    if settings.dry_run:
        return look.tell_plan(results, wanted, json)
    shown = look.output(results, wanted, settings.k)
    reasons = _shares(collection, wanted, shown.run, rewriting) if why else _why(collection, wanted, shown.run)
    _show(shown._replace(why=reasons), started, output)
    if shown.looked:
        end(shown.looked)


def _allowed(collection: Collection, settings: SearchSettings) -> Mask:
    """The rows that the filter lets through, (rows,), with a progress bar for one that takes long."""
    columns: list[str] = []
    if settings.filters:
        from eyespot.gallery.filters import columns_of

        columns = list(columns_of(collection.view.tables))
    with progress_bar("%", delay=1.0) as progress:
        return collection.allowed(condition_of(settings, columns), progress)


def _with_depth(settings: SearchSettings, few: int) -> SearchSettings:
    """The settings with the depth of their judge; `UsageError` for an unknown one, before a search that takes long.

    A calibration covers all hits that are shown; a judge that re-ranks costs more the deeper it looks.
    """
    if settings.rerank is None:
        return settings
    judge_options(settings)
    usual = DEPTH if settings.calibrate is None else max(few, DEPTH)
    return settings.model_copy(update={"depth": settings.depth or usual})


def _refuse_no_words(results: Run) -> None:
    """`NothingFound` where a search by words alone has no hit, before anybody judges none."""
    if results.header.get("by") == "words" and not any(results.values()):
        raise NothingFound("no label, title or name holds a word of the query; search by look with --by look")


def _why(collection: Collection, query: Query, run: Run) -> dict[str, list[Note]]:
    """For each hit by its image, what put it there."""
    from eyespot.search.why import reasons

    images = [hit.image for hit in run[query.id]]
    if (run.header.get("by", "look") == "look" and "moved" not in run.header) or not images:
        return {}
    found = reasons(collection, query, run.header, collection.view.rows_of(images))
    return dict(zip(images, found, strict=True))


def _shares(
    collection: Collection, query: Query, run: Run, rewriting: Callable[[Query], Query] | None
) -> dict[str, list[Note]]:
    """For each hit its reasons, and what the parts of the query that was searched add to the score of its look."""
    from eyespot.search.why import QueryParts, notes_of, searched_query

    images, reasons = [hit.image for hit in run[query.id]], _why(collection, query, run)
    query = searched_query(collection, query, run, rewriting)
    parts, vectors = QueryParts.of(query, collection.encoder), collection.view.vectors(collection.view.rows_of(images))
    hits = zip(images, vectors, strict=True)
    taught = query.id in run.header.get("taught", {})
    more = [Note("without labels", "photos changed the searched look; the parts leave that out")]
    end = more if taught or "moved" in run.header else []
    return {image: [*reasons.get(image, ()), *notes_of(parts.explain(vector)), *end] for image, vector in hits}


def _path_end(json: bool, paths: bool, print0: bool) -> bytes | None:
    """What ends each path; None where more than paths is printed."""
    if json + paths + print0 > 1:
        raise UsageError("--json, --paths and --print0 exclude each other; choose one")
    return b"\n" if paths else b"\0" if print0 else None


def _words(query: Sequence[str] | None, others: Sequence[str]) -> str | None:
    """The query as one text, however the terminal split it; half a character in it or in `others` is refused."""
    from eyespot.search.query_language import refuse_halves

    words = " ".join(query) if query else None
    refuse_halves([words or "", *others])
    return words


def _note_wordings(model: str | None, query: Query, results: Run) -> None:
    """The user sees the further wordings of a model, because the results depend on them."""
    if model is None:
        return
    own = {term.text for term in query.terms}
    more = "; ".join(text for text in results.header["wordings"][query.id] if text not in own)
    note(f"searched as well: {more}" if more else f"{model} has no other wording of this query")


def _refuse_without_words(settings: SearchSettings, why: bool) -> None:
    """`UsageError` for what compares pictures with a query, or moves one, where there is none."""
    if why:
        raise UsageError('--why needs words or a picture, as in: eyespot search "2:heron - people" --why')
    for name in ("rerank", "adapt", "neighbours", "expand", "rerank_local"):
        if getattr(settings, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f'{option} needs words or a picture, as in: eyespot search "a heron" {option} …')
    if settings.moves:
        raise UsageError('feedback moves a query; give words or a picture, as in: eyespot search "heron" --yes ID')


@dataclass(frozen=True)
class Printing:
    """How hits are printed: each path with `path_end` after it, or as JSON; and where they go besides."""

    path_end: bytes | None
    json: bool
    html: Path | None
    hits_out: HitsOut


def _show(shown: SearchOutput, started: float, output: Printing) -> None:
    """The hits on stdout, as a contact sheet, and wherever else they go; exit code 3 if some could not go there."""
    took_ms = round((time.perf_counter() - started) * 1000, 1)
    if output.html:
        from eyespot.search.contact_sheet import write_html

        write_html(output.html, [shown.sheet], captions=("taken",) if shown.column == "taken" else ())
    for sentence in shown.run.notes:
        taught = isinstance(sentence, Note) and sentence.code == "taught"
        note(f"{sentence}; leave it out with --no-teach" if taught else sentence)
    items = _items(shown)
    if output.json:
        header = shown.run.header
        own = {name: header[name] for name in ("query", "by", "moved", "exact", "recall") if name in header}
        print_json({**own, **shown.header, "took_ms": took_ms, "items": items})
    else:
        _print(items, shown.column, output.path_end)
    if output.hits_out.write(items, shown.sheet):
        raise typer.Exit(SOME_FAILED)


def _print(items: Sequence[dict[str, Any]], column: str, path_end: bytes | None) -> None:
    """The items as bare paths that each end with `path_end`, or as lines for people."""
    if path_end is None:
        for item in items:
            title = f"  {escaped(item['title'])}" if item.get("title") else ""
            title += f"  +{item['others']}" if item.get("others") else ""
            place = escaped(item["path"] or item["id"])
            why = ", ".join(
                reason["code"] for reason in item.get("why", ()) if reason["code"] not in (*UNSAID, *SHARES)
            )
            value = _value_text(item.get(column), column)
            print_line(f"{item['rank']:>4}  {value}  {place}{title}{escaped(f'  [{why}]') if why else ''}")
            if shares := [reason["sentence"] for reason in item.get("why", ()) if reason["code"] in SHARES]:
                print_line(escaped(f"      {'; '.join(shares)}"))
        return
    paths = [item["path"] for item in items if item["path"]]
    if len(paths) < len(items):
        note(f"{len(items) - len(paths)} pictures have no path; --json shows their ids")
    for path in paths:
        print_raw(path, path_end)


def _value_text(value: Any, column: str) -> str:
    """What hits are listed by: a score, a judge's probability, or a date; some hits lack the latter two."""
    if column == "taken":
        return "–".rjust(10) if value is None else str(value)[:10]
    return "    –" if value is None else f"{value:.3f}"


def _items(shown: SearchOutput) -> list[dict[str, Any]]:
    """What is printed of each hit; `NothingFound` without any."""
    from eyespot.search.why import as_fields

    ((_, hits),) = shown.run.items()
    if not hits:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    items = []
    for rank, hit in enumerate(hits, 1):
        facts = shown.run.facts[hit.image]
        # The documented fields come first; a label of the same name (of an older or an imported gallery) never
        # replaces them.
        score = None if shown.column == "taken" else round(hit.score, 6)
        own = {"rank": rank, "id": facts["id"], "path": facts["path"], "score": score}
        own |= (shown.verdicts or {}).get(hit.image, {})
        own |= {"why": as_fields(shown.why[hit.image])} if hit.image in shown.why else {}
        items.append(own | {name: value for name, value in facts.items() if name not in own})
    return items
