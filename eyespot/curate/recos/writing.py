"""Writing in photos, as OCR read it at `eyespot index --ocr`: what photos of the sub-task of text are chosen by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eyespot.gallery.texts import BOXES, READ_BY

SURE = 0.9  # the confidence from which a line counts
LETTERS = 3  # and digits, at least, of a line that a caption can quote


def writing_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a picture's record: its legible lines, and what read them; "" where nothing is or was read."""
    lines = [line for line in _boxes(row) if line[1] >= SURE and sum(map(str.isalnum, line[0])) >= LETTERS]
    return {"writing": "\n".join(line[0] for line in lines), "read_by": str(row.get(READ_BY) or "")}


def _boxes(row: Mapping[str, Any]) -> list[Any]:
    """The lines with their confidences; none where a label of the same name is no such list."""
    try:
        lines = json.loads(row.get(BOXES) or "[]")
        return [[str(text), float(confidence)] for text, confidence, *_ in lines]
    except (TypeError, ValueError):
        return []
