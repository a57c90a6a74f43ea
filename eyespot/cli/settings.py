"""Where settings come from: options, then the environment (`EYESPOT_*`), then `eyespot.toml`, then defaults.

The gallery is found as git finds a repository: `.eyespot` in this folder or the nearest one above it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from eyespot.cli.console import note, progress_bar
from eyespot.types import UsageError

GALLERY = ".eyespot"
_NOT_COMMON = {"import": ("encoder",)}  # the encoder of one's own index is not that of imported vectors


def gallery_option(help: str) -> Any:
    """The option `-g/--gallery` with the same name, environment variable and meaning on every verb."""
    return typer.Option(None, "-g", "--gallery", envvar="EYESPOT_GALLERY", help=help, show_default="nearest .eyespot")


def index_option() -> Any:
    """The option `--index` of verbs that search a gallery: exact by default."""
    help = "exact, or an index that eyespot tune built: approximate, and faster over millions."
    return typer.Option("exact", "--index", envvar="EYESPOT_INDEX", help=help)


def json_option() -> Any:
    """The option `--json`, alike on every verb that prints."""
    return typer.Option(False, "--json", help="Print JSON on stdout.")


def gallery_here(given: Path | None, writes: bool = False) -> Path:
    """The gallery named, else the nearest `.eyespot` at or above this folder, else a new one here.

    Of an address it is the local copy, brought up to date; vectors come with `searched_here`, or when they are read.
    `UsageError` for a verb that `writes` to the gallery.
    """
    if given is not None and ":/" in str(given) and (copy := _fetched(given, writes)) is not None:
        return copy
    if given is None:
        here = Path.cwd()
        above = (folder / GALLERY for folder in (here, *here.parents) if (folder / GALLERY / "gallery.toml").is_file())
        place = next(above, here / GALLERY)
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


def searched_here(given: Path | None, encoder: str | None = None) -> Path:
    """The same; of an address with the vectors of an encoder's space, the default one for None."""
    place = gallery_here(given)
    if ":/" in str(given) and place != given:
        from eyespot.gallery.remote import complete
        from eyespot.gallery.view import Gallery

        with suppress(UsageError), progress_bar("bytes") as progress:  # whoever opens a space that is not there says so
            complete(place, Gallery(place).stem(encoder), progress)
    return place


def _fetched(given: Path, writes: bool) -> Path | None:
    """The local copy of what is published at an address; None for a folder."""
    from eyespot.gallery.remote import FACTS, address_of, fetch

    url = address_of(given)
    if url is None:
        return None
    if writes:
        raise UsageError(f"{url} can be searched, not written; change the gallery it came from, then: eyespot publish")
    with progress_bar("bytes") as progress:
        return fetch(url, progress=progress, part=FACTS)


# -- eyespot.toml -------------------------------------------------------------------------------------------


def from_toml(app: typer.Typer, path: Path = Path("eyespot.toml")) -> dict[str, Any]:
    """Defaults for every verb: the file's top-level keys, then those of the verb's own table."""
    try:
        settings = _underscored(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} cannot be read ({error}); fix it or move it away") from error
    verbs = _members(typer.main.get_command(app))
    for sentence in _unknown(settings, verbs):
        note(f"{path} {sentence}")
    common = {name: value for name, value in settings.items() if name not in verbs}
    defaults = {}
    for verb, command in verbs.items():
        own = settings.get(verb, {})
        if not isinstance(own, dict):
            raise UsageError(f"{path}: {verb} is a table of settings; write [{verb}] on a line and its keys below")
        shared = {name: value for name, value in common.items() if name not in _NOT_COMMON.get(verb, ())}
        known = _parameters(command)
        values = {name: _as_given(path, known[name], value) for name, value in (shared | own).items() if name in known}
        defaults[verb] = dict.fromkeys(_members(command), values) or values
    return defaults


def _underscored(table: Mapping[str, Any]) -> dict[str, Any]:
    """`dry-run` as on the command line, or `dry_run`."""
    return {
        name.replace("-", "_"): _underscored(value) if isinstance(value, dict) else value
        for name, value in table.items()
    }


def _unknown(settings: Mapping[str, Any], verbs: Mapping[str, Any]) -> Iterator[str]:
    every = {name for command in verbs.values() for name in _parameters(command)}
    for name, value in settings.items():
        if name in verbs:
            known = _parameters(verbs[name])
            wrong = [key for key in value if key not in known] if isinstance(value, dict) else []
            yield from (f"has an unknown key {key} in [{name}]; known are: {_listed(known)}" for key in wrong)
        elif name not in every:
            yield f"has an unknown key {name}; known are: {_listed(every)}, and tables for {_listed(verbs)}"


def _listed(names: Mapping[str, Any] | set[str]) -> str:
    return ", ".join(sorted(names))


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
