"""The step `collect`: which pictures stand for which sub-task, by words that a gallery is searched for or by labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np

from eyespot.curate.recos.sources import Sources
from eyespot.curate.recos.subtasks import Subtask, names, subtask
from eyespot.gallery import filters
from eyespot.pipelines import Added, Context, Drop, Keep, Outcome, Record, Records
from eyespot.types import NothingFound, UsageError

POOL = "left in the pool"
FURTHER = 4  # times as many hits are looked at as pictures are wanted, for some are taken already


@dataclass(frozen=True)
class SubtaskPictures:
    """Pictures of a sub-task: so many, from these galleries (none named: all), that the condition `where` lets through.

    With `words` those whose labels hold one of the words, else what searching for `queries` finds. `stand_in` says
    what these pictures stand in for, where they are not what the sub-task means.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    count: int | None = None
    queries: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    where: str | None = None
    galleries: tuple[str, ...] = ()
    stand_in: str = ""


@dataclass(frozen=True)
class Collecting:
    """Galleries by name, the encoder they are searched with, and what is wanted; none said: all but what is opt-in."""

    galleries: Mapping[str, str] = field(default_factory=dict)
    encoder: str | None = None
    subtasks: Mapping[str, SubtaskPictures] = field(default_factory=dict)

    def wanted(self) -> dict[str, SubtaskPictures]:
        """What is wanted of each sub-task; `UsageError` for one that there is not."""
        usual = {name: SubtaskPictures() for name in names() if not subtask(name).opt_in}
        return {name: one for name, one in (dict(self.subtasks) or usual).items() if subtask(name)}

    def shared(self, limit: int) -> Collecting:
        """The same with no more than so many pictures in all, every sub-task getting its share."""
        counts = {name: subtask(name).count if one.count is None else one.count for name, one in self.wanted().items()}
        while sum(counts.values()) > limit:
            most = max(counts, key=lambda name: counts[name])
            counts[most] -= 1
        return replace(self, subtasks={name: replace(one, count=counts[name]) for name, one in self.wanted().items()})


def collected(records: Records, context: Context, sources: Sources, how: Collecting) -> Iterator[Outcome]:
    """Drawn pictures up to the number that is wanted, the rest left for later versions; and photos."""
    wanted = how.wanted()
    chosen: set[str] = set()
    for name in {record["subtask"]: None for record in records}:
        ids = [record["id"] for record in records if record["subtask"] == name]
        count = _count(subtask(name), wanted[name]) if name in wanted else 0
        chosen.update(context.chance(name).sample(ids, min(count, len(ids))))
    for record in records:
        yield Keep(record) if record["id"] in chosen else Drop(record, POOL)
    drawn, taken = {record["subtask"] for record in records}, set[str]()
    for name, one in wanted.items():
        if name not in drawn:
            yield from _photos(context, sources, subtask(name), one, taken)


def _count(of: Subtask, wanted: SubtaskPictures) -> int:
    return of.count if wanted.count is None else wanted.count


# -- photos -----------------------------------------------------------------------------------------------------


def _photos(
    context: Context, sources: Sources, of: Subtask, wanted: SubtaskPictures, taken: set[str]
) -> Iterator[Outcome]:
    """The pictures of one sub-task; a photo serves one sub-task alone, the first that takes it."""
    count = _count(of, wanted)
    gallery_names = wanted.galleries or tuple(sources.galleries)
    for photo in _alternating([_candidates(context, sources, of, wanted, name) for name in gallery_names]):
        if not count:
            return
        if photo["image"] not in taken:
            taken.add(photo["image"])
            count -= 1
            told = {"subtask": of.name, "version": "v0", "stand_in": wanted.stand_in}
            yield Added({"id": photo["image"], **photo, **told})


def _candidates(context: Context, sources: Sources, of: Subtask, wanted: SubtaskPictures, name: str) -> list[Record]:
    if wanted.words:
        return _labelled(context, sources, wanted, name)
    queries = wanted.queries or of.queries
    if not queries:
        drawn = "name it in the step draw, or " if of.generator is not None else ""
        raise UsageError(f"nothing says which photos are for {of.name}; {drawn}give it queries or words of labels")
    count = _count(of, wanted) * FURTHER
    lists = []
    for query in queries:
        try:
            run = sources.world(name).collection(sources.named).search(query, k=count, where=wanted.where)
        except NothingFound:
            records = []
        else:
            ids = [hit.image for hits in run.values() for hit in hits]
            rows = sources.rows(name)
            records = [*sources.photos(name, [rows[id] for id in ids])]
        lists.append(records)
    return list(_alternating(lists))


def _labelled(context: Context, sources: Sources, wanted: SubtaskPictures, name: str) -> list[Record]:
    """Photos whose labels hold one of the words, in an order drawn by chance."""
    view = sources.world(name).view(sources.named)
    mask = view.live
    if wanted.where is not None:
        mask = mask & filters.mask(view.tables, filters.checked(wanted.where, list(filters.columns_of(view.tables))))
    found = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, wanted.words))})(?!\w)", re.IGNORECASE)
    photos = sources.photos(name, np.flatnonzero(mask).tolist())
    fits = [photo for photo in photos if found.search(labels_of(photo))]
    return context.chance(name, *wanted.words).sample(fits, len(fits))


def labels_of(record: Record) -> str:
    """All that the labels of a picture say, in one text."""
    return " . ".join(str(value) for value in record["facts"].values())


def _alternating(lists: Sequence[Sequence[Record]]) -> Iterator[Record]:
    """The first of each list, the second of each, and so on; a picture once."""
    seen: set[str] = set()
    for together in zip_longest(*lists):
        for photo in together:
            if photo is not None and photo["image"] not in seen:
                seen.add(photo["image"])
                yield photo
