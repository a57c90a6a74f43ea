"""`eyespot search`: find pictures by words, by picture, or both, under a filter."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.cli.telling import as_json, note
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.filters import Condition
    from eyespot.types import Run


def run(
    query: str = typer.Argument(None, help='Words, pictures, weights: "2:heron + ./pool.jpg - people".'),
    gallery: Path = gallery_option("The gallery to search."),
    encoder: str = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space."),
    k: int = typer.Option(20, "-k", min=1, help="How many pictures."),
    image: Path = typer.Option(None, "--image", help="A picture to search with, alone or with words."),
    where: str = typer.Option(None, "--where", help="A SQL condition over the gallery's columns."),
    after: str = typer.Option(None, "--after", help="Taken at or after this date (2024, 2024-05, 2024-05-01)."),
    before: str = typer.Option(None, "--before", help="Taken before this date."),
    near: str = typer.Option(None, "--near", metavar="LAT,LON,KM", help="Taken within KM of a place."),
    label: list[str] = typer.Option(None, "--label", metavar="COLUMN=VALUE", help="Only this label; may be repeated."),
    json: bool = json_option(),
    paths: bool = typer.Option(False, "--paths", help="Print paths only, one a line."),
    html: Path = typer.Option(None, "--html", help="Write a contact sheet to look at."),
) -> None:
    """Find pictures by words, by picture, or both."""
    import eyespot

    if json and paths:
        raise UsageError("--json and --paths exclude each other; choose one")
    started = time.perf_counter()
    collection = eyespot.open(gallery_here(gallery), encoder)
    condition = _condition(collection.view.tables, where, _plain(after, before, near, label or []))
    found = collection.search(query, image=image, k=k, where=condition)
    took = (time.perf_counter() - started) * 1000
    for sentence in found.notes:
        note(sentence)
    if html:
        from eyespot.search.sheets import write_html

        write_html(html, [found])
    _print(found, took, "json" if json else "paths" if paths else "table")


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
    if not where and not plain:
        return None
    from eyespot.gallery import filters

    columns = list(filters.columns_of(tables)) if tables else []
    return filters.all_of(*([filters.checked(where, columns)] if where else []), *plain)


def _print(found: Run, took: float, form: str) -> None:
    (query,) = found
    items = [_item(rank, hit, found.facts[hit.image]) for rank, hit in enumerate(found[query], 1)]
    if not items:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    if form == "json":
        as_json(
            {"query": found.header["query"], "exact": found.header["exact"], "took_ms": round(took, 1), "items": items}
        )
    for item in items:
        if form == "paths":
            typer.echo(item["path"])
        elif form == "table":
            typer.echo(f"{item['rank']:>4}  {item['score']:.3f}  {item['path']}{_title(item)}")


def _item(rank: int, hit: Any, facts: dict[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in facts.items() if name not in ("id", "path")}
    return {"rank": rank, "id": facts["id"], "path": facts["path"], "score": round(hit.score, 6), **known}


def _title(item: dict[str, Any]) -> str:
    return f"  {item['title']}" if item.get("title") else ""
