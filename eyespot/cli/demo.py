"""`eyespot demo`: index the sample photos, search them five ways, write a contact sheet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json, print_summary, progress_bar
from eyespot.cli.settings import json_option

if TYPE_CHECKING:
    from eyespot.search.collection import Collection
    from eyespot.types import Run

SHOWN = 5
PICTURE = "categorization__windmill13.jpg"
WHERE = "licence = 'CC0-1.0' AND category LIKE '%monuments'"
CAPTIONS = ("author", "licence")  # the sample's authors are named, as their licences like it


def run(
    out: Path = typer.Option(Path(), "--out", help="Folder for demo.html and demo.png."),
    json: bool = json_option(),
) -> None:
    """Index the sample photos, search them five ways, and write demo.html and demo.png to look at."""
    from eyespot import sample
    from eyespot.search.sheets import write_html, write_png

    with tempfile.TemporaryDirectory(prefix="eyespot-demo-") as folder:
        photos = sample.photos()
        gallery = Path(folder) / "gallery"
        import eyespot
        from eyespot import rooms
        from eyespot.gallery.indexing import Options, index

        with progress_bar() as progress:
            summary = index(gallery, [str(photos)], [rooms.load("encoders", "starter")], Options(progress=progress))
        print_summary(f"{summary.pictures} sample photos indexed")
        found = _search(eyespot.open(gallery), sample.photos())
        out.mkdir(parents=True, exist_ok=True)
        write_html(out / "demo.html", found, "eyespot: five searches in the sample photos", CAPTIONS)
        write_png(out / "demo.png", found, "eyespot: five searches in the sample photos", CAPTIONS)
    _print(found, json)
    note(f"look at {out / 'demo.html'} or {out / 'demo.png'}; now your own photos: eyespot index PHOTOS")


def _search(collection: Collection, photos: Path) -> list[Run]:
    """By words twice, by picture, by picture and words, and under a filter."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("words: a hammer", {"query": "a hammer"}),
        ("words: a spotted big cat", {"query": "a spotted big cat"}),
        ("a picture", {"image": photos / PICTURE}),
        ("a picture + three times the words: a church", {"query": "3:a church", "image": photos / PICTURE}),
        (f"words: a tower, where {WHERE}", {"query": "a tower", "where": WHERE}),
    ]
    runs = [collection.search(k=SHOWN, **terms) for _, terms in asked]
    for found, (heading, _) in zip(runs, asked, strict=True):
        found.header["heading"] = heading
    return runs


def _print(runs: list[Run], json: bool) -> None:
    rows = []
    for found in runs:
        (query,) = found
        items = [
            {"rank": rank, "score": round(hit.score, 4), "title": found.facts[hit.image].get("title")}
            for rank, hit in enumerate(found[query], 1)
        ]
        item_fields = {"heading": found.header["heading"], "query": found.header["query"], "items": items}
        rows.append(item_fields)
    if json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(row["heading"])
        for hit in row["items"]:
            typer.echo(f"{hit['rank']:>4}  {hit['score']:.3f}  {hit['title']}")
