"""Names of models that lie in a folder of one's own: from the current folder and in full they mean one model."""

from __future__ import annotations

import os
import re
from pathlib import Path


def full_names(model: str) -> list[str]:
    """What a model's name may mean with its file or folder in full; empty if it names no file or folder that is there.

    In the folder /home/ada `hf:tuned/model` gives `hf:/home/ada/tuned/model`, the name that its space bears.
    """
    starts = [match.end() for match in re.finditer("[:/]", model)]
    # Of os: Path fails for a name that is too long, somebody's home that is not there, or a folder one may not enter.
    places = [(model[:start], os.path.expanduser(model[start:])) for start in starts if model[start:]]
    return [f"{kind}{Path(place).resolve()}" for kind, place in places if os.path.exists(place)]
