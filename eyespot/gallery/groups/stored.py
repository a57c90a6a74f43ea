"""The groups of a gallery on disk: `links.i64` beside the vectors of each shard, made again when the shard changed.

Each link is three numbers: two rows that belong together, as shard and row of it, the later one last, and the kind. A
shard's links depend on no later shard, so what was written of a gallery stays as it grows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery import disk, items_table
from eyespot.gallery.groups.near_duplicates import HASHES, Families, read_hashes, read_numbers
from eyespot.gallery.groups.rule import ALONE, Frames, links_of
from eyespot.gallery.row_store import open_rows
from eyespot.gallery.segments import LINKS, current_numbers, written_at
from eyespot.gallery.view import MOST_KNOWN, Gallery, View
from eyespot.photos.hashes import COLUMNS, FORMS, SIGNS
from eyespot.photos.places import archive_of
from eyespot.photos.provenance import DATE_SOURCE, EMBEDDED, EXACT, SIDECAR
from eyespot.photos.videos.addresses import VIDEO_ID, file_of, frame_of
from eyespot.storage.arrays import distinct
from eyespot.storage.digests import LookAtFiles, damaged_at_a_glance, new_digested
from eyespot.types import EyespotError, Mask, Progress, no_progress

Numbers = NDArray[np.int64]
_SHARD = 1 << 32  # the number of a row is its place in its shard, plus so much for each shard number


def write_links(gallery: Path, progress: Progress = no_progress, look: LookAtFiles = damaged_at_a_glance) -> list[str]:
    """Look for copies and bursts among the pictures of shards that are new or have changed; notes on why not."""
    opened = Gallery(gallery)
    if not opened.header.spaces:
        return []
    try:
        view = opened.view(opened.stem())
        stale, newest = [], 0
        for at, shard in enumerate(view.shards):
            # Links are outdated by hashes or vectors of any shard before: a repair gives hashes to old shards, whose
            # copies may lie in new ones
            newest = max(newest, *(written_at(shard / name) for name in (HASHES, f"{view.stem}.npy")))
            if max(newest, written_at(shard / disk.ITEMS)) > written_at(shard / LINKS) or look(shard, [LINKS]):
                stale.append(at)
        if not stale:
            return []
        frames, numbers = _frames_of(view, stale[-1] + 1), _numbers(view)
    except EyespotError as error:  # the source of imported vectors is away, say
        return [f"copies and bursts were not looked for: {error}"]
    for done, at in enumerate(stale):
        progress("looking for copies", done, len(stale))
        links = links_of(frames.until(int(view.starts[at + 1])), int(view.starts[at]))
        links[:, :2] = numbers[links[:, :2]]
        with new_digested(view.shards[at] / LINKS) as file:
            file.write(links.astype("<i8").tobytes())
    return []


def _numbers(view: View) -> Numbers:
    """What each row of a view is called on disk, (rows,)."""
    sizes = np.diff(view.starts).tolist()
    parts = [disk.number_of(shard) * _SHARD + np.arange(rows) for shard, rows in zip(view.shards, sizes, strict=True)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _frames_of(view: View, shards: int) -> Frames:
    """What the rule compares, for each row of the first shards of a view."""
    from eyespot.gallery.groups.details import comparer  # with all that reads pictures, which a search does not

    signs, seconds, cameras = [], [], []
    known: dict[str, int] = {}
    for shard, block in zip(view.shards[:shards], view.blocks, strict=False):
        signs.append(read_hashes(shard, len(block)))
        facts = items_table.read_items(shard, ["taken", DATE_SOURCE, "camera"])
        there = facts.column_names  # imported facts may have none
        if "taken" in there:
            taken: Any = facts["taken"].combine_chunks()
            micros = taken.cast("timestamp[us]").cast("int64").cast("float64", safe=False)  # also before 1684
            seconds.append(micros.fill_null(np.nan).to_numpy(zero_copy_only=False) / 1e6)
        else:
            seconds.append(np.full(len(block), np.nan))
        # A date without a source was read by an older eyespot: it may be that of a change
        sources = facts[DATE_SOURCE].to_pylist() if DATE_SOURCE in there else [None] * len(block)
        seconds[-1][[source not in EXACT for source in sources]] = np.nan
        names = facts["camera"].to_pylist() if "camera" in there else [None] * len(block)
        cameras.append(np.array([known.setdefault(name, len(known)) if name else ALONE for name in names], np.int64))
    hashes, colours, kinds = map(np.concatenate, zip(*signs, strict=True))
    return Frames(
        blocks=view.blocks[:shards],
        hashes=hashes,
        colours=colours,
        kinds=kinds,
        seconds=np.concatenate(seconds),
        cameras=np.concatenate(cameras),
        same=comparer(view, kinds),
    )


# What a file of a group would be missed for, the most important first: it has them from the camera or its owner
VIRTUES = "date", "position", "title or keywords", "colours"
BESIDE = "sidecar"  # which one of several files of the same bytes may have alone


def virtues(facts: Mapping[str, Any], is_grey: bool) -> tuple[str, ...]:
    """Which of `VIRTUES` a picture has, by its facts."""
    texts = any(facts.get(name) for name in (*EMBEDDED, *SIDECAR))
    dated = facts.get("taken") is not None and facts.get(DATE_SOURCE) in EXACT
    has = (dated, facts.get("latitude") is not None, texts, not is_grey)
    return tuple(name for name, there in zip(VIRTUES, has, strict=True) if there)


def merit(has: Sequence[str], pixels: int, size: int, path: str) -> tuple[Any, ...]:
    """What the files of a group are sorted by, so that the original is the first: `virtues`, then pixels, then bytes.

    A GIF has a palette of 256 colours.
    """
    return *(name not in has for name in VIRTUES), path[-4:].lower() == ".gif", -pixels, -size, BESIDE not in has, path


def are_grey(view: View, rows: Numbers) -> Mask:
    """Whether each of these rows is a picture without colours, (rows,); false where that is not known."""
    grey = np.zeros(len(rows), bool)
    for at in distinct(shards := np.searchsorted(view.starts, rows, side="right") - 1).tolist():
        with suppress(OSError, ValueError, IndexError):  # not there, or damaged
            numbers = np.memmap(view.shards[at] / HASHES, "<u8", mode="r").reshape(-1, COLUMNS)
            colours = numbers[rows[shards == at] - int(view.starts[at]), FORMS].astype("<u8").view(np.uint8)
            shares = colours.reshape(-1, SIGNS)[:, :6].astype(int)
            grey[shards == at] = (np.abs(shares - 85) <= 1).all(axis=1)  # a third of red and of green each
    return grey


class Groups:
    """The groups among the rows of a view."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._worth: dict[int, tuple[str, tuple[Any, ...]]] = {}  # the file of a row and its `merit`, once computed

    @cached_property
    def _videos(self) -> Numbers:
        """For each row a number that it shares with the frames of its video alone, (rows,); -1 for what is no frame."""
        found = np.full(int(self._view.starts[-1]), ALONE, np.int64)
        numbers: dict[str, int] = {}
        for start, shard in zip(self._view.starts.tolist(), self._view.shards, strict=False):
            if (batch := open_rows(shard)) is not None and VIDEO_ID not in batch.schema.names:
                continue
            videos = items_table.read_items(shard, [VIDEO_ID])  # a column that is not there is not read
            if VIDEO_ID not in videos.column_names:
                continue
            paths = items_table.read_items(shard, ["paths"])["paths"].to_pylist()
            for row, (video, places) in enumerate(zip(videos[VIDEO_ID].to_pylist(), paths, strict=True)):
                # Stills may have such a label too; and a frame may lie under several roots: a list named it, say
                if video is not None and places and frame_of(places[0]) is not None:
                    found[start + row] = numbers.setdefault(str(video), len(numbers))
        return found

    @cached_property
    def _families(self) -> tuple[Numbers, Numbers]:
        """For each row the lowest row of its copies, and of its group, (rows,) each."""
        parts = [read_numbers(shard / LINKS, (-1, 3), np.array(ALONE, "<i8")) for shard in self._view.shards]
        links = np.concatenate([np.empty((0, 3), np.int64), *parts])
        links[:, :2] = current_numbers(self._view.shards, links[:, :2], _SHARD)
        numbers = _numbers(self._view)
        rows = np.searchsorted(numbers, links[:, :2])
        known = np.flatnonzero((rows < len(numbers)).all(axis=1))
        known = known[(numbers[rows[known]] == links[known, :2]).all(axis=1)]
        rows, kinds = rows[known], links[known, 2]
        videos = self._videos
        apart = (videos[rows] == ALONE).all(axis=1)  # two videos that begin alike are not one
        rows, kinds = rows[apart], kinds[apart]
        families = Families(len(numbers))
        families.join(rows[kinds == 0])
        copies = families.first()
        families.join(rows[kinds != 0])
        # Pairs that join all frames of each video
        frames = np.flatnonzero(videos != ALONE)
        frames = frames[np.argsort(videos[frames], kind="stable")]
        chain = np.stack([frames[:-1], frames[1:]], axis=1)
        families.join(chain[videos[chain[:, 0]] == videos[chain[:, 1]]])
        return copies, families.first()

    @cached_property
    def numbers(self) -> Numbers:
        """For each row a number that it shares with its group alone, (rows,); -1 for what is in no group."""
        _, first = self._families
        sizes = np.bincount(first[self._view.live], minlength=len(first))
        return np.where(self._view.live & (sizes[first] > 1), first, ALONE)

    @cached_property
    def bursts(self) -> Mask:
        """Whether anything but copies joins the group of each row, (rows,)."""
        copies, first = self._families
        return np.asarray(np.isin(first, first[copies != first]))

    def first(self, rows: Numbers) -> Mask:
        """Which of these rows come before all others of their group, in the order that they have here, (rows,)."""
        numbers = self.numbers[rows]
        keys = np.where(numbers < 0, -1 - np.arange(len(numbers)), numbers)  # what is in no group is one alone
        return np.asarray(np.isin(np.arange(len(rows)), np.unique(keys, return_index=True)[1]))

    def best(self, rows: Numbers, mask: Mask) -> Numbers:
        """For each row the original of its group, of those rows that the mask lets through, (rows,).

        A frame of a video stays: all of its group are one file, and this is the moment that was found.
        """
        numbers = self.numbers[rows]
        members = np.flatnonzero(mask & np.isin(self.numbers, numbers[numbers >= 0]) & (self._videos == ALONE))
        if not len(members):
            return rows
        best: dict[int, tuple[tuple[Any, ...], int]] = {}
        if len(self._worth) > MOST_KNOWN:
            self._worth = {}  # another one: somebody may read the old one meanwhile
        known = self._worth
        new = np.array([row for row in members.tolist() if row not in known], np.int64)
        every = zip(new.tolist(), self._view.facts(new.tolist()), are_grey(self._view, new), strict=True)
        for row, facts, is_grey in every:
            pixels, path = (facts.get("width") or 0) * (facts.get("height") or 0), file_of(facts["path"] or "")
            known[row] = path, merit(virtues(facts, is_grey), pixels, facts.get("size") or 0, path)
        for row in members.tolist():
            path, worth = known[row]
            key = (not (os.path.exists(path) or "://" in path or archive_of(path) is not None), *worth)
            number = int(self.numbers[row])
            best[number] = min(best.get(number, (key, row)), (key, row))
        each = zip(numbers.tolist(), rows.tolist(), strict=True)
        return np.array([best.get(number, ((), row))[1] for number, row in each], np.int64)

    def others(self, rows: Numbers, mask: Mask) -> Numbers:
        """How many others of the group of each row the mask lets through, (rows asked for,)."""
        counts = np.bincount(self.numbers[mask & (self.numbers >= 0)], minlength=1 + self.numbers.max(initial=0))
        numbers = self.numbers[rows]
        return np.where(numbers < 0, 0, counts[numbers] - mask[rows])

    def members(self, rows: Sequence[int]) -> list[int]:
        """These rows and all others of their groups, in order."""
        others = np.isin(self.numbers, self.numbers[list(rows)]) & (self.numbers >= 0)
        return sorted({*rows, *np.flatnonzero(others).tolist()})

    def count(self, ids: Iterable[str]) -> int:
        """How many pictures these are if copies and frames of one burst count once; an id that is gone counts as one.

        Ids of pictures; each counts once however often it is named.
        """
        number_of: dict[str, int] = {}
        wanted = set(ids)
        for start, shard in zip(self._view.starts.tolist(), self._view.shards, strict=False):
            names = items_table.read_items(shard, ["id"])["id"].to_pylist()
            number_of |= {name: int(self.numbers[start + row]) for row, name in enumerate(names) if name in wanted}
        grouped = [number for number in number_of.values() if number >= 0]
        return len(wanted) - len(grouped) + len(set(grouped))

    def lost(self, mask: Mask) -> int:
        """How many of the rows that the mask lets through stand behind another of their group."""
        among = self.numbers[mask & (self.numbers >= 0)]
        return len(among) - len(np.unique(among))
