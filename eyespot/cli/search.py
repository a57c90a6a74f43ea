"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json, escaped, line, note, raw
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.filters import Condition
    from eyespot.types import Run


def run(
    query: str = typer.Argument(None, help='Words, pictures, weights: "2:heron + ./pool.jpg - people".'),
    gallery: Path = gallery_option("The gallery to search."),
    encoder: str = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space."),
    k: int = typer.Option(20, "-k", min=1, help="How many pictures."),
    adapt: str = typer.Option(None, metavar="CKPT", help="A QuARI checkpoint: the query's own view of the space."),
    expand: int = typer.Option(
        None, "--expand", metavar="N", min=0, help="Search again with the N nearest added (QE-N)."
    ),
    rerank_local: str = typer.Option(
        None, "--rerank-local", metavar="METHOD", help="Re-rank by local descriptors: chamfer or spatial."
    ),
    image: Path = typer.Option(None, "--image", help="A picture to search with, alone or with words."),
    where: str = typer.Option(None, "--where", help="A SQL condition over the gallery's columns."),
    after: str = typer.Option(None, "--after", help="Taken at or after this date (2024, 2024-05, 2024-05-01)."),
    before: str = typer.Option(None, "--before", help="Taken before this date."),
    near: str = typer.Option(None, "--near", metavar="LAT,LON,KM", help="Taken within KM of a place."),
    label: list[str] = typer.Option(None, "--label", metavar="COLUMN=VALUE", help="Only this label; may be repeated."),
    json: bool = json_option(),
    paths: bool = typer.Option(False, "--paths", help="Print paths only, one a line."),
    print0: bool = typer.Option(False, "--print0", help="Print paths only, each ended by a NUL (for xargs -0)."),
    html: Path = typer.Option(None, "--html", help="Write a contact sheet to look at."),
) -> None:
    """Find pictures by words, by picture, or both."""
    import eyespot
    from eyespot.search.phrase import refuse_halves
    from eyespot.search.staged import Stages

    if json + paths + print0 > 1:
        raise UsageError("--json, --paths and --print0 exclude each other; choose one")
    refuse_halves([where or "", *(label or [])])
    started = time.perf_counter()
    collection = eyespot.open(gallery_here(gallery), encoder)
    condition = _condition(collection.view.tables, where, _plain(after, before, near, label or []))
    asked, allowed = collection.asked(query, image), collection.allowed(condition)
    found = collection.answered(asked, Stages(adapt, expand, rerank_local).of(collection, k, allowed))
    took = (time.perf_counter() - started) * 1000
    for sentence in found.notes:
        note(sentence)
    if html:
        from eyespot.search.sheets import write_html

        write_html(html, [found])
    items = _items(found)
    if json:
        as_json({**_asked(found), "took_ms": round(took, 1), "items": items})
    elif paths or print0:
        _print_paths(items, b"\0" if print0 else b"\n")
    else:
        _print_table(items)


def _plain(after: str | None, before: str | None, near: str | None, labels: Sequence[str]) -> list[Condition]:
    """The plain filters as conditions."""
    if not (after or before or near or labels):
        return []
    from eyespot.gallery import filters

    given = [filters.after(after)] if after else []
    given += [filters.before(before)] if before else []
    given += [filters.near(*_place(near))] if near else []
    return given + [filters.label(*_label(one)) for one in labels]


def _place(text: str) -> tuple[float, float, float]:
    try:
        lat, lon, km = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--near takes LAT,LON,KM, as in --near 47.56,7.59,20, not {text!r}") from None
    return lat, lon, km


def _label(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not sign or not column:
        raise UsageError(f"--label takes COLUMN=VALUE, as in --label category=fishes, not {text!r}")
    return column.strip(), value.strip()


def _condition(tables: Sequence[Path], where: str | None, plain: list[Condition]) -> Condition | None:
    if where is not None and not where.strip():
        raise UsageError('--where is empty; write a condition, as in --where "width > 300", or leave it out')
    if where is None and not plain:
        return None
    from eyespot.gallery import filters

    columns = list(filters.columns_of(tables)) if tables else []
    return filters.all_of(*([filters.checked(where, columns)] if where is not None else []), *plain)


def _asked(found: Run) -> dict[str, Any]:
    return {"query": found.header["query"], "exact": found.header["exact"]}


def _items(found: Run) -> list[dict[str, Any]]:
    (query,) = found
    items = [_item(rank, hit, found.facts[hit.image]) for rank, hit in enumerate(found[query], 1)]
    if not items:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    return items


def _item(rank: int, hit: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """What is promised first; a label that has such a name (of an older or an imported gallery) does not replace it."""
    promised = {"rank": rank, "id": facts["id"], "path": facts["path"], "score": round(hit.score, 6)}
    return promised | {name: value for name, value in facts.items() if name not in promised}


def _print_paths(items: Sequence[dict[str, Any]], end: bytes) -> None:
    placed = [item["path"] for item in items if item["path"]]
    if len(placed) < len(items):
        note(f"{len(items) - len(placed)} pictures have no path; --json shows their ids")
    for path in placed:
        raw(path, end)


def _print_table(items: Sequence[dict[str, Any]]) -> None:
    for item in items:
        title = f"  {item['title']}" if item.get("title") else ""
        line(f"{item['rank']:>4}  {item['score']:.3f}  {escaped(item['path'] or item['id'])}{escaped(title)}")
