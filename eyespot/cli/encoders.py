"""`eyespot encoders list`: what turns pictures and words into vectors here."""

from __future__ import annotations

import typer

from eyespot.cli.console import print_json
from eyespot.cli.settings import json_option

app = typer.Typer(no_args_is_help=True, help="Encoders turn pictures and words into vectors.")


@app.callback()
def options() -> None:
    """Encoders turn pictures and words into vectors."""


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List encoder families, how to name one, and whether they work offline."""
    rows = known()
    if json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['name']:<12} {row['spelling']:<46} {row['needs']}")


def known() -> list[dict[str, str]]:
    """Every encoder module with its spelling and needs, as its constants say; nothing heavy is imported."""
    from eyespot import rooms

    rows = []
    for name in rooms.names("encoders"):
        module = rooms.module("encoders", name)
        rows.append(
            {"name": name, "spelling": getattr(module, "SPELLING", name), "needs": getattr(module, "NEEDS", "")}
        )
    return rows
