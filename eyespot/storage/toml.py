"""TOML as files hold it: read by Python's own reader, written by tomli-w."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w


def toml_text(values: Mapping[str, Any]) -> str:
    """Texts, numbers, lists and tables as TOML. What is None has no form there and is left out, also within lists."""
    return tomli_w.dumps(_without_none(values))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_none(one) for name, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [_without_none(one) for one in value if one is not None]
    return value
