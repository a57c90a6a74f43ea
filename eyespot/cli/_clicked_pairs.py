"""`eyespot build pairs clicks`: photos that people said yes to for one query, as pairs to train on."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli._answering import open_collection
from eyespot.cli._judge_options import ledger_option
from eyespot.cli.console import print_json, print_line, print_summary
from eyespot.cli.settings import gallery_here, json_option
from eyespot.search.parts import ledger_of


def clicks(
    gallery: Path = typer.Argument(None, help="The gallery whose photos were judged.", show_default="the one here"),
    out: Path = typer.Option(..., "--out", help="A new folder."),
    encoder: str = typer.Option(None, "-e", "--encoder", help="Take the vectors of this encoder's space."),
    ledger: Path = ledger_option(),
    feedback_from: str = typer.Option(
        None, "--feedback-from", metavar="PERSON|JUDGE", help="Only what this person or judge said."
    ),
    seed: int = typer.Option(0, min=0, help="Another seed samples other pairs of queries with very many photos."),
    json: bool = json_option(),
) -> None:
    """Image–image pairs: photos with a yes for the same query, by verdicts and clicks."""
    from eyespot.curate.pairs.clicks import clicked_pairs, write

    place = gallery_here(gallery)
    view = open_collection(place, encoder, "exact").view
    made = clicked_pairs(view, ledger_of(ledger, place), feedback_from, seed)
    write(view, made, out)
    left_out = {reason: count for reason, count in made.left_out.items() if count}
    if json:
        print_json({"out": str(out), "pairs": len(made.rows), "queries": made.queries, "left_out": left_out})
    else:
        print_line(f"{len(made.rows)} pairs of {made.queries} queries")
        for reason, count in left_out.items():
            print_line(f"{count} {reason}")
    print_summary(f"train on them with: eyespot train quari {out} --out MODEL")
