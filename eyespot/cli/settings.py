"""Where settings come from: options, then the environment (`EYESPOT_*`), then `eyespot.toml`, then defaults.

The gallery is found as git finds a repository: `.eyespot` in this folder or the nearest one above it. Where there is
none, what only reads takes the one of the home folder or of its `Pictures`, and says so.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from eyespot.cli.console import conclude, progress_bar, warn
from eyespot.storage.text_files import toml_of
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.settings.fields import Settings

GALLERY = ".eyespot"
QRELS_FORMAT = typer.Option(None, "--format", help="The format of the judgements.")
RUN_FORMAT = typer.Option(None, help="The format of the rankings.")
QUERIES = typer.Option(None, help="The queries to include, with their columns: csv, jsonl, parquet.")
COUNT_ONLY = typer.Option(False, "--dry-run", help="Only count; write nothing.")
# What another verb means by the word: the encoder of one's own index is not that of imported vectors
_NOT_COMMON = {"import": ("encoder",), "fuse": ("k", "measure", "norm"), "compare": ("images", "queries")}


def gallery_option(help: str) -> Any:
    """The option `-g/--gallery` with the same name, environment variable and meaning on every verb."""
    return typer.Option(None, "-g", "--gallery", envvar="EYESPOT_GALLERY", help=help, show_default="nearest .eyespot")


def encoder_option(help: str = "Search this encoder's space.", default: str | None = None) -> Any:
    """The option `-e/--encoder` with the same name and environment variable on every verb."""
    return typer.Option(default, "-e", "--encoder", envvar="EYESPOT_ENCODER", help=help)


def json_option() -> Any:
    """The option `--json`, alike on every verb that prints."""
    return typer.Option(False, "--json", help="Print JSON on stdout.")


def gallery_here(given: Path | None, writes: bool = False) -> Path:
    """The gallery named, else the nearest `.eyespot` at or above this folder, else a new one here.

    Of an address it is the local copy, brought up to date. `UsageError` for a verb that `writes` to the gallery.
    """
    if given is not None and ":/" in str(given):
        from eyespot.gallery.remote import address_of, fetch

        if (url := address_of(given)) is not None:
            if writes:
                way_out = "change the gallery it came from, then: eyespot publish"
                raise UsageError(f"{url} can be searched, not written; {way_out}")
            with progress_bar("bytes") as progress:
                return fetch(url, progress=progress, tell=warn)
    if given is None:
        here = Path.cwd()
        above = [folder / GALLERY for folder in (here, *here.parents)]
        at_home = [] if writes else [Path("~", *parts, GALLERY).expanduser() for parts in ((), ("Pictures",))]
        place = next((one for one in [*above, *at_home] if (one / "gallery.toml").is_file()), here / GALLERY)
        if place in at_home and place not in above:
            conclude(f"there is no gallery here; this is {place}")
    else:
        with suppress(RuntimeError):  # of a user that does not exist: the text is a folder's name
            given = given.expanduser()
        place = given
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file and no gallery; name a folder with -g")
    try:
        os.path.abspath(place).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(os.path.abspath(place)).decode("utf-8", "backslashreplace")
        raise UsageError(f"the gallery's name {shown} is not valid UTF-8; choose another place with -g") from None
    return place


# -- options of settings ------------------------------------------------------------------------------------


def group(help: str) -> typer.Typer:
    """An empty group of commands; one with a single command is a group, too."""
    app = VerbGroup(no_args_is_help=True, help=help)
    app.callback()(lambda: None)
    return app


class VerbGroup(typer.Typer):
    """A group of commands whose settings are options."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Any], Any]:
        """Add a verb, with an option for each setting of the models among its parameters."""
        register = super().command(name, **more)

        def add(verb: Any) -> Any:
            register(expanded(verb))
            return verb

        return add


def flag(name: str, help: str, **more: Any) -> Any:
    """An option without a value."""
    return typer.Option(False, name, help=help, **more)


def option_of(model: type[Settings], name: str, **changed: Any) -> Any:
    """The option or argument of a setting; with another help where a verb has that."""
    from eyespot.settings import option as spelled_as

    field, shown = model.model_fields[name], model.display(name)
    given = ... if field.is_required() else field.get_default(call_default_factory=True)
    words = {"ge": "min", "gt": "min", "le": "max"}
    limits = {words[end]: getattr(one, end) for one in field.metadata for end in words if hasattr(one, end)}
    more: dict[str, Any] = {"help": field.description, "metavar": shown.metavar, "rich_help_panel": shown.panel}
    more |= {"show_default": shown.usual or True, **limits} | changed
    given = None if given == () else list(given) if isinstance(given, tuple) else given
    if shown.argument:
        return typer.Argument(given, **more)
    spelled = spelled_as(name) + (f"/--no-{name.replace('_', '-')}" if given is True else "")
    return typer.Option(given, *(shown.spelled or (spelled,)), envvar=shown.env, **more)


def expanded(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb whose settings are options, each at the place of the parameter that takes their model."""
    models: dict[str, tuple[Any, list[str]]] = {}  # by the parameter that takes one; with the names of its options
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb, eval_str=True).parameters.values():
        if hasattr(parameter.annotation, "display"):
            options = list(_options_of(parameter.annotation))
            models[parameter.name] = parameter.annotation, [one.name for one in options]
            parameters += options
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    if not models:
        return verb

    def run(**given: Any) -> None:
        for parameter, (model, names) in models.items():
            values = {name: given.pop(name) for name in names}
            given[parameter] = model.read(**{name: one for name, one in values.items() if one not in (None, [])})
        verb(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__, run.__name__ = verb.__doc__, verb.__name__
    return run


def _options_of(model: Any) -> Iterator[inspect.Parameter]:
    """The parameters of a verb that a model makes: its settings, inherited ones last."""
    kind, first = inspect.Parameter.KEYWORD_ONLY, inspect.get_annotations(model)
    for name in sorted(model.model_fields, key=lambda one: one not in first):  # a stable sort
        annotation = model.model_fields[name].annotation
        kinds = [one for one in get_args(annotation) if one is not type(None)]
        plain = kinds[0] if type(None) in get_args(annotation) else annotation
        # Text for one of several words, a list for what is repeatable
        several = list[get_args(plain)[0]] if get_origin(plain) is tuple else None  # type: ignore[misc]
        plain = several or (plain if isinstance(plain, type) else str)
        yield inspect.Parameter(name, kind, annotation=plain, default=option_of(model, name))


class PanelCommand(TyperCommand):
    """A verb whose help lists its options by panels, in their order; those that name none stand in the first."""

    panels: tuple[str, ...] = ()

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then each panel under its name."""
        rows: dict[str, list[Any]] = {name: [] for name in ("Arguments", *self.panels)}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is None:
                continue
            panel = getattr(parameter, "rich_help_panel", None) or self.panels[0]
            rows["Arguments" if parameter.param_type_name == "argument" else panel].append(record)
        for name, listed in rows.items():
            if listed:
                with formatter.section(name):
                    formatter.write_dl(listed)


# -- eyespot.toml -------------------------------------------------------------------------------------------


def from_toml(app: typer.Typer, path: Path = Path("eyespot.toml")) -> dict[str, Any]:
    """Defaults for every verb: the file's top-level keys, then those of the verb's own table."""
    settings = _underscored(toml_of(path))
    verbs = _members(typer.main.get_command(app))
    tables = {verb: verb.replace("-", "_") for verb in verbs}
    known = {verb: _parameters(command) for verb, command in verbs.items()}
    every = {name for parameters in known.values() for name in parameters}
    common = {name: value for name, value in settings.items() if name not in tables.values()}
    for name in (name for name in common if name not in every):
        there = f"{', '.join(sorted(every))}, and tables for {', '.join(sorted(verbs))}"
        warn(f"{path} has an unknown key {name}; known are: {there}")
    defaults = {}
    for verb, command in verbs.items():
        table = settings.get(tables[verb], {})
        if not isinstance(table, dict):
            raise UsageError(f"{path}: {verb} is a table of settings; write [{verb}] on a line and its keys below")
        for key in (key for key in table if key not in known[verb]):
            warn(f"{path} has an unknown key {key} in [{verb}]; known are: {', '.join(sorted(known[verb]))}")
        shared = {name: value for name, value in common.items() if name not in _NOT_COMMON.get(verb, ())}
        given = {name: value for name, value in (shared | table).items() if name in known[verb]}
        values = {name: _as_given(path, known[verb][name], value) for name, value in given.items()}
        defaults[verb] = dict.fromkeys(_members(command), values) or values
    return defaults


def _underscored(table: Mapping[str, Any]) -> dict[str, Any]:
    """`dry-run` as on the command line, or `dry_run`."""
    return {
        name.replace("-", "_"): _underscored(value) if isinstance(value, dict) else value
        for name, value in table.items()
    }


def _members(command: Any) -> dict[str, Any]:
    """The commands of a group; a verb has none. (Typer carries its own copy of click, whose classes have no name.)"""
    return dict(getattr(command, "commands", {}))


def _parameters(command: Any) -> dict[str, Any]:
    """The parameters of a verb by name; of a group, those of any of its members."""
    parts = [_parameters(member) for member in _members(command).values()]
    return {name: parameter for part in parts for name, parameter in part.items()} or {
        parameter.name: parameter for parameter in command.params
    }


def _as_given(path: Path, parameter: Any, value: Any) -> Any:
    """A value as the command line would give it: text, or a list of texts where it takes several."""
    several = parameter.nargs == -1 or getattr(parameter, "multiple", False)
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, dict | list) for one in values) or (isinstance(value, list) and not several):
        raise UsageError(f"{path}: {parameter.name} cannot be {value!r}; write it as after --{parameter.name}")
    texts = [str(one) for one in values]
    return texts if several else texts[0]
