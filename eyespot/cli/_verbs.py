"""Every verb of the command line, loaded when it is wanted."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from eyespot import __version__
from eyespot.cli.console import escaped

PANELS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8"))
VERBS = tuple(name for verbs in PANELS.values() for name in verbs)

# What stands in one file with others: the file, and its name there.
SHARED = {
    **{name: ("galleries", name) for name in ("compact", "describe", "failures", "names", "publish")},
    "map": ("galleries", "lay_out"),
    "download": ("reproduce", "download"),
    "compare-encoders": ("compare", "encoders"),
    "fuse": ("convert", "fuse"),
    "mcp": ("serve", "mcp"),
    "import": ("transfer", "importing"),
    "export": ("transfer", "exporting"),
    **{name: ("judges", name) for name in ("adapters", "encoders")},
}


class Verbs(TyperGroup):
    """All verbs, listed by panels; each is loaded when it is wanted."""

    @property
    def commands(self) -> MutableMapping[str, Any]:
        """Every verb, loaded."""
        return {name: self.get_command(None, name) for name in self.list_commands(None)}

    @commands.setter
    def commands(self, added: MutableMapping[str, Any]) -> None:
        self._added = dict(added)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all verbs."""
        return [*VERBS, *self._added]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb, None for an unknown one."""
        return _load(cmd_name) if cmd_name in VERBS else self._added.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each panel with its verbs under its name."""
        for panel, verbs in PANELS.items():
            with formatter.section(panel):
                formatter.write_dl(list(verbs.items()))


@cache
def _load(name: str) -> Any:
    """A verb, by the rules of Typer: a module's `run`, or a group of commands as its `app`."""
    from eyespot.cli.settings import expanded

    file, attribute = SHARED.get(name, (name, "app"))
    module: Any = import_module(f"eyespot.cli.{file}")
    verb = getattr(module, attribute, None) or module.run
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.callback()(lambda: None)
    if isinstance(verb, typer.Typer):
        alone.add_typer(verb, name=name)
    else:
        alone.command(name, cls=getattr(module, f"{name.title()}Command", None))(expanded(verb))
    group: Any = typer.main.get_command(alone)
    return group.commands[name]


@dataclass(frozen=True)
class Coercion:
    """What Typer makes of a value; its validators take a tenth of a second, and are made for what is not plain."""

    made: Callable[[], Any]

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the verb gets it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        kind, limits = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        if kind in (str, Path) and isinstance(value, str):
            return kind(value)
        if kind == list[str]:
            return list(value)
        if kind is int and str(value).isdecimal() and (limits.min or 0) <= int(value) <= (limits.max or inf):
            return int(value)
        return self.made().coerce(value, param=param, ctx=ctx)

    @classmethod
    def of(cls, made: Callable[[Any], Any]) -> Callable[[Any], Coercion]:
        """What stands in for a method of Typer that makes a parameter's validator."""
        return lambda parameter: cls(partial(made, parameter))


for kind in (TyperArgument, TyperOption):  # also those that Typer adds, as --help
    if hasattr(kind, "get_runtime_param"):
        setattr(kind, "get_runtime_param", Coercion.of(kind.get_runtime_param))  # noqa: B010


app = typer.Typer(
    name="eyespot",
    cls=Verbs,
    help="Search your own photos by words, by picture, or both; build and measure image collections.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error.", envvar="EYESPOT_DEBUG"),
    verbose: bool = typer.Option(False, "--verbose", help="Log requests, retries and decisions on stderr."),
) -> None:
    """Search your own photos by words, by picture, or both; build and measure image collections."""
    if debug:
        os.environ["EYESPOT_DEBUG"] = "1"
    if verbose:
        handler, logger = logging.StreamHandler(), logging.getLogger("eyespot")
        handler.setFormatter(Escaped("%(asctime)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    if version:
        print(f"eyespot {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        from eyespot.cli.index import start_here

        start_here()


class Escaped(logging.Formatter):
    """Lines of the log, escaped, because names of files and models are in them."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        return escaped(super().format(record))
