"""`eyespot adapters list`: the published checkpoints that give a query its own view, and the encoders they fit."""

from __future__ import annotations

import typer

from eyespot.cli.console import print_json, print_line
from eyespot.cli.settings import json_option

app = typer.Typer(no_args_is_help=True, help="Adapters give a query its own view of an encoder's space.")


@app.callback()
def options() -> None:
    """Adapters give a query its own view of an encoder's space."""


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List the published QuARI checkpoints for --adapt, and the encoders they fit; eyespot train makes others."""
    from eyespot.adapters.quari.released import RELEASED

    if json:
        print_json([{"name": one, "encoders": list(encoders)} for one, encoders in RELEASED.items()])
        return
    for one, encoders in RELEASED.items():
        print_line(f"{one:<56} {', '.join(encoders)}")
