"""`eyespot demo`: index the sample photos, search them five ways, write a contact sheet."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import print_result, print_summary, progress_bar, warn
from eyespot.cli.settings import json_option

SHOWN = 5
PICTURE = "categorization__windmill13.jpg"
WHERE = "licence = 'CC0-1.0' AND category LIKE '%monuments'"
CAPTIONS = ("author", "licence")  # the sample's authors are named, as their licences like it


def run(out: Path = typer.Option(Path(), "--out", help="Folder for demo.html."), json: bool = json_option()) -> None:
    """Index the sample photos, search them five ways, and write demo.html to look at."""
    import eyespot
    from eyespot import rooms, sample
    from eyespot.gallery.indexing import Options, index
    from eyespot.search.contact_sheet import write_html

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
        runs = [collection.search(k=SHOWN, by="look", **terms) for _, terms in searches]
        for run, (heading, _) in zip(runs, searches, strict=True):
            run.header["heading"] = heading
        out.mkdir(parents=True, exist_ok=True)
        write_html(out / "demo.html", runs, "eyespot: five searches in the sample photos", CAPTIONS)
    rows, lines = [], []
    for run in runs:
        (hits,) = run.values()
        items = [
            {"rank": rank, "score": round(hit.score, 4), "title": run.facts[hit.image].get("title")}
            for rank, hit in enumerate(hits, 1)
        ]
        rows.append({"heading": run.header["heading"], "query": run.header["query"], "items": items})
        found = (f"{item['rank']:>4}  {item['score']:.3f}  {item['title']}" for item in items)
        lines += [str(run.header["heading"]), *found]
    print_result(rows, lines, json)
    warn(f"look at {out / 'demo.html'}; now your own photos: eyespot index PHOTOS")
