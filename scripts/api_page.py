"""Writes docs/api.md from the code: every public name with its signature and the first paragraph of its docstring.

python scripts/api_page.py            # writes the page; tests/test_api.py checks that it is up to date
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
MODULES = (
    "eyespot",
    "eyespot.search",
    "eyespot.metrics",
    "eyespot.runs",
    "eyespot.gallery",
    "eyespot.indexes",
    "eyespot.adapters.quari",
    "eyespot.llms",
    "eyespot.pipelines",
    "eyespot.types",
)
HEAD = """# The Python API

These names are for scripts and packages of your own; type checkers know their types. A name is imported when it is
first used, so `import eyespot` is instant. Modules and names that start with an underscore may change at any time. The
scripts in [examples/](../examples/search_and_rerank.py) run as they stand. Errors for people are
`eyespot.EyespotError`, one sentence with the way out; `UsageError` is one for wrong arguments.

`python scripts/api_page.py` writes this page from the code.
"""
LONGEST = 100  # characters of a signature on one line


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for module in MODULES for line in section(module))])


def section(module: str) -> Iterator[str]:
    """One module: its first paragraph and its names, functions and classes first."""
    room = import_module(module)
    yield f"## {module}\n"
    yield f"{first_paragraph(room)}\n"
    names = [name for name in getattr(room, "__all__", ()) if not name.startswith("_")]
    values = {name: getattr(room, name) for name in names}
    kinds = {name: inspect.isclass(value) or inspect.isroutine(value) for name, value in values.items()}
    own = [name for name in names if kinds[name] and values[name] is not Any]  # an alias of Any is a class since 3.11
    for name in sorted(own, key=str.lower):
        yield from entry(name, values[name])
    if others := [name for name in names if name not in own]:
        yield f"Constants and type aliases: {', '.join(f'`{name}`' for name in others)}.\n"


def entry(name: str, thing: Any) -> Iterator[str]:
    """A function or a class, a class with its public methods."""
    yield f"### {name}\n"
    yield f"```python\n{signature(name, thing)}\n```\n"
    yield f"{first_paragraph(thing)}\n"
    if inspect.isclass(thing):
        methods = [line for member, value in vars(thing).items() for line in method(member, value)]
        if methods:
            yield "\n".join(methods) + "\n"


def method(name: str, value: Any) -> Iterator[str]:
    """A method or property of a class as a point of a list."""
    function = value.fget if isinstance(value, property) else getattr(value, "func", getattr(value, "__func__", value))
    if name.startswith("_") or not inspect.isfunction(function) or not function.__doc__:
        return
    shown = f".{name}"
    if function is value or isinstance(value, classmethod | staticmethod):
        shown = f".{name}({', '.join(parameters(function)[not isinstance(value, staticmethod) :])})"
    yield f"- `{shown}`: {first_paragraph(function)}"


def signature(name: str, thing: Any) -> str:
    """As one would declare it, a parameter a line where it is long."""
    if inspect.isclass(thing) and getattr(thing, "_is_protocol", False):
        return f"class {name}(Protocol)"
    words, given, returned = "class" if inspect.isclass(thing) else "def", parameters(thing), ""
    if not inspect.isclass(thing):
        annotation = inspect.signature(thing).return_annotation
        returned = f" -> {annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)}"
    line = f"{words} {name}({', '.join(given)}){returned}"
    return line if len(line) <= LONGEST else f"{words} {name}(\n    " + ",\n    ".join(given) + f",\n){returned}"


def parameters(thing: Any) -> list[str]:
    """Parameters as they are written; defaults that are made anew for each call as ..., fields with _ left out."""
    try:
        every = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):  # as of classes made in C
        return []
    shown, starred = [], False
    for parameter in every:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        if not parameter.name.startswith("_"):
            text = re.sub(r"= (<.*>|.* at 0x.*)$", "= ...", str(parameter)).replace("'", '"')
            text = text.replace("PosixPath(", "Path(")
            shown.append(re.sub(r': "([^"]*)"', r": \1", text))
    return shown


def first_paragraph(thing: Any) -> str:
    """The first paragraph of a docstring on one line."""
    text = inspect.getdoc(thing) or ""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
