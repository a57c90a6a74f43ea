"""JSON that people give: distinct keys and finite numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from eyespot.storage.text_files import refuse, text_of


def json_of(path: Path) -> Any:
    """A JSON file's value; `UsageError` for bad JSON, a key that stands twice in one object, and NaN."""
    text = text_of(path)
    try:
        return json.loads(text, object_pairs_hook=distinct_keys, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        refuse(path, f"line {error.lineno}", f"is no JSON ({error.msg})")
    except RecursionError:
        refuse(path, "", "is nested too deeply for JSON of rankings")
    except ValueError as error:
        refuse(path, "", str(error))


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise ValueError(f"has the key {twice!r} twice in one object; keep one of the two")
    return fields


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which ranks nothing; write finite numbers")
