"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._filtering import (
    Selection,
    after_option,
    before_option,
    label_option,
    near_option,
    where_option,
)
from eyespot.cli._judge_options import (
    DEPTH,
    JudgeArguments,
    blend_option,
    calls_option,
    dry_run_option,
    end,
    expand_option,
    judge_option,
    ledger_of,
    ledger_option,
    money_option,
    prices_option,
    second_stage,
    wording_option,
    wordings_of,
)
from eyespot.cli._ray import means_on, ray_option, workers_option
from eyespot.cli._rerank_view import (
    FEW,
    RerankView,
    SearchOutput,
    accuracy_option,
    calibrate_option,
    calibrating,
    likely_option,
)
from eyespot.cli.console import escaped, note, print_json, print_line, print_raw
from eyespot.cli.settings import gallery_here, gallery_option, index_option, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.types import Query, Run


def run(
    context: typer.Context,
    query: str = typer.Argument(None, help='Words, pictures, weights: "2:heron + ./pool.jpg - people".'),
    gallery: Path = gallery_option("The gallery to search."),
    encoder: str = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space."),
    index: str = index_option(),
    ray: str = ray_option(),
    workers: int = workers_option(),
    k: int = typer.Option(None, "-k", min=1, help="The number of pictures to show.", show_default=str(FEW)),
    adapt: str = typer.Option(None, metavar="CKPT", help="A QuARI checkpoint that adapts the space to the query."),
    neighbours: int = typer.Option(
        None, metavar="N", min=0, help="Search again with the N nearest pictures added (query expansion, QE-N)."
    ),
    rerank_local: str = typer.Option(
        None, "--rerank-local", metavar="METHOD", help="Re-rank by local descriptors: chamfer or spatial."
    ),
    image: Path = typer.Option(None, "--image", help="A picture to search with, alone or with words."),
    where: str = where_option(),
    after: str = after_option(),
    before: str = before_option(),
    near: str = near_option(),
    label: list[str] = label_option(),
    expand: str = expand_option(),
    rerank: str = typer.Option(
        None, metavar="JUDGE", help="Let a judge re-rank: encoder:starter, person:ada, openai:…"
    ),
    depth: int = typer.Option(
        None, min=1, help="How many hits of the first stage the judge looks at.", show_default=str(DEPTH)
    ),
    blend: float = blend_option(),
    calibrate: int = calibrate_option(),
    likely: float = likely_option(),
    accuracy: str = accuracy_option(),
    judge: list[str] = judge_option(),
    budget_calls: int = calls_option(),
    budget_money: float = money_option(),
    wording: str = wording_option(),
    prices: Path = prices_option(),
    ledger: Path = ledger_option(),
    dry_run: bool = dry_run_option(),
    json: bool = json_option(),
    paths: bool = typer.Option(False, "--paths", help="Print only paths, one per line."),
    print0: bool = typer.Option(False, "--print0", help="Print only paths, each followed by a NUL (for xargs -0)."),
    html: Path = typer.Option(None, "--html", help="Write a contact sheet."),
) -> None:
    """Find pictures by words, by picture, or both."""
    import eyespot
    from eyespot.search.chain import StageOptions, chain_of
    from eyespot.search.query_language import refuse_halves

    if json + paths + print0 > 1:
        raise UsageError("--json, --paths and --print0 exclude each other; choose one")
    refuse_halves([where or "", query or "", *(label or [])])
    curve = calibrating(calibrate, likely, accuracy)
    _refuse_blend(calibrate, blend)
    looked_at = _depth(calibrate, depth, k)
    about = JudgeArguments(
        calibrate, looked_at, blend, None, judge or (), budget_calls, budget_money, wording, prices, ledger, dry_run
    )
    second = second_stage(rerank, about)
    started = time.perf_counter()
    collection = eyespot.open(gallery_here(gallery), encoder, index)
    collection.means = context.with_resource(means_on(ray, workers))
    condition = Selection(where, after, before, near, label or ()).condition(collection.view.tables)
    wanted = collection.query(query, image)
    deep = max(k or FEW, second.depth if second else 1)
    rewriting = _rewriting(expand, ledger_of(ledger, collection.gallery.path))
    options = StageOptions(deep, collection.allowed(condition), adapt, neighbours, rerank_local, rewriting=rewriting)
    results = collection.answered(wanted, chain_of(collection, options))
    _note_wordings(expand, wanted, results)
    look = RerankView(second, curve, collection.gallery.path)
    if dry_run:
        look.tell_plan(results, wanted, json)
        return
    shown = look.shown(results, wanted, k)
    took = (time.perf_counter() - started) * 1000
    items = _item_fields(shown, html)
    if json:
        print_json({**_query_fields(shown), "took_ms": round(took, 1), "items": items})
    elif paths or print0:
        _print_paths(items, b"\0" if print0 else b"\n")
    else:
        _print_table(items, shown.column)
    if shown.looked:
        end(shown.looked)


def _depth(calibrate: int | None, depth: int | None, k: int | None) -> int | None:
    """A calibration speaks of all hits that are shown; a judge that re-ranks costs more the deeper it looks."""
    return depth if calibrate is None else depth or max(k or FEW, DEPTH)


def _refuse_blend(calibrate: int | None, blend: float | None) -> None:
    if calibrate is not None and blend is not None:
        raise UsageError("--calibrate leaves the order as it is; leave out --blend")


def _rewriting(expand: str | None, ledger: Path) -> Callable[[Query], Query] | None:
    """What gives a query further wordings, or None."""
    if expand is None:
        return None
    from eyespot.search.query_rewriting import Reworded

    return Reworded(wordings_of(expand, ledger))


def _note_wordings(expand: str | None, query: Query, results: Run) -> None:
    """The user sees the further wordings, because the results depend on them."""
    if expand is not None:
        own = {term.text for term in query.terms}
        more = "; ".join(text for text in results.header["wordings"][query.id] if text not in own)
        note(f"searched as well: {more}" if more else f"{expand} has no other wording of this query")


def _item_fields(shown: SearchOutput, html: Path | None) -> list[dict[str, Any]]:
    """The items to print, once all that stands beside them is told."""
    for sentence in shown.run.notes:
        note(sentence)
    if html:
        from eyespot.search.sheets import write_html

        write_html(html, [shown.sheet])
    return _items(shown)


def _query_fields(shown: SearchOutput) -> dict[str, Any]:
    header = shown.run.header
    told: dict[str, Any] = {name: header[name] for name in ("query", "exact", "recall") if name in header}
    return {**told, **shown.told}


def _items(shown: SearchOutput) -> list[dict[str, Any]]:
    ((_, hits),) = shown.run.items()
    said, facts = shown.said or {}, shown.run.facts
    items = []
    for rank, hit in enumerate(hits, 1):
        item_facts = facts[hit.image]
        item_said = said.get(hit.image, {})
        # What is promised first; a label that has such a name (of an older or an imported gallery) does not
        # replace it
        promised = {
            "rank": rank,
            "id": item_facts["id"],
            "path": item_facts["path"],
            "score": round(hit.score, 6),
            **item_said,
        }
        item = promised | {name: value for name, value in item_facts.items() if name not in promised}
        items.append(item)
    if not items:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    return items


def _print_paths(items: Sequence[dict[str, Any]], end: bytes) -> None:
    placed = [item["path"] for item in items if item["path"]]
    if len(placed) < len(items):
        note(f"{len(items) - len(placed)} pictures have no path; --json shows their ids")
    for path in placed:
        print_raw(path, end)


def _print_table(items: Sequence[dict[str, Any]], column: str) -> None:
    """`column` is what hits stand by: their score, or a judge's probability, which not all have."""
    for item in items:
        title = f"  {item['title']}" if item.get("title") else ""
        number = "    –" if item[column] is None else f"{item[column]:.3f}"
        print_line(f"{item['rank']:>4}  {number}  {escaped(item['path'] or item['id'])}{escaped(title)}")
