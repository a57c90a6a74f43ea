"""Which pictures a verb works on: a SQL condition, plain filters, or a list of ids."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.filters import Condition
    from eyespot.gallery.view import View
    from eyespot.types import Mask


def where_option() -> Any:
    """The option `--where`."""
    return typer.Option(None, "--where", help="A SQL condition over the gallery's columns.")


def after_option() -> Any:
    """The option `--after`."""
    return typer.Option(None, "--after", help="Taken at or after this date (2024, 2024-05, 2024-05-01).")


def before_option() -> Any:
    """The option `--before`."""
    return typer.Option(None, "--before", help="Taken before this date.")


def near_option() -> Any:
    """The option `--near`."""
    return typer.Option(None, "--near", metavar="LAT,LON,KM", help="Taken within KM of a place.")


def label_option() -> Any:
    """The option `--label`."""
    return typer.Option(None, "--label", metavar="COLUMN=VALUE", help="Only pictures with this label; repeatable.")


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

        condition = self.condition(view.tables)
        if condition is None and self.ids is None:
            return None
        chosen: Mask = np.ones(int(view.starts[-1]), np.bool_)
        if condition is not None:
            chosen = filters.mask(view.tables, condition)
        if self.ids is not None:
            listed = np.zeros(len(chosen), np.bool_)
            listed[view.rows_of(_ids(self.ids))] = True
            chosen = chosen & listed
        if not (chosen & view.live).any():
            raise NothingFound("no picture fits the filter; widen it, or leave it out to export all")
        return chosen

    def condition(self, tables: Sequence[Path]) -> Condition | None:
        """The SQL and plain filters as one condition over the gallery's columns; None without any."""
        if self.where is not None and not self.where.strip():
            raise UsageError('--where is empty; write a condition, as in --where "width > 300", or leave it out')
        if self.where is None and not any(self[:5]):
            return None
        from eyespot.gallery import filters

        conditions = [] if self.where is None else [filters.checked(self.where, list(filters.columns_of(tables)))]
        conditions += [filters.after(self.after)] if self.after else []
        conditions += [filters.before(self.before)] if self.before else []
        if self.near:
            try:
                latitude, longitude, kilometres = (float(part) for part in self.near.split(","))
            except ValueError:
                raise UsageError(f"--near takes LAT,LON,KM, as in --near 47.56,7.59,20, not {self.near!r}") from None
            conditions.append(filters.near(latitude, longitude, kilometres))
        for label in self.labels:
            column, sign, value = label.partition("=")
            if not sign or not column:
                raise UsageError(f"--label takes COLUMN=VALUE, as in --label category=fishes, not {label!r}")
            conditions.append(filters.label(column.strip(), value.strip()))
        return filters.all_of(*conditions)


def _ids(path: Path) -> list[str]:
    from eyespot.storage.text_files import text_of

    text = sys.stdin.read() if str(path) == "-" else text_of(path)
    ids = list(dict.fromkeys(filter(None, map(str.strip, text.split("\n")))))
    if not ids:
        raise UsageError(f"{path} holds no ids; write one on each line, as `eyespot search --json` prints them")
    return ids
