"""TOML as our files hold it: every value on one line, so that a list can also be read as JSON, which is faster.

Libraries that write TOML break lists over lines. A gallery of millions has thousands of notes with lists of numbers,
which each search reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml_lines(values: Mapping[str, Any]) -> list[str]:
    """`name = value` for texts, numbers and lists of them; names are bare keys."""
    # A JSON string is a TOML string but for DEL (and for characters beyond the first plane, once they are escaped);
    # JSON numbers and lists of numbers are TOML's too.
    texts = {name: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for name, value in values.items()}
    return [f"{name} = {text}" for name, text in texts.items()]
