"""A task's queries as vectors: stored ones of pictures that the gallery has, the rest by the encoder, each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eyespot.benchmarks._benchmark import Task
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.matching import RowMatching
from eyespot.types import Query, Term, UsageError, Vectors

BATCH = 256


class VectorSource(NamedTuple):
    """Where a query's vector comes from: a row of the gallery, or without one (-1) terms to encode."""

    row: int
    terms: tuple[Term, ...]


class EncodedTerms(NamedTuple):
    """The vector (dim,) of a query's terms, and its share of the seconds that its batch took."""

    vector: Vectors
    seconds: float


class EncodedQueries(NamedTuple):
    """Unit vectors (queries, dim), and the seconds that the encoder took for all of them, whenever that was."""

    vectors: Vectors
    seconds: float


@dataclass(frozen=True)
class QueryVectors:
    """The encoder of a gallery's space; pictures that the gallery has not are looked for in `data`.

    `reword` may give a query other terms before it is encoded. `known` are terms that are encoded already.
    """

    collection: Collection
    data: Path
    reword: Callable[[Query], Query] | None = None
    known: dict[tuple[Term, ...], EncodedTerms] = field(default_factory=dict, repr=False)

    def sources(self, task: Task, matching: RowMatching) -> dict[str, VectorSource | None]:
        """The source of every query; None where its picture is neither in the gallery nor in the data folder."""
        rows = dict(zip(matching.names, matching.rows.tolist(), strict=True))
        parts = task_queries(task)
        read = [image for text, image in parts.values() if image and (text or rows.get(image, -1) < 0)]
        files = self._files(dict.fromkeys(read), rows)
        return {query: _source(text, image, rows, files) for query, (text, image) in parts.items()}

    def vectors(self, sources: Mapping[str, VectorSource]) -> Vectors:
        """One unit vector for each query, (queries, dim)."""
        return self.encoded(sources).vectors

    def encoded(self, sources: Mapping[str, VectorSource]) -> EncodedQueries:
        """The same with the time that it takes where nothing is known yet."""
        stored = [query for query, source in sources.items() if source.row >= 0]
        taken = dict(zip(stored, self.rows([sources[query].row for query in stored]), strict=True))
        rest = [self._reworded(Query(query, source.terms)) for query, source in sources.items() if source.row < 0]
        made = dict(zip((query.id for query in rest), self._encoded(rest), strict=True))
        found = [taken[query] if query in taken else made[query].vector for query in sources]
        vectors = np.array(found, np.float32).reshape(len(sources), self.collection.view.space.dim)
        return EncodedQueries(vectors, sum(one.seconds for one in made.values()))

    def queries(self, task: Task, matching: RowMatching | None) -> list[Query]:
        """The queries for judges, with the files of their images. Without those that have no file here."""
        rows = dict(zip(matching.names, matching.rows.tolist(), strict=True)) if matching is not None else {}
        parts = task_queries(task)
        files = self._files(dict.fromkeys(image for _, image in parts.values() if image), rows)
        there = {query: part for query, part in parts.items() if not part[1] or part[1] in files}
        return [_query(q, text, files[image] if image else None) for q, (text, image) in there.items()]

    def texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, (texts, dim)."""
        return np.asarray([one.vector for one in self._encoded([Query.words(text) for text in texts])], np.float32)

    def rows(self, rows: Sequence[int]) -> Vectors:
        """The stored vectors of rows, (rows, dim), as float32 of unit length."""
        view = self.collection.view
        at = np.searchsorted(view.starts, rows, side="right") - 1
        taken = [view.blocks[block][row - view.starts[block]] for block, row in zip(at.tolist(), rows, strict=True)]
        found = np.array(taken, np.float32).reshape(len(rows), view.space.dim)
        unit: Vectors = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return unit

    def _reworded(self, query: Query) -> Query:
        return query if self.reword is None else self.reword(query)

    def _encoded(self, queries: Sequence[Query]) -> list[EncodedTerms]:
        """Captions are queries of one task and the pool of another: nothing is encoded twice."""
        fresh = [q for q in {query.terms: query for query in queries}.values() if q.terms not in self.known]
        for start in range(0, len(fresh), BATCH):
            batch = fresh[start : start + BATCH]
            started = time.perf_counter()
            made = embed(batch, self.collection.encoder)  # (batch, dim)
            share = (time.perf_counter() - started) / len(batch)
            self.known.update((query.terms, EncodedTerms(row, share)) for query, row in zip(batch, made, strict=True))
        return [self.known[query.terms] for query in queries]

    def _files(self, images: Iterable[str], rows: Mapping[str, int]) -> dict[str, Path]:
        """Where pictures lie: in the gallery, or in the data folder."""
        view = self.collection.view
        listed = [image for image in images if rows.get(image, -1) >= 0]
        facts = zip(listed, view.facts([rows[image] for image in listed]), strict=True)
        paths = {image: Path(its["path"]) for image, its in facts if its["path"]}
        found = {}
        for image in images:
            indexed = paths.get(image)
            places = [self.data / image, self.data / "images" / image, self.data / "ilias_core" / image]
            found[image] = next((place for place in ([indexed] if indexed else []) + places if place.is_file()), None)
        return {image: path for image, path in found.items() if path is not None}


def task_queries(task: Task) -> dict[str, tuple[str | None, str | None]]:
    """{query: (text, picture)}; of image→text the picture is the query itself."""
    if task.way == "i2t":
        return {query: (None, query) for query in task.judged.queries}
    found = {q: (_text(facts.get("text")), _text(facts.get("image"))) for q, facts in task.judged.queries.items()}
    silent = [query for query, both in found.items() if both == (None, None)]
    if silent:
        raise UsageError(
            f"{len(silent)} queries of {task.name} have neither text nor picture here (such as {silent[0]!r}); "
            "see what the data folder lacks with --check, or score rankings with --run"
        )
    # A caption's `image` is its answer and no part of it.
    return found if task.composed else {q: (text, None if text else image) for q, (text, image) in found.items()}


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


def _query(id: str, text: str | None, image: Path | None) -> Query:
    """The same query as in a search, so that its verdicts serve here too."""
    if image is None:
        return Query.words(text or "", id)
    return Query.picture(image, id) if text is None else Query.composed(image, text, id)


def _source(
    text: str | None, image: str | None, rows: Mapping[str, int], files: Mapping[str, Path]
) -> VectorSource | None:
    if image is None:
        return VectorSource(-1, (Term(1.0, text=text),))
    if text is None and rows.get(image, -1) >= 0:
        return VectorSource(rows[image], ())
    if image not in files:
        return None
    return VectorSource(-1, (*((Term(1.0, text=text),) if text is not None else ()), Term(1.0, image=files[image])))
