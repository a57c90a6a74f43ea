"""The command line: each verb calls one room. Heavy imports happen inside the verbs, so that help is instant."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from eyespot.cli import demo, doctor, encoders, failures, index, metrics, search, transfer
from eyespot.cli.settings import from_toml
from eyespot.types import EyespotError

app = typer.Typer(
    name="eyespot",
    help="Search your own photos by words, by picture, or both; build and measure image collections.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", envvar="EYESPOT_DEBUG", help="Show the traceback of an error."),
) -> None:
    """Search your own photos by words, by picture, or both; build and measure image collections."""
    if debug:
        os.environ["EYESPOT_DEBUG"] = "1"


for verb in (demo, index, failures, search, metrics, doctor):
    app.command(verb.__name__.rpartition(".")[2])(verb.run)
app.add_typer(transfer.importing, name="import")
app.add_typer(transfer.exporting, name="export")
app.add_typer(encoders.app, name="encoders")


def main() -> None:
    """The `eyespot` command: errors are one sentence on stderr, and the exit code says which kind."""
    try:
        app(default_map=from_toml())
    except EyespotError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except MemoryError:
        _complain("out of memory; close other programs, or use fewer --workers")
        sys.exit(1)


def _complain(sentence: str) -> None:
    if os.environ.get("EYESPOT_DEBUG"):
        traceback.print_exc()
    print(f"eyespot: {sentence}", file=sys.stderr)
