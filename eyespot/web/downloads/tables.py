"""Tables for spreadsheets, in which no text can act."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from eyespot.storage.files import escape_cell


def as_csv(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
    """A table in UTF-8; a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([escape_cell(name) for name in names])
    writer.writerows([escape_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
