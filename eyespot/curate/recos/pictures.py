"""The steps `draw`, `render` and `collect`: pictures of each sub-task, drawn, or photos by searches and labels.

`draw` chooses facts whose answers differ, `render` draws them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import chain, zip_longest
from typing import Any, ClassVar

import numpy as np

from eyespot.curate.recos.sources import DRAWN, Sources
from eyespot.curate.recos.subtasks import Generator, Subtask, names, subtask
from eyespot.gallery import filters
from eyespot.photos.pictures import id_of
from eyespot.pipelines import Added, Context, Drop, Failed, Keep, Outcome, Record, Records
from eyespot.types import NothingFound, UsageError

UNDRAWN = "cannot be drawn"
AMBIGUOUS = "caption of two pictures"
TRIES = 40  # for each picture that is wanted
QUALITY = 92


@dataclass(frozen=True)
class DrawnCounts:
    """How many pictures of a sub-task are drawn: those of v0, and those they are confused with in v1 and v2."""

    subtasks: Mapping[str, int] = field(default_factory=lambda: {"code": 150, "numerical": 150, "translation": 150})


def generator_of(name: str) -> Generator:
    """The generator of a sub-task's pictures; `UsageError` if it is a sub-task of photos."""
    generator = subtask(name).generator
    if generator is None:
        raise UsageError(f"pictures of {name} are not drawn; collect photos for it")
    return generator


def sample_facts(context: Context, how: DrawnCounts) -> Iterator[Outcome]:
    """Pictures to draw. No two of a sub-task have the same answer, or a caption would be true of both."""
    for name, count in how.subtasks.items():
        generator, answers = generator_of(name), set[str]()
        for number in range(count * TRIES):
            facts = generator.sample(context.rng(name, str(number)))
            if len(answers) < count and facts["answer"] not in answers:
                answers.add(facts["answer"])
                yield Added({"id": f"{name}-{number:05d}", "subtask": name, "facts": facts, "version": "v0"})


def rendered(record: Record, context: Context, sources: Sources) -> Outcome:
    """The record with its picture on the disk."""
    generator, facts = generator_of(record["subtask"]), record["facts"]
    try:
        picture = generator.draw(facts, context.rng(record["id"]))
    except UsageError as error:
        return Failed(record, UNDRAWN, str(error))
    jpeg = BytesIO()
    picture.save(jpeg, "JPEG", quality=QUALITY)
    path = sources.draw(record, jpeg.getvalue())
    made = {**record, "image": id_of(jpeg.getvalue()), "source": DRAWN, "path": path}
    return Keep({**made, "stand_in": subtask(record["subtask"]).stand_in})


def wordings(pictures: Iterable[Record]) -> dict[str, set[str]]:
    """The images that each wording of drawn pictures is true of, at any level of detail; keys are `same_words`."""
    images: dict[str, set[str]] = {}
    for record in pictures:
        for text in chain(*generator_of(record["subtask"]).wording(record["facts"])):
            images.setdefault(same_words(text), set()).add(record["image"])
    return images


def same_words(text: str) -> str:
    """A caption without differences that do not count: case, spaces and the mark at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!?")


POOL = "left in the pool"
FURTHER = 4  # times as many hits are read as pictures are wanted, because other sub-tasks have taken some


@dataclass(frozen=True)
class SubtaskPictures:
    """Pictures of a sub-task: `count` of them, from these galleries (none named: all), for which `where` is true.

    With `words` those whose labels contain one of the words (of the sub-task `ocr`: or whose writing does), else the
    results of `queries`. Without both, photos of `ocr` are those in which OCR read something, where a gallery has any.
    `stand_in` says what these pictures stand in for, if they are not what the sub-task means.
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
    """Galleries by name, their encoder, and the wanted pictures; the default is every sub-task that is not opt-in."""

    galleries: Mapping[str, str] = field(default_factory=dict)
    encoder: str | None = None
    subtasks: Mapping[str, SubtaskPictures] = field(default_factory=dict)

    def wanted(self) -> dict[str, SubtaskPictures]:
        """The wanted pictures of each sub-task; `UsageError` for an unknown sub-task."""
        usual = {name: SubtaskPictures() for name in names() if not subtask(name).opt_in}
        return {name: pictures for name, pictures in (dict(self.subtasks) or usual).items() if subtask(name)}

    def counts(self) -> dict[str, int]:
        """How many pictures of each sub-task are wanted."""
        return {name: subtask(name).count if it.count is None else it.count for name, it in self.wanted().items()}

    def shared(self, limit: int) -> Collecting:
        """The same with at most `limit` pictures in all, of which every sub-task gets its share."""
        counts = self.counts()
        while sum(counts.values()) > limit:
            most = max(counts, key=lambda name: counts[name])
            counts[most] -= 1
        wanted = self.wanted().items()
        return replace(self, subtasks={name: replace(it, count=counts[name]) for name, it in wanted})


def collected(records: Records, context: Context, sources: Sources, how: Collecting) -> Iterator[Outcome]:
    """Drawn pictures up to the wanted number, the rest left for later versions; and photos."""
    wanted, counts = how.wanted(), how.counts()
    chosen: set[str] = set()
    drawn = {record["subtask"]: None for record in records}
    for name in drawn:
        ids = [record["id"] for record in records if record["subtask"] == name]
        chosen.update(context.rng(name).sample(ids, min(counts.get(name, 0), len(ids))))
    for record in records:
        yield Keep(record) if record["id"] in chosen else Drop(record, POOL)
    candidates: dict[str, list[Record]] = {}
    for name, pictures in wanted.items():
        if name not in drawn:
            galleries = pictures.galleries or sources.galleries
            lists = [_candidates(context, sources, subtask(name), pictures, gallery) for gallery in galleries]
            candidates[name] = list(_alternating(lists))
    taken = set[str]()  # a photo serves one sub-task alone, the first that takes it
    for name, photos in candidates.items():
        fresh = [photo for photo in photos if photo["image"] not in taken][: counts[name]]
        taken.update(photo["image"] for photo in fresh)
        fields = {"subtask": name, "version": "v0", "stand_in": wanted[name].stand_in}
        yield from (Added({"id": photo["image"], **photo, **fields}) for photo in fresh)


# -- photos -----------------------------------------------------------------------------------------------------


def _candidates(context: Context, sources: Sources, of: Subtask, wanted: SubtaskPictures, gallery: str) -> list[Record]:
    """Photos of a gallery for a sub-task: by labels or writing in random order, or by searches, best first."""
    queries = wanted.queries or of.queries
    if wanted.words:
        pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, wanted.words))})(?!\w)", re.IGNORECASE)
        photos = _allowed(sources, wanted, gallery)
        fits = [
            it for it in photos if pattern.search(labels_of(it)) or (of.of_writing and pattern.search(it["writing"]))
        ]
        return context.rng(gallery, *wanted.words).sample(fits, len(fits))
    if of.of_writing and not wanted.queries:
        written = [photo for photo in _allowed(sources, wanted, gallery) if photo["writing"]]
        if written:
            return context.rng(gallery, "writing").sample(written, len(written))
    if not queries:
        drawn = "name it in the step draw, or " if of.generator is not None else ""
        raise UsageError(f"nothing says which photos are for {of.name}; {drawn}give it queries or words of labels")
    count = (of.count if wanted.count is None else wanted.count) * FURTHER
    lists: list[Sequence[Record]] = []
    for query in queries:
        try:
            run = sources.world(gallery).collection(sources.named).search(query, k=count, where=wanted.where, by="look")
        except NothingFound:
            continue
        rows = sources.rows(gallery)
        lists.append(sources.photos(gallery, [rows[hit.image] for hits in run.values() for hit in hits]))
    return list(_alternating(lists))


def _allowed(sources: Sources, wanted: SubtaskPictures, gallery: str) -> list[dict[str, Any]]:
    """The photos of a gallery for which `where` is true."""
    view = sources.world(gallery).view(sources.named)
    mask = view.live
    if wanted.where is not None:
        mask = mask & filters.mask(view.tables, filters.checked(wanted.where, list(filters.columns_of(view.tables))))
    return sources.photos(gallery, np.flatnonzero(mask).tolist())


def labels_of(record: Record) -> str:
    """All labels of a picture in one text."""
    return " . ".join(str(value) for value in record["facts"].values())


def _alternating(lists: Sequence[Sequence[Record]]) -> Iterator[Record]:
    """The first of each list, the second of each, and so on; a picture once."""
    seen: set[str] = set()
    for together in zip_longest(*lists):
        for photo in together:
            if photo is not None and photo["image"] not in seen:
                seen.add(photo["image"])
                yield photo
