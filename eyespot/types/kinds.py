"""Public functions and classes that say in one sentence what they take, where Python itself would say less."""

from __future__ import annotations

import builtins
import re
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, isclass, isfunction, signature
from typing import Any

from eyespot.types.messages import UsageError, kind_text


def checked_names(room: Mapping[str, Any], public: Iterable[str]) -> dict[str, Any]:
    """The public names of a package as `with_sentence` has them."""
    return {name: with_sentence(room[name]) for name in public}


def with_sentence(thing: Any) -> Any:
    """A function, or a class, with `UsageError` where Python's own error comes of an argument of another kind.

    Nothing is looked at before there is an error, so calls cost as much as without. A class stays the same object.
    """
    plain = isclass(thing) and isfunction(thing.__init__) and not hasattr(thing, "model_fields")
    if plain and not getattr(thing, "_is_protocol", False) and not issubclass(thing, BaseException):
        thing.__init__ = _with_sentence(thing.__init__, thing.__name__)
    return _with_sentence(thing, thing.__name__) if isfunction(thing) else thing


def _with_sentence(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if hasattr(function, "__wrapped__"):
        return function

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (TypeError, AttributeError, LookupError, ValueError):
            refuse_kinds(function, name, args, options)
            raise

    return call


def refuse_kinds(function: Callable[..., Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """`UsageError` for the first argument that is missing, unknown, or of none of the kinds that are named for it."""
    known = signature(function)
    try:
        given = known.bind(*args, **options).arguments
    except TypeError as error:
        takes = ", ".join(one for one in known.parameters if one != "self")
        raise UsageError(f"{name}: {error}; it takes {takes}") from None
    for parameter, value in given.items():
        kind = str(known.parameters[parameter].annotation)
        if known.parameters[parameter].kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            continue
        names = {part.partition("[")[0].strip() for part in re.split(r"\|(?![^\[]*\])", kind)}
        known_kinds = {**vars(builtins), **vars(abc), **function.__globals__}
        if not isinstance(value, str | int | float | None) and any(
            not isclass(known_kinds.get(one)) for one in names - {"None"}
        ):
            continue  # an alias, such as that of a function or an array, does not say its kinds
        kinds = {"None" if value is None else one.__name__ for one in type(value).__mro__ if one is not object}
        kinds |= {"float"} if isinstance(value, int) else set()
        kinds |= {one for one in names - {"Sequence"} if isinstance(value, getattr(abc, one, ()))}
        kinds |= {"Sequence"} if isinstance(value, abc.Sequence) and not isinstance(value, str | bytes) else set()
        if not (kinds | {"Any"}) & names and type(value).__module__ in ("builtins", "numpy"):
            raise UsageError(f"{name} takes {parameter} as {kind}, not {kind_text(value)}")
