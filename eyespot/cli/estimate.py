"""`eyespot estimate`: how many photos of each group show something, by a few dozen looks."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import escaped, exit_if_failed, print_json, print_line, progress_bar, warn_all
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.settings.estimate import EstimateSettings
from eyespot.storage.atomic import make_folder


def run(
    settings: EstimateSettings,
    query: list[str] = typer.Argument(..., help="What the photos show, in words."),
    gallery: Path = gallery_option("The gallery whose photos are counted."),
    json: bool = json_option(),
    csv: Path = typer.Option(None, "--csv", help="Write the groups here (.csv, .parquet); beside: pairs and looks."),
    html: Path = typer.Option(None, "--html", help="Write a page with figures here, beside it the looks and design."),
    figure: Path = typer.Option(None, "--figure", help="Write the figure here (.svg, .png)."),
) -> None:
    """Estimate how many photos of each month, place or species show something, with intervals."""
    import eyespot
    from eyespot.search.estimates.study import estimate_collection
    from eyespot.search.estimates.wording import group_line, pair_sentence
    from eyespot.types import NothingFound

    for place in filter(None, (csv, html, figure)):
        make_folder(place.parent)
    collection = eyespot.open(gallery_here(gallery), settings.encoder)
    with progress_bar("requests", delay=1.0) as progress:
        made = estimate_collection(collection, collection.query(" ".join(query)), settings, progress=progress)
    for place, write in ((csv, made.write_table), (html, made.write_html), (figure, made.write_figure)):
        if place and made.methods:
            write(place)
    if json:
        print_json(made.as_json())
    elif made.methods:
        width = max(len(str(label)) for label in made.groups)
        lines = [group_line(one, width) for one in made.groups.values()]
        lines += [sentence for pair in made.pairs if (sentence := pair_sentence(made, pair))]
        for line in [*lines, "", made.methods]:
            print_line(escaped(line))
    warn_all(made.advice if made.methods else made.notes)
    exit_if_failed(len(made.waiting))
    if not any(one.basis for one in made.groups.values()):
        raise NothingFound("no group has an interval; judge more, or take coarser groups")
