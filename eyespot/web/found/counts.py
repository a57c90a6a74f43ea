"""How many pictures of the present result have each label: faceted counts, each column without its own ticks.

A count is the number of photos that the page would show with this label ticked and no other of its column: where copies
and bursts are folded, a group counts once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.search.parts import condition_of
from eyespot.types import Mask
from eyespot.web._search_params import SearchParams
from eyespot.web.found.facets import facets_of
from eyespot.web.found.on_map import region_mask
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded, Taxa

Counts = NDArray[np.int64]


class Countable(NamedTuple):
    """The rows that are counted before any filter, (rows,), and whether a group of copies counts once."""

    rows: Mask
    grouped: bool


def mask_of(snapshot: Snapshot, params: SearchParams) -> Mask:
    """The rows that pass the filter of a search, (rows,). Raises `UsageError` for a filter that cannot be read."""
    taxa = facets_of(snapshot).taxa if params.label else Taxa()
    if taxa.columns:
        params = params.model_copy(update={"label": taxa.narrowest(params.label)})
    mask = snapshot.mask(condition_of(params, list(snapshot.kinds), taxa.units))
    return mask if params.region is None else mask & region_mask(snapshot, params.region)


def label_counts(snapshot: Snapshot, params: SearchParams, countable: Countable) -> dict[str, Counts]:
    """For each column of labels how many pictures have each of its values, (values,)."""
    facets = facets_of(snapshot)
    by_unit: dict[str, list[str]] = {}
    for label in params.label:
        column = label.partition("=")[0]
        by_unit.setdefault(facets.taxa.units.get(column, column), []).append(label)
    rest = mask_of(snapshot, params.model_copy(update={"label": ()})) & countable.rows
    alone = SearchParams()
    ticked = {
        unit: mask_of(snapshot, alone.model_copy(update={"label": tuple(labels)})) for unit, labels in by_unit.items()
    }

    def without(skipped: str | None) -> _Counter:
        masks = [mask for unit, mask in ticked.items() if unit != skipped]
        return _Counter(snapshot, np.logical_and.reduce([rest, *masks]), countable.grouped)

    every, counts = without(None), {}
    for column, coded in facets.coded.items():
        unit = facets.taxa.units.get(column, column)
        counts[column] = (without(unit) if unit in ticked else every).count(coded)
    return counts


class _Counter:
    """Counts the values of columns among the rows of a mask."""

    def __init__(self, snapshot: Snapshot, mask: Mask, grouped: bool) -> None:
        if not grouped:
            self._alone, self._members = np.flatnonzero(mask), np.empty(0, np.int64)
            return
        numbers = snapshot.groups.numbers
        self._alone = np.flatnonzero(mask & (numbers < 0))
        members = np.flatnonzero(mask & (numbers >= 0))
        self._members = members[np.argsort(numbers[members], kind="stable")]  # those of a group side by side
        own = numbers[self._members]
        opens = np.ones(len(own), bool)
        opens[1:] = own[1:] != own[:-1]
        self._first = np.flatnonzero(opens)[np.cumsum(opens) - 1] if len(own) else np.empty(0, np.int64)
        self._own = own

    def count(self, column: Coded) -> Counts:
        """How many pictures or groups have each value, (values,)."""
        size = len(column.values) + 1
        counts = np.bincount(column.codes[self._alone] + 1, minlength=size)
        if len(self._members):
            codes = column.codes[self._members]
            leads = self._first == np.arange(len(codes))
            counts += np.bincount(codes[leads] + 1, minlength=size)
            # Most groups have one value; of the few others each further value counts once
            other = codes != codes[self._first]
            pairs = np.unique(np.stack([self._own[other], codes[other]]), axis=1)
            counts += np.bincount(pairs[1] + 1, minlength=size)
        return counts[1:]
