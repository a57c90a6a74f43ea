"""`eyespot demo`: index the sample photos, search them five ways, write a contact sheet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import print_result, print_summary, progress_bar, warn
from eyespot.cli.settings import flag, json_option

SHOWN = 5
PICTURE = "categorization__windmill13.jpg"
WHERE = "licence = 'CC0-1.0' AND category LIKE '%monuments'"
CAPTIONS = ("author", "licence")  # the sample's authors are named, as their licences like it


def run(
    out: Path = typer.Option(Path(), "--out", help="Folder for demo.html."),
    place: bool = flag("--photos", "Only print the folder of the sample photos."),
    json: bool = json_option(),
) -> None:
    """Index the sample photos, search them five ways, and write demo.html to look at."""
    import eyespot
    from eyespot import rooms, sample
    from eyespot.gallery.indexing import Options, index
    from eyespot.search.hits import write_html

    if place:
        print_result({"photos": str(sample.photos())}, [str(sample.photos())], json)
        return
    with tempfile.TemporaryDirectory(prefix="eyespot-demo-") as folder:
        photos, gallery = sample.photos(), Path(folder) / "gallery"
        with progress_bar() as progress:
            summary = index(gallery, [str(photos)], [rooms.load("encoders", "starter")], Options(progress=progress))
        print_summary(f"{summary.pictures} sample photos indexed")
        collection, picture = eyespot.open(gallery), photos / PICTURE
        searches: list[tuple[str, dict[str, Any]]] = [
            ("words: a hammer", {"query": "a hammer"}),
            ("words: a spotted big cat", {"query": "a spotted big cat"}),
            ("a picture", {"image": picture}),
            ("a picture + three times the words: a church", {"query": "3:a church", "image": picture}),
            (f"words: a tower, where {WHERE}", {"query": "a tower", "where": WHERE}),
        ]
        found = [collection.search(k=SHOWN, by="look", **terms) for _, terms in searches]
        for hits, (heading, _) in zip(found, searches, strict=True):
            hits.run.header["heading"] = heading
        out.mkdir(parents=True, exist_ok=True)
        write_html(out / "demo.html", found, "eyespot: five searches in the sample photos", CAPTIONS)
    rows, lines = [], []
    for hits in found:
        items = [{"rank": hit.rank, "score": round(hit.score or 0, 4), "title": hit.title} for hit in hits]
        rows.append({"heading": hits.query, "query": hits.run.header["query"], "items": items})
        lines += [hits.query, *(f"{item['rank']:>4}  {item['score']:.3f}  {item['title']}" for item in items)]
    print_result(rows, lines, json)
    warn(f"look at {out / 'demo.html'}; now your own photos: eyespot index PHOTOS")
