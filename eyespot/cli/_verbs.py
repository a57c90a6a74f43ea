"""Every verb of the command line, loaded when it is wanted."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from eyespot.cli.console import escaped
from eyespot.cli.settings import expanded, flag

# A module with `run` or a group of commands as `app`; the order is that of the help.
PANELS = {
    "Everyday": ("demo", "index", "search", "serve", "mcp", "lists", "tag", "map", "duplicates", "names", "failures"),
    "Galleries": ("compact", "describe", "tune", "doctor", "plan", "publish", "import", "export"),
    "Models": ("models", "encoders", "adapters", "judges"),
    "Measuring": ("metrics", "eval", "compare", "convert", "fuse", "stats", "reproduce", "download"),
    "Building and training": ("build", "annotate", "mine", "train", "adapt"),
}
VERBS = tuple(name for names in PANELS.values() for name in names)


class Verbs(TyperGroup):
    """All verbs, listed by panels."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each panel with its verbs under its name."""
        limit = formatter.width - 6 - max(map(len, VERBS))
        for panel, names in PANELS.items():
            there = ((name, self.get_command(ctx, name)) for name in names)
            if rows := [(name, verb.get_short_help_str(limit)) for name, verb in there if verb is not None]:
                with formatter.section(panel):
                    formatter.write_dl(rows)


# What stands in one file with others: the file, and its name there.
SHARED = {
    **{name: ("galleries", name) for name in ("compact", "describe", "failures", "names", "publish")},
    "map": ("galleries", "lay_out"),
    "download": ("reproduce", "download"),
    "fuse": ("convert", "fuse"),
    "import": ("transfer", "importing"),
    "export": ("transfer", "exporting"),
    "adapters": ("encoders", "adapters"),
}


def app_of(names: Iterable[str] = VERBS) -> typer.Typer:
    """The command line with these verbs."""
    app = typer.Typer(
        name="eyespot",
        cls=Verbs,
        help="Search your own photos by words, by picture, or both; build and measure image collections.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in names:
        file, attribute = SHARED.get(name, (name, "app"))
        module: Any = import_module(f"eyespot.cli.{file}")
        verb = getattr(module, attribute, None) or module.run
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, name=name)
        else:
            app.command(name, cls=getattr(module, f"{name.title()}Command", None))(expanded(verb))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from eyespot import __version__

        print(f"eyespot {__version__}")
        raise typer.Exit


def _options(
    version: bool = flag("--version", "Print the version and exit.", callback=_print_version, is_eager=True),
    debug: bool = flag("--debug", "Show the traceback of an error.", envvar="EYESPOT_DEBUG"),
    verbose: bool = flag("--verbose", "Log requests, retries and decisions on stderr."),
) -> None:
    """Search your own photos by words, by picture, or both; build and measure image collections."""
    if debug:
        os.environ["EYESPOT_DEBUG"] = "1"
    if verbose:
        handler, logger = logging.StreamHandler(), logging.getLogger("eyespot")
        handler.setFormatter(Escaped("%(asctime)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)


class Escaped(logging.Formatter):
    """Lines of the log, escaped, because names of files and models are in them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return escaped(super().format(record))
