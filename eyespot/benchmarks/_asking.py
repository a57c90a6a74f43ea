"""A task's queries as vectors, each encoded once, and its images as rows of a gallery, whatever each calls them."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._fitting import aliases
from eyespot.gallery.view import View
from eyespot.kernels.rows import unit_rows
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.matching import RowMatching, matched
from eyespot.types import Query, Run, Term, UsageError, Vectors

BATCH = 256


@dataclass(frozen=True)
class VectorSource:
    """Where a query's vector comes from: a row of the gallery, or without one (-1) terms to encode."""

    row: int
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class QueryVectors:
    """The encoder of a gallery's space; pictures that the gallery has not are looked for in `data`.

    `reword` may give a query other terms before it is encoded. `known` are terms that are encoded already: the vector
    (dim,), and its share of the seconds that its batch took.
    """

    collection: Collection
    data: Path
    reword: Callable[[Query], Query] | None = None
    known: dict[tuple[Term, ...], tuple[Vectors, float]] = field(default_factory=dict, repr=False)

    def sources(self, task: Task, matching: RowMatching) -> dict[str, VectorSource | None]:
        """The source of every query; None where its picture is neither in the gallery nor in the data folder."""
        rows = dict(zip(matching.names, matching.rows.tolist(), strict=True))
        parts = task_queries(task)
        read = [image for text, image in parts.values() if image and (text or rows.get(image, -1) < 0)]
        files = self._files(dict.fromkeys(read), rows)
        found: dict[str, VectorSource | None] = dict.fromkeys(parts)
        for query, (text, image) in parts.items():
            words = () if text is None and image is not None else (Term(1.0, text=text),)
            if image is None:
                found[query] = VectorSource(-1, words)
            elif text is None and rows.get(image, -1) >= 0:
                found[query] = VectorSource(rows[image], ())
            elif image in files:
                found[query] = VectorSource(-1, (*words, Term(1.0, image=files[image])))
        return found

    def encoded(self, sources: Mapping[str, VectorSource]) -> tuple[Vectors, float]:
        """Unit vectors (queries, dim), and the seconds that the encoder took for all of them, whenever that was."""
        stored = [query for query, source in sources.items() if source.row >= 0]
        taken = dict(zip(stored, self.rows([sources[query].row for query in stored]), strict=True))
        rest = [Query(query, source.terms) for query, source in sources.items() if source.row < 0]
        rest = rest if self.reword is None else list(map(self.reword, rest))
        made = dict(zip((query.id for query in rest), self._encoded(rest), strict=True))
        found = [taken[query] if query in taken else made[query][0] for query in sources]
        vectors = np.array(found, np.float32).reshape(len(sources), self.collection.view.space.dim)
        return vectors, sum(seconds for _, seconds in made.values())

    def queries(self, task: Task, matching: RowMatching | None) -> list[Query]:
        """The queries for judges, with the files of their images. Without those that have no file here."""
        rows = dict(zip(matching.names, matching.rows.tolist(), strict=True)) if matching is not None else {}
        parts = task_queries(task)
        files = self._files(dict.fromkeys(image for _, image in parts.values() if image), rows)
        there = {query: part for query, part in parts.items() if part[1] is None or part[1] in files}
        found = []
        for query, (text, image) in there.items():  # the same queries as in a search, so that its verdicts serve here
            if image is None:
                found.append(Query.words(text or "", query))
            else:
                file = files[image]
                found.append(Query.picture(file, query) if text is None else Query.composed(file, text, query))
        return found

    def texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, (texts, dim)."""
        return np.asarray([vector for vector, _ in self._encoded([Query.words(text) for text in texts])], np.float32)

    def rows(self, rows: Sequence[int]) -> Vectors:
        """The stored vectors of rows, (rows, dim), as float32 of unit length."""
        return unit_rows(self.collection.view.blocks, np.asarray(rows, np.int64))

    def _encoded(self, queries: Sequence[Query]) -> list[tuple[Vectors, float]]:
        """Captions are queries of one task and the pool of another: nothing is encoded twice."""
        fresh = [q for q in {query.terms: query for query in queries}.values() if q.terms not in self.known]
        for start in range(0, len(fresh), BATCH):
            batch = fresh[start : start + BATCH]
            started = time.perf_counter()
            made = embed(batch, self.collection.encoder)  # (batch, dim)
            share = (time.perf_counter() - started) / len(batch)
            self.known.update((query.terms, (row, share)) for query, row in zip(batch, made, strict=True))
        return [self.known[query.terms] for query in queries]

    def _files(self, images: Iterable[str], rows: Mapping[str, int]) -> dict[str, Path]:
        """Where pictures lie: in the gallery, or in the data folder."""
        view = self.collection.view
        listed = [image for image in images if rows.get(image, -1) >= 0]
        facts = zip(listed, view.facts([rows[image] for image in listed]), strict=True)
        paths = {image: Path(row["path"]) for image, row in facts if row["path"]}
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


def matched_names(
    view: View, names: Sequence[str], facts: Mapping[str, Mapping[str, object]], *, column: str | None
) -> RowMatching:
    """Names of images to rows: the way of naming under which most are found, the first of equals, or by a column."""
    best: RowMatching | None = None
    for others in aliases(names, facts)[: 1 if column else None]:
        found = matched(view, others, column)
        if best is None or len(found.unmatched) < len(best.unmatched):
            named = dict(zip(others, names, strict=True))
            ambiguous = [named[other] for other in found.ambiguous]
            best = RowMatching(found.way, [named[other] for other in found.names], found.rows, found.ids, ambiguous)
        if not best.unmatched:
            break
    assert best is not None
    return best


def with_other_names(called: Callable[[str], str | None], matching: RowMatching, ranked: Run) -> RowMatching:
    """The matching, and what the benchmark calls the other pictures that were found."""
    taken = set(matching.names)
    names: dict[str, str] = {}  # by name, the id
    for id in ranked.images.tolist():
        path = ranked.facts[id]["path"]
        name = None if id in matching.by_id or not path else called(path)
        if name is not None and name not in taken:
            taken.add(name)
            names[name] = id
    rows = np.append(matching.rows, np.full(len(names), -1, np.int64))
    known = [*matching.names, *names], rows, [*matching.ids, *names.values()]
    return RowMatching(matching.way, *known, matching.ambiguous)


def rows_of(matching: RowMatching, names: Container[str]) -> list[int]:
    """The rows that any of these names means."""
    found = zip(matching.rows.tolist(), matching.names, strict=True)
    return list(dict.fromkeys(row for row, name in found if row >= 0 and name in names))


def wanted(task: Task) -> tuple[list[str], Mapping[str, Mapping[str, object]]]:
    """Every image to find in the gallery (judged, in the pool, a candidate, part of a query), and its facts."""
    judged = task.judged
    if task.way == "i2t":
        return list(judged.queries), judged.queries
    pictures = [image for _, image in task_queries(task).values() if image is not None]
    handed = judged.candidates.images.tolist() if judged.candidates is not None else []
    beside_list = judged.images if task.listed is not None else ()
    named = [*judged.qrels.images.tolist(), *task.pool, *handed, *pictures, *task.apart, *beside_list]
    return list(dict.fromkeys(named)), task.image_facts
