"""The groups of a gallery on disk: `groups.i64` beside the vectors of each shard, made again when a shard changed.

Two numbers for each row of the facts: its group, by the lowest row of that, and the kind of the group; -1 for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk
from eyespot.gallery.groups.hashes import FORMS, HASHES, read_hashes, read_numbers
from eyespot.gallery.groups.near_duplicates import Hashes
from eyespot.gallery.groups.rule import ALONE, Frames, groups_of
from eyespot.gallery.int8_codes import LookAtFiles
from eyespot.gallery.view import Gallery, View
from eyespot.storage.digests import damaged_at_a_glance, new_digested
from eyespot.types import EyespotError, Mask, Progress, no_progress

GROUPS = "groups.i64"
Numbers = NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1)
_SHARD = 1 << 32  # a group's number is its lowest row, plus so much for each shard before it


def write_groups(
    gallery: Path, progress: Progress = no_progress, look: LookAtFiles = damaged_at_a_glance, every: bool = False
) -> list[str]:
    """Find the groups of a gallery anew where a shard changed since, or for `every` one; notes on why not."""
    opened = Gallery(gallery)
    shards = disk.shard_paths(gallery)
    if not opened.header.spaces or not shards:
        return []
    if not every and not any(look(shard, [GROUPS]) for shard in shards) and _is_current(shards, opened.stem()):
        return []
    try:
        view = opened.view(opened.stem())
        made = groups_of(frames_of(view), progress)
    except EyespotError as error:  # the source of imported vectors is away, say
        return [f"copies and bursts were not looked for: {error}"]
    for shard, part in zip(shards, _by_shard(view, made, shards), strict=True):
        if shard == shards[-1] or look(shard, [GROUPS]) or not np.array_equal(_read(shard, len(part)), part):
            with new_digested(shard / GROUPS) as file:  # the last one always, and last: by its date all are current
                file.write(part.astype("<i8").tobytes())
    return []


def _is_current(shards: Sequence[Path], stem: str) -> bool:
    names = (disk.ITEMS, HASHES, f"{stem}.npy")
    try:
        made = (shards[-1] / GROUPS).stat().st_mtime_ns
    except OSError:
        return False
    files = (place for shard in shards for name in names if (place := shard / name).exists())
    return all((shard / GROUPS).exists() for shard in shards) and all(f.stat().st_mtime_ns <= made for f in files)


def _by_shard(view: View, made: Numbers, shards: Sequence[Path]) -> list[Numbers]:
    """What is written for each shard, (rows, 2): numbers of groups and kinds; -1 for what is in none."""
    parts: dict[Path, Numbers] = {}
    place = np.searchsorted(view.starts, made[:, 0], side="right") - 1
    numbers = np.array([int(shard.name) for shard in view.shards], np.int64)[place] * _SHARD
    numbers += made[:, 0] - view.starts[place]
    both = np.where(made[:, :1] < 0, ALONE, np.stack([numbers, made[:, 1]], axis=1))
    for shard, start, stop in zip(view.shards, view.starts, view.starts[1:], strict=False):
        parts[shard] = np.ascontiguousarray(both[start:stop])
    return [parts[s] if s in parts else np.full((disk.count_items(s), 2), ALONE, np.int64) for s in shards]


def _read(shard: Path, rows: int) -> Numbers:
    """The groups of a shard as stored, (rows, 2); all alone where there are none or they are damaged."""
    return read_numbers(shard / GROUPS, (rows, 2), np.array(ALONE, "<i8"))


def frames_of(view: View) -> Frames:
    """What the rule looks at, for each row of a view."""
    hashes: list[Hashes] = [np.empty((0, FORMS), np.uint64)]
    seconds: list[float] = []
    cameras: list[str | None] = []
    for shard, block in zip(view.shards, view.blocks, strict=True):
        hashes.append(read_hashes(shard, len(block)))
        facts = disk.read_items(shard)
        known = {name: facts[name].to_pylist() for name in ("taken", "camera") if name in facts.column_names}
        none = [None] * len(block)  # imported facts may have neither
        seconds += [np.nan if when is None else (when - _EPOCH).total_seconds() for when in known.get("taken", none)]
        cameras += known.get("camera", none)
    return Frames(view.blocks, np.concatenate(hashes), np.array(seconds, np.float64), cameras, view.live)


class Groups:
    """The groups among the rows of a view."""

    def __init__(self, view: View) -> None:
        self._view = view

    @cached_property
    def stored(self) -> Numbers:
        """For each row its group by its lowest row's number, and the kind, (rows, 2); -1 for what is in none."""
        sizes = np.diff(self._view.starts).tolist()
        parts = [_read(shard, rows) for shard, rows in zip(self._view.shards, sizes, strict=True)]
        return np.concatenate([np.empty((0, 2), np.int64), *parts])

    @cached_property
    def numbers(self) -> Numbers:
        """For each row a number that it shares with its group alone, (rows,); -1 for what is in none."""
        numbers: Numbers = np.unique(self.stored[:, 0], return_inverse=True)[1].astype(np.int64)
        return np.where(self.stored[:, 0] < 0, ALONE, numbers)

    def first(self, rows: Numbers) -> Mask:
        """Which of these rows come before all others of their group, in the order that they have here, (rows,)."""
        own = self.numbers[rows]
        keys = np.where(own < 0, -1 - np.arange(len(own)), own)  # what is in no group is one of its own
        first: Mask = np.zeros(len(rows), bool)
        first[np.unique(keys, return_index=True)[1]] = True
        return first

    def others(self, rows: Numbers, mask: Mask) -> Numbers:
        """How many others of the group of each row the mask lets through, (rows asked for,)."""
        counts = np.bincount(self.numbers[mask & (self.numbers >= 0)], minlength=1 + self.numbers.max(initial=0))
        own = self.numbers[rows]
        return np.where(own < 0, 0, counts[own] - mask[rows])

    def lost(self, mask: Mask) -> int:
        """How many of the rows that the mask lets through stand behind another of their group."""
        among = self.numbers[mask & (self.numbers >= 0)]
        return len(among) - len(np.unique(among))
