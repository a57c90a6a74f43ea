"""Which pictures a verb works on: a SQL condition, plain filters, or a list of ids."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from eyespot.search.parts import condition_of
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.view import View
    from eyespot.settings.search import FilterSettings
    from eyespot.types import Mask


def chosen_rows(view: View, settings: FilterSettings, ids: Path | None = None) -> Mask | None:
    """True for the rows that are wanted, (rows,); None: all. `NothingFound` if there are none."""
    import numpy as np

    from eyespot.gallery import filters
    from eyespot.storage.text_files import text_of

    condition = condition_of(settings, list(filters.columns_of(view.tables)) if settings.filters else [])
    if condition is None and ids is None:
        return None
    chosen: Mask = np.ones(int(view.starts[-1]), np.bool_)
    if condition is not None:
        chosen = filters.mask(view.tables, condition)
    if ids is not None:
        listed = np.zeros(len(chosen), np.bool_)
        text = sys.stdin.read() if str(ids) == "-" else text_of(ids)
        names = list(dict.fromkeys(filter(None, map(str.strip, text.split("\n")))))
        if not names:
            raise UsageError(f"{ids} holds no ids; write one on each line, as `eyespot search --json` prints them")
        listed[view.rows_of(names)] = True
        chosen = chosen & listed
    if not (chosen & view.live).any():
        raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
    return chosen
