"""A couple of hundred photographs to try eyespot on: animals, monuments, tools, wind mills; public domain or CC0.

`ATTRIBUTION.md` beside this file names the author and the source of each.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def photos() -> Path:
    """The folder of the photographs; its `metadata.csv` holds title, category, author, source and licence of each."""
    return Path(str(files(__name__) / "photos"))
