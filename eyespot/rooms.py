"""The rooms of the package: a folder is the list of its members, and other packages add theirs by entry points."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from eyespot import extras
from eyespot.types import EyespotError, UsageError, kind_text
from eyespot.types.kinds import with_sentence


def names(room: str) -> list[str]:
    """The members of a room in alphabetical order; nothing is imported."""
    return sorted({*_files(room), *_guests(room)})


def load(room: str, spec: str, *args: Any, **options: Any) -> Any:
    """What the member's own `load` gives; `spec` is "name" or "name:rest", and only that one member is imported.

    An encoder's `load` gets the rest first ("" without a colon); elsewhere it gets it when there is one.
    """
    if not isinstance(spec, str):
        raise UsageError(
            f"{room} are loaded by their names, not by {kind_text(spec)}; there are: {', '.join(names(room))}"
        )
    name, colon, rest = spec.partition(":")
    first = (rest,) if colon or room == "encoders" else ()
    if room == "encoders" and name not in _files(room) and name not in _guests(room):
        name, first = "model", (spec,)  # of the table of models, or unknown, which it says
    with needs(name):
        return module(room, name).load(*first, *args, **options)


def module(room: str, name: str) -> Any:
    """The module of a member, ours or another package's, without a call of its `load`; `UsageError` if unknown."""
    if name in _files(room):
        return import_module(f"eyespot.{room}.{name}")
    guests = _guests(room)
    if name not in guests:
        raise UsageError(f"no {name!r} in {room}; there are: {', '.join(names(room))}")
    return guests[name].load()


def lazy(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], list[str]]:
    """The `__getattr__` and `__all__` of a package: a public name is imported from its module when it is first used.

    `names` maps each module below the package to its names, with spaces between them. So `import eyespot` stays quick,
    and a room can name what needs an extra: `EyespotError` with the line to install if it is missing.
    """
    places = {name: module for module, several in names.items() for name in several.split()}

    def load_name(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needs(name):
            found = with_sentence(getattr(import_module(f"{package}.{places[name]}"), name))
        vars(sys.modules[package])[name] = found
        return found

    return load_name, sorted(places)


@contextmanager
def needs(name: str) -> Iterator[None]:
    """`EyespotError` says what to install for `name` if a package that is imported here is missing or does not fit."""
    try:
        yield
    except (ModuleNotFoundError, RuntimeError) as error:
        if why := extras.misfit(error):
            raise EyespotError(why) from error
        if not isinstance(error, ModuleNotFoundError) or error.name is None or error.name.startswith("eyespot"):
            raise
        raise EyespotError(extras.needed(name, error.name.partition(".")[0])) from error


def _files(room: str) -> list[str]:
    folder = Path(__file__).parent.joinpath(*room.split("."))
    return [module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_")]


def _guests(room: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # which takes long to import, and most members are ours

    return {point.name: point for point in entry_points(group=f"eyespot.{room}")}
