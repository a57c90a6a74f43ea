"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

import time
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
    rewriter,
    second_stage,
    wording_option,
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
    curve = calibrating(calibrate, likely, accuracy, blend)
    # A calibration covers all hits that are shown; a judge that re-ranks costs more the deeper it looks.
    judged = depth if calibrate is None else depth or max(k or FEW, DEPTH)
    about = JudgeArguments(
        calibrate, judged, blend, None, judge or (), budget_calls, budget_money, wording, prices, ledger, dry_run
    )
    second = second_stage(rerank, about)
    started = time.perf_counter()
    collection = eyespot.open(gallery_here(gallery), encoder, index)
    if ray:
        collection.means = context.with_resource(means_on(ray, workers))
    filters = Selection(where, after, before, near, label or ()).condition(collection.view.tables)
    wanted = collection.query(query, image)
    deep = max(k or FEW, second.depth if second else 1)
    rewriting = None if expand is None else rewriter(expand, ledger_of(ledger, collection.gallery.path))
    options = StageOptions(deep, collection.allowed(filters), adapt, neighbours, rerank_local, rewriting=rewriting)
    results = collection.answered(wanted, chain_of(collection, options))
    if expand is not None:
        _note_wordings(expand, wanted, results)
    look = RerankView(second, curve, collection.gallery.path)
    if dry_run:
        look.tell_plan(results, wanted, json)
        return
    shown = look.shown(results, wanted, k)
    took = round((time.perf_counter() - started) * 1000, 1)
    if html:
        from eyespot.search.sheets import write_html

        write_html(html, [shown.sheet])
    _print(shown, took, json, b"\n" if paths else b"\0" if print0 else None)
    if shown.looked:
        end(shown.looked)


def _note_wordings(model: str, query: Query, results: Run) -> None:
    """The user sees the further wordings, because the results depend on them."""
    own = {term.text for term in query.terms}
    more = "; ".join(text for text in results.header["wordings"][query.id] if text not in own)
    note(f"searched as well: {more}" if more else f"{model} has no other wording of this query")


def _print(shown: SearchOutput, took_ms: float, json: bool, path_end: bytes | None) -> None:
    """The items as JSON, as bare paths that each end with `path_end`, or as lines for people."""
    for sentence in shown.run.notes:
        note(sentence)
    items = _items(shown)
    if json:
        header = shown.run.header
        own = {name: header[name] for name in ("query", "exact", "recall") if name in header}
        print_json({**own, **shown.header, "took_ms": took_ms, "items": items})
        return
    if path_end is None:
        for item in items:
            # Hits are listed by their score, or by a judge's probability, which some lack.
            number = "    –" if item[shown.column] is None else f"{item[shown.column]:.3f}"
            title = f"  {escaped(item['title'])}" if item.get("title") else ""
            print_line(f"{item['rank']:>4}  {number}  {escaped(item['path'] or item['id'])}{title}")
        return
    paths = [item["path"] for item in items if item["path"]]
    if len(paths) < len(items):
        note(f"{len(items) - len(paths)} pictures have no path; --json shows their ids")
    for path in paths:
        print_raw(path, path_end)


def _items(shown: SearchOutput) -> list[dict[str, Any]]:
    """What is printed of each hit; `NothingFound` without any."""
    ((_, hits),) = shown.run.items()
    if not hits:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    items = []
    for rank, hit in enumerate(hits, 1):
        facts = shown.run.facts[hit.image]
        # The documented fields come first; a label of the same name (of an older or an imported gallery) never
        # replaces them.
        own = {"rank": rank, "id": facts["id"], "path": facts["path"], "score": round(hit.score, 6)}
        own |= (shown.verdicts or {}).get(hit.image, {})
        items.append(own | {name: value for name, value in facts.items() if name not in own})
    return items
