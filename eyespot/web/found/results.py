"""Results that stay as they are while somebody pages through them: found when asked, ranked further on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.search.adapted import AnyAdapter
from eyespot.search.feedback import Feedback, Moved, moved, refuse_words, rows_of
from eyespot.search.named import rewording_notes
from eyespot.search.parts import condition_of, filter_notes
from eyespot.search.query_language import logged
from eyespot.types import Mask, NothingFound, Query, Run, UsageError, Vectors, quantity
from eyespot.web._search_params import SearchParams, query_of
from eyespot.web.found.facets import facets_of
from eyespot.web.found.on_map import region_mask
from eyespot.web.found.snapshot import Snapshot
from eyespot.web.found.taxa import Coded, Taxa

FIRST = 240  # ranks found at once
DEEPEST = 1_000_000  # ranks
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


class Slice(NamedTuple):
    """A stretch of a ranking: rows and scores from a rank on, and whether more come after it."""

    first: int  # rank, from 1
    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    more: bool


class JudgedPlace(NamedTuple):
    """Where the search itself had put a hit, from 1, and the number that a judge gave it."""

    rank: int
    probability: float | None


@dataclass
class RankedResult:
    """One search and its ranking, as far as anybody has looked.

    `most` ranks are shown, None is all; `judged` says of rows that a judge put elsewhere where they were and why.
    """

    id: str
    params: SearchParams
    query: Query | None  # the words and the picture; None for a search by items alone
    snapshot: Snapshot
    vector: Vectors  # (1, dim)
    mask: Mask
    without: frozenset[int]  # rows that somebody said are not it
    notes: list[str]
    options: SearchParams  # with the way in which it searches
    adapter: AnyAdapter | None = None
    likely_above: float | None = None  # the score below which nothing is likely; None: nobody knows
    exact: bool = True  # whether this is the ranking of all scores
    header: Mapping[str, Any] = field(default_factory=dict)  # of the run that it is made of
    moved: Moved | None = None  # the photos that moved it
    most: int | None = None
    holding: Mask | None = None  # the rows that a search by words alone finds
    judged: Mapping[int, JudgedPlace] = field(default_factory=dict)
    origin: RankedResult | None = None  # what this was cut from or reordered
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    _ranking: Lock = field(default_factory=Lock)

    @cached_property
    def total(self) -> int:
        """How many pictures this ranking has in all."""
        left = self.mask.copy()
        left[list(self.without)] = False
        found = int(np.count_nonzero(left)) - (self.snapshot.groups.lost(left) if self.grouped else 0)
        return found if self.most is None else min(found, self.most)

    @property
    def countable(self) -> Countable:
        """What this search could show without any filter; counts of filters are of these."""
        rows = self.snapshot.view.live
        if self.options.by == "words":
            rows = np.unpackbits(self._word_rows, count=len(rows)).astype(bool)
        if self.without:
            rows = rows.copy()
            rows[list(self.without)] = False
        return Countable(rows, self.grouped)

    @cached_property
    def _word_rows(self) -> NDArray[np.uint8]:
        """The rows whose labels hold a word, eight a byte: a result is remembered for long, and galleries are large."""
        live = self.snapshot.view.live
        rows = np.zeros(len(live), bool)
        rows[self._ranked(int(live.sum()), live).image.astype(np.int64)] = True
        return np.packbits(rows)

    def _ranked(self, k: int, mask: Mask) -> Run:
        how: dict[str, Any] = {"k": k, "mask": mask, "adapter": self.adapter, "named": True}
        return self.snapshot.ranked(self.query, self.vector, self.options, **how)

    def slice(self, start: int, count: int) -> Slice:
        """`count` ranks after the first `start`."""
        stop = min(start + count, self.total, DEEPEST)
        with self._ranking:
            if stop > len(self.rows):
                self._rank(stop)
            rows, scores = self.rows[start:stop], self.scores[start:stop]
        return Slice(start + 1, rows, scores, stop < min(self.total, DEEPEST))

    def _rank(self, stop: int) -> None:
        """Rank further. What was shown stays: what comes after it is what the deeper search has beyond it."""
        every = int(np.count_nonzero(self.mask))
        k = min(max(FIRST, stop * 3 // 2) + len(self.without), every)
        while True:
            run = self._ranked(k, self.mask)
            rows = run.image.astype(np.int64)
            fresh = ~np.isin(rows, [*self.rows.tolist(), *self.without])
            if self.grouped:
                known = self.snapshot.groups.first(np.concatenate([self.rows, rows[fresh]]))[len(self.rows) :]
                fresh[fresh] = known
            shown = self.snapshot.groups.best(rows[fresh], self.counted) if self.grouped else rows[fresh]
            self.rows = np.concatenate([self.rows, shown])
            self.scores = np.concatenate([self.scores, run.score[fresh].astype(np.float32)])
            self.exact, self.header = bool(run.header["exact"]), run.header
            if self.moved is not None:
                self.header = {**run.header, "moved": self.moved.fields}
            self.notes += [note for note in run.notes if note not in self.notes]
            if len(self.rows) >= stop or k == every or not self.grouped:
                return
            k = min(4 * k, every)

    @property
    def counted(self) -> Mask:
        """The rows that count as others of a group: those that this search finds, without what is not it."""
        left = (self.mask if self.holding is None else self.holding).copy()
        left[list(self.without)] = False
        return left

    @property
    def grouped(self) -> bool:
        """Whether only the best of each group of copies or burst frames is shown; of what has a verdict all are."""
        return self.params.grouped is not False and self.params.verdict in (None, "unjudged")

    def with_groups(self, rows: Sequence[int]) -> list[int]:
        """These rows in order, with those that stand behind the same tiles."""
        return self.snapshot.groups.members(rows) if self.grouped and rows else sorted(rows)

    @property
    def end(self) -> int | None:
        """After how many hits nothing is likely; None where nobody knows, or has looked so far down."""
        if self.likely_above is None or self.origin is not None:
            return None
        with self._ranking:
            end = int(np.count_nonzero(self.scores >= self.likely_above))
            return end if end < len(self.scores) else None

    def in_order(self, params: SearchParams, rows: Sequence[int], judged: Mapping[int, JudgedPlace]) -> RankedResult:
        """The same hits in another order: these rows first, as a result of its own."""
        self.slice(0, len(rows))
        with self._ranking:
            before, scores = self.rows, dict(zip(self.rows.tolist(), self.scores.tolist(), strict=True))
        head = np.array(rows, np.int64)
        order = np.concatenate([head, before[~np.isin(before, head)]])
        made = self.derived(params, f"{list(rows)} {judged}", judged=judged)
        made.rows, made.scores = order, np.array([scores[row] for row in order.tolist()], np.float32)
        return made

    def derived(self, params: SearchParams, what: str, **changed: Any) -> RankedResult:
        """A result made of this one, with something changed; `what` says what, for its id.

        Rows and scores are those of one moment, also while somebody else pages on.
        """
        id = hashlib.sha256(f"{self.id}\0{params.address()}\0{what}".encode()).hexdigest()[:24]
        with self._ranking:
            return replace(self, id=id, params=params, notes=list(self.notes), origin=self, _ranking=Lock(), **changed)

    @property
    def root(self) -> RankedResult:
        """The search's own ranking, which this was cut from, reordered, or chosen from."""
        return self if self.origin is None else self.origin.root

    @property
    def heading(self) -> str:
        """What was asked, in words."""
        words = [self.params.q] if self.params.q else []
        words += ["a picture"] if self.params.picture else []
        for verdict, items in (("more like", self.params.like), ("not", self.params.unlike)):
            words += [f"{verdict} {quantity(len(items), 'photo')}"] if items else []
        return ", ".join(words)


@dataclass(frozen=True)
class SearchContext:
    """What a search is run in: the gallery, the pictures that people brought, the adapter of the query."""

    snapshot: Snapshot
    pictures: Path
    adapter: AnyAdapter | None = None
    among: ListMask | None = None
    feedback: Feedback | None = None


class ListMask(NamedTuple):
    """The rows of a list, (rows,), and what changes with every change of it."""

    mask: Mask
    version: str


def _searched_vector(snapshot: Snapshot, query: Query | None, moves: Moved) -> Vectors:
    """What is searched for, (1, dim): the query, moved by judged photos; without words, what the yes have in common."""
    yes, no = snapshot.view.vectors(moves.yes), snapshot.view.vectors(moves.no)
    if query is not None:
        vector = snapshot.embedded(query)[0]
        return (moved(vector, yes, no, snapshot.collection.contrast) if moves.yes or moves.no else vector)[None]
    common = yes.mean(axis=0)
    length = float(np.linalg.norm(common))
    if length < 1e-6:
        raise UsageError("what these photos have in common cancels out; take some of them back")
    common = common / length
    return (moved(common, yes[:0], no, snapshot.collection.contrast) if moves.no else common)[None]


def _moves(snapshot: Snapshot, params: SearchParams, feedback: Feedback | None) -> Moved:
    """The photos that move a search: those of the address stand before what is recorded of them."""

    def row(id: str) -> int:
        found = snapshot.row_of(id)
        if found is None:
            raise UsageError(f"there is no item {id!r} in this space; search again without it")
        return found

    like, unlike = [row(id) for id in params.like], [row(id) for id in params.unlike]
    known = feedback or Feedback()
    recorded = rows_of(known, snapshot.rows_by_id([*known.yes, *known.no]))
    here = {*like, *unlike}
    both = {*like} & {*unlike}  # who contradicts themselves moves nothing by that photo
    like, unlike = ([row for row in rows if row not in both] for rows in (like, unlike))
    yes, no = ([row for row in rows if row not in here] for rows in (recorded.yes, recorded.no))
    return recorded._replace(yes=[*like, *yes], no=[*unlike, *no])


def searched(id: str, params: SearchParams, world: SearchContext) -> RankedResult:
    """The result of a search under an id. Raises `UsageError` or `NothingFound` as `Results.search` says."""
    snapshot, query = world.snapshot, query_of(params, world.pictures)
    if not params.something:
        raise UsageError("there is nothing to search for; write words, drop a picture, or say which items it is like")
    mask = mask_of(snapshot, params)
    mask = mask if world.among is None else mask & world.among.mask
    if not mask.any():
        raise nothing_of(snapshot, params)
    moves = _moves(snapshot, params, world.feedback)
    params.refuse_conflicts()
    options = params.model_copy(update={"by": params.way if query is not None else params.by or "look"})
    read = snapshot.reworded(query) if query and options.by == "both" else query
    if params.like or world.feedback:
        refuse_words(options.way)
    vector = _searched_vector(snapshot, read, moves)
    unlike = moves.no[: len(params.unlike)]  # what is taken out is gone from the page, a no of the record is not
    made = RankedResult(id, params, query, snapshot, vector, mask, frozenset(unlike), [], options, world.adapter)
    made.moved = moves if moves.yes or moves.no or world.feedback else None
    made.notes += [moves.note] if world.feedback else []
    made.without = frozenset(made.with_groups(unlike))  # the next copy is not it either
    made.notes += rewording_notes(query, read) if query and read else []
    if options.by == "words":  # which ends where no label holds a word
        found = made._ranked(int(mask.sum()), mask).image.astype(np.int64)
        found = found[~np.isin(found, list(made.without))]
        made.holding = np.isin(np.arange(len(mask)), found)
        made.most = int(made.snapshot.groups.first(found).sum()) if made.grouped else len(found)
        if not made.most:
            raise NothingFound("no label, title or name holds a word of the query; search by look")
    if not made.total:
        raise NothingFound("nothing is left; take back some of what is not it")
    with logged(query):
        made.slice(0, 1)
    worded = options.by == "words" or made.header.get("worded")
    alone = not (worded or made.moved or params.adapt or params.neighbours is not None)
    made.notes += filter_notes(params, snapshot.mask)
    answered = options.by == "words" or bool(made.header.get("answered"))
    made.notes += snapshot.notes(query, float(made.slice(0, 1).scores[0]) if alone else None, answered)
    made.likely_above = snapshot.likely_above(query) if alone and query is not None else None
    return made


def nothing_of(snapshot: Snapshot, params: SearchParams) -> NothingFound:
    """Why there is no photo to show, and what to do."""
    if snapshot.view.live.any():
        return NothingFound("; ".join(["no photo fits the filter; widen it", *filter_notes(params, snapshot.mask)]))
    return NothingFound("this gallery holds no photo yet; put some in with: eyespot index PHOTOS -g GALLERY")


def photos_left(snapshot: Snapshot, params: SearchParams, countable: Countable) -> tuple[Mask, int]:
    """The rows that a filter leaves of what can be shown, (rows,), and how many photos a page shows of them."""
    mask = mask_of(snapshot, params) & countable.rows
    return mask, int(mask.sum()) - (snapshot.groups.lost(mask) if countable.grouped else 0)


# -- how many pictures of a result have each label, each column without its own ticks ------------------------------
# A count is the number of photos that the page would show with this label ticked and no other of its column: where
# copies and bursts are folded, a group counts once.


def label_counts(snapshot: Snapshot, params: SearchParams, countable: Countable) -> dict[str, Counts]:
    """For each column of labels how many pictures have each of its values, (values,)."""
    facets = facets_of(snapshot)
    by_unit: dict[str, list[str]] = {}
    for label in params.label:
        column = label.partition("=")[0]
        by_unit.setdefault(facets.taxa.units.get(column, column), []).append(label)
    rest = mask_of(snapshot, params.model_copy(update={"label": ()})) & countable.rows
    alone = SearchParams()
    ticked = {one: mask_of(snapshot, alone.model_copy(update={"label": tuple(some)})) for one, some in by_unit.items()}

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
        self._member_groups = numbers[self._members]
        _, starts, group_of = np.unique(self._member_groups, return_index=True, return_inverse=True)
        self._first = starts[group_of]

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
            pairs = np.unique(np.stack([self._member_groups[other], codes[other]]), axis=1)
            counts += np.bincount(pairs[1] + 1, minlength=size)
        return counts[1:]
