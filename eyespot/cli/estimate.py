"""`eyespot estimate`: how many photos of each group show something, by a few dozen looks."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import escaped, exit_if_failed, print_json, print_line, warn
from eyespot.cli.settings import gallery_option, json_option, searched_here
from eyespot.settings.estimate import EstimateSettings
from eyespot.storage.atomic import make_folder


def run(
    settings: EstimateSettings,
    query: list[str] = typer.Argument(..., help="What the photos show, in words."),
    gallery: Path = gallery_option("The gallery whose photos are counted."),
    json: bool = json_option(),
    csv: Path = typer.Option(None, "--csv", help="Write the groups here, beside them the pairs, looks and design."),
    html: Path = typer.Option(None, "--html", help="Write a page with figures here, beside it the looks and design."),
) -> None:
    """Estimate how many photos of each month, place or species show something, with intervals."""
    import eyespot
    from eyespot.search.estimates.study import estimate_collection, refuse_nothing
    from eyespot.search.estimates.wording import group_line, pair_sentence

    for place in filter(None, (csv, html)):
        make_folder(place.parent)
    collection = eyespot.open(searched_here(gallery, settings.encoder), settings.encoder)
    made = estimate_collection(collection, collection.query(" ".join(query)), settings)
    if csv:
        made.write_csv(csv)
    if html:
        made.write_html(html)
    if json:
        fields = {"groups": made.table, "pairs": made.pair_table, "advice": made.advice, "methods": made.methods}
        print_json({**fields, "missing": made.missing, "design": made.found.plan.as_json()["strata"]})
    else:
        width = max(len(str(label)) for label in made.groups)
        lines = [group_line(one, width) for one in made.groups.values()]
        lines += [pair_sentence(made.found, pair) for pair in made.pairs]
        for line in (*filter(None, lines), "", made.methods):
            print_line(escaped(line))
    for sentence in made.advice:
        warn(sentence)
    exit_if_failed(made.missing)
    refuse_nothing(made)
