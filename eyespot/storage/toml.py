"""TOML as files hold it: read by Python's own reader, written by tomli-w."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from eyespot.storage.text_files import text_of
from eyespot.types import UsageError


def toml_of(path: Path) -> dict[str, Any]:
    """What a TOML file says; `UsageError` if it is not there or is none."""
    try:
        return tomllib.loads(text_of(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} cannot be read as TOML ({error}); fix the file") from None


def toml_text(values: Mapping[str, Any]) -> str:
    """Texts, numbers, lists and tables as TOML. What is None has no form there and is left out, also within lists."""
    return tomli_w.dumps(_without_none(values))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value if one is not None]
    return value
