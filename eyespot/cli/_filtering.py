"""Which pictures a verb works on: a SQL condition, plain filters, or a list of ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.cli.settings import names_as_options, option_of
from eyespot.settings.search import FilterSettings
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.filters import Condition
    from eyespot.gallery.view import View
    from eyespot.types import Mask


def where_option() -> Any:
    """The option `--where`."""
    return option_of(FilterSettings, "where")


def after_option() -> Any:
    """The option `--after`."""
    return option_of(FilterSettings, "after")


def before_option() -> Any:
    """The option `--before`."""
    return option_of(FilterSettings, "before")


def near_option() -> Any:
    """The option `--near`."""
    return option_of(FilterSettings, "near")


def label_option() -> Any:
    """The option `--label`."""
    return option_of(FilterSettings, "label")


def ids_option() -> Any:
    """The option `--ids`."""
    return typer.Option(None, "--ids", metavar="FILE", help="Only pictures with these ids, one a line; - for stdin.")


class Selection(NamedTuple):
    """The filters of a command line."""

    where: str | None = None
    after: str | None = None
    before: str | None = None
    near: str | None = None
    labels: Sequence[str] = ()
    ids: Path | None = None

    def mask(self, view: View) -> Mask | None:
        """True for the rows that are wanted, (rows,); None: all. `NothingFound` if there are none."""
        import numpy as np

        from eyespot.gallery import filters
        from eyespot.storage.text_files import text_of

        condition = self.condition(view.tables)
        if condition is None and self.ids is None:
            return None
        chosen: Mask = np.ones(int(view.starts[-1]), np.bool_)
        if condition is not None:
            chosen = filters.mask(view.tables, condition)
        if self.ids is not None:
            listed = np.zeros(len(chosen), np.bool_)
            text = sys.stdin.read() if str(self.ids) == "-" else text_of(self.ids)
            ids = list(dict.fromkeys(filter(None, map(str.strip, text.split("\n")))))
            if not ids:
                way_out = "write one on each line, as `eyespot search --json` prints them"
                raise UsageError(f"{self.ids} holds no ids; {way_out}")
            listed[view.rows_of(ids)] = True
            chosen = chosen & listed
        if not (chosen & view.live).any():
            raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
        return chosen

    def condition(self, tables: Sequence[Path]) -> Condition | None:
        """The SQL and plain filters as one condition over the gallery's columns; None without any."""
        from eyespot.gallery import filters
        from eyespot.search.parts import condition_of

        given = {"where": self.where, "after": self.after, "before": self.before, "near": self.near}
        settings = FilterSettings.read(**given, label=tuple(self.labels))
        with names_as_options():
            return condition_of(settings, list(filters.columns_of(tables)) if settings.filters else [])
