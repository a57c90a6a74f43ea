"""The command line: each verb calls one room. Heavy imports happen inside the verbs, so that help is instant."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import NoReturn

import typer

from eyespot.cli import (
    _exporting,
    _importing,
    adapt,
    annotate,
    build,
    compare,
    convert,
    demo,
    describe,
    doctor,
    duplicates,
    encoders,
    eval,
    failures,
    fuse,
    index,
    judges,
    metrics,
    mine,
    plan,
    publish,
    search,
    serve,
    stats,
    train,
    transfer,
    tune,
)
from eyespot.cli.console import escaped, note
from eyespot.cli.settings import from_toml
from eyespot.storage.atomic import is_forbidden
from eyespot.types import EyespotError

app = typer.Typer(
    name="eyespot",
    help="Search your own photos by words, by picture, or both; build and measure image collections.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from eyespot import __version__

        print(f"eyespot {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
    ),
    debug: bool = typer.Option(False, "--debug", envvar="EYESPOT_DEBUG", help="Show the traceback of an error."),
    verbose: bool = typer.Option(False, "--verbose", help="Log requests, retries and decisions on stderr."),
) -> None:
    """Search your own photos by words, by picture, or both; build and measure image collections."""
    if debug:
        os.environ["EYESPOT_DEBUG"] = "1"
    if verbose:
        _log_to_stderr()


def _log_to_stderr() -> None:
    """Show what the package logs; escaped, because names of files and models are in it."""

    class Escaped(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return escaped(super().format(record))

    handler, logger = logging.StreamHandler(), logging.getLogger("eyespot")
    handler.setFormatter(Escaped("%(asctime)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


for verb in (
    demo,
    index,
    failures,
    duplicates,
    search,
    serve,
    metrics,
    eval,
    compare,
    convert,
    fuse,
    stats,
    adapt,
    describe,
    tune,
    doctor,
):
    app.command(verb.__name__.rpartition(".")[2], cls=search.QueryCommand if verb is search else None)(verb.run)
app.command("plan")(plan.run)
app.command("publish")(publish.run)
_importing.add_commands(transfer.importing)
app.add_typer(transfer.importing, name="import")
transfer.exporting.command("judgements")(judges.export)
_exporting.add_commands(transfer.exporting)
app.add_typer(transfer.exporting, name="export")
app.add_typer(encoders.app, name="encoders")
app.add_typer(judges.app, name="judges")
app.add_typer(build.app, name="build")
app.add_typer(annotate.app, name="annotate")
app.add_typer(train.app, name="train")
app.add_typer(mine.app, name="mine")


def main() -> None:
    """The `eyespot` command: errors are one sentence on stderr, and the exit code says which kind."""
    try:
        try:
            app(default_map=from_toml(app))
        finally:
            sys.stdout.flush()  # here, where an error can still be reported
    except EyespotError as error:
        _fail(str(error), error.exit_code)
    except MemoryError:
        _fail("out of memory; close other programs, or use fewer --workers")
    except BrokenPipeError:
        _leave_stdout()
        sys.exit(1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        if error.filename is None:
            _fail(f"cannot write what was found ({reason}); make room, or send it elsewhere")
        if is_forbidden(error):
            _fail(f"{error.filename!s}: {reason}; give yourself the right to it, or choose another place")
        _fail(f"{error.filename!s}: {reason}; check that it is there, that you may use it, and that its disk has room")
    except Exception as error:
        kind = type(error).__name__
        what = " ".join(f"{kind}: {error}".split()) if str(error) else kind
        _fail(f"eyespot stumbled over {what}; run the same line with eyespot --debug … to see where, and report it")


def _fail(sentence: str, code: int = 1) -> NoReturn:
    if "--debug" in sys.argv or os.environ.get("EYESPOT_DEBUG"):
        traceback.print_exc()
    note(sentence)
    _leave_stdout()
    sys.exit(code)


def _leave_stdout() -> None:
    """Discard what is still to be written, so that Python does not report it once more as it exits."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
