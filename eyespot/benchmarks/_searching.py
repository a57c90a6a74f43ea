"""A benchmark end to end: its queries searched in a gallery with the encoder that made the gallery's vectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot import rooms
from eyespot.benchmarks._benchmark import Task
from eyespot.benchmarks._ranking import aliases
from eyespot.gallery.opened import View
from eyespot.runs.matrix import ranked_matrix
from eyespot.search.collection import Collection
from eyespot.search.embedding import embed
from eyespot.search.matching import UNMATCHED, Matching, matched, renamed
from eyespot.types import Coded, Found, Hit, Index, Mask, Query, Run, Term, UsageError, Vectors

DEPTH, LEAST = 1000, 100
MAPPED = 100_000
BATCH = 256


class Around(NamedTuple):
    """A query and images: `relevant` (n,), `vectors` (n, dim) and the `query` (dim,), all of unit length."""

    relevant: NDArray[np.bool_]
    vectors: Vectors
    query: Vectors


@dataclass(frozen=True)
class Searcher:
    """One space of a gallery as the system to be measured.

    `data` is where pictures of queries lie that the gallery has not; `match` the gallery's column that judged images
    are named by; `allow_missing`: go on though some judged images are not in the gallery.
    """

    collection: Collection
    data: Path
    match: str | None = None
    allow_missing: bool = False
    seconds: dict[str, float] = field(default_factory=dict)

    def __call__(self, task: Task) -> Run:
        """The task's queries ranked; raises `UsageError` if judged images are missing and that is not allowed."""
        texts = task.way == "i2t"
        wanted = _queries_pictures(task) if texts else _images(task)
        matching = self._matched(wanted, {**task.pool, **task.judged.images, **task.judged.queries})
        notes = self._checked(task, matching, set(_judged(task)) if not texts else set(wanted))
        queries = self._vectors(task, matching)  # (queries, dim)
        started = time.perf_counter()
        run = self._captions(task, queries) if texts else self._pictures(task, queries, matching)
        self._took("search", started, len(queries))
        run.header |= {"encoder": self.view.space.encoder, "space": self.view.space.digest, "seconds": self.seconds}
        run.notes = [*notes, *run.notes]
        return run

    @property
    def view(self) -> View:
        """The gallery's rows in this space."""
        return self.collection.view

    def _took(self, what: str, started: float, queries: int) -> None:
        self.seconds[what] = (time.perf_counter() - started) / max(1, queries)

    def around(self, task: Task, query: str, seed: int = 0) -> Around:
        """A query among its relevant images and others of the gallery, at most 100,000 drawn by the seed."""
        if query not in task.judged.queries:
            raise UsageError(f"{task.name} has no query {query!r} to draw a map of")
        one = replace(task, judged=task.judged.only([query]))
        matching = self._matched(_images(one), {**task.pool, **task.judged.images})
        relevant = one.judged.qrels.relevant(query) if query in one.judged.qrels else set()
        rows = {
            row
            for name, row in zip(matching.names, matching.rows.tolist(), strict=True)
            if row >= 0 and name in relevant
        }
        if not rows:
            raise UsageError(f"no relevant image of {query!r} is in the gallery; there is nothing to draw a map of")
        others = np.setdiff1d(np.flatnonzero(self.view.live), sorted(rows))
        if len(others) > MAPPED:
            others = np.sort(np.random.default_rng(seed).choice(others, MAPPED, replace=False))
        drawn = [*sorted(rows), *others.tolist()]
        flags = np.arange(len(drawn)) < len(rows)
        return Around(flags, self._rows(drawn), self._vectors(one, matching)[0])

    # -- who is who ----------------------------------------------------------------------------------------

    def _matched(self, names: Sequence[str], facts: Mapping[str, Mapping[str, object]]) -> Matching:
        """The way of naming under which most images are found."""
        tried = [self._by(names, others) for others in aliases(names, facts)[: 1 if self.match else None]]
        return max(tried, key=lambda matching: int((matching.rows >= 0).sum()))

    def _by(self, names: Sequence[str], others: Sequence[str]) -> Matching:
        found = matched(self.view, others, self.match)
        at = {name: place for place, name in enumerate(found.names)}
        places = [at[other] for other in others]
        twice = set(found.ambiguous)
        ambiguous = [name for name, other in zip(names, others, strict=True) if other in twice]
        ids = [found.ids[place] for place in places]
        return Matching(found.way, list(names), found.rows[np.array(places, np.int64)], ids, ambiguous)

    def _checked(self, task: Task, matching: Matching, needed: set[str]) -> list[str]:
        lacking = [name for name in matching.unmatched if name in needed]
        if lacking and not self.allow_missing:
            raise UsageError(
                f"{len(lacking)} of {len(needed)} judged images are not in the gallery (such as {lacking[0]!r}); "
                "name the column that holds their ids with --match, index the rest, or go on with --allow-missing"
            )
        return matching.notes if lacking or matching.ambiguous else []

    # -- queries -------------------------------------------------------------------------------------------

    def _vectors(self, task: Task, matching: Matching) -> Vectors:
        """One unit vector for each query, (queries, dim)."""
        started = time.perf_counter()
        row = dict(zip(matching.names, matching.rows.tolist(), strict=True))
        queries = list(_asked(task).items())
        known = [(q, row.get(image, -1)) for q, (text, image) in queries if image is not None and text is None]
        stored = {q: at for q, at in known if at >= 0}
        rest = [self._query(q, text, image, row) for q, (text, image) in queries if q not in stored]
        made = dict(zip((query.id for query in rest), self._embedded(rest), strict=True))
        taken = dict(zip(stored, self._rows(list(stored.values())), strict=True))
        self._took("encode", started, len(queries))
        return np.array([taken[q] if q in taken else made[q] for q, _ in queries], np.float32)

    def _embedded(self, queries: Sequence[Query]) -> list[Any]:
        batches = (queries[at : at + BATCH] for at in range(0, len(queries), BATCH))
        return [vector for batch in batches for vector in embed(batch, self.collection.encoder)]

    def _query(self, id: str, text: str | None, image: str | None, row: Mapping[str, int]) -> Query:
        terms = [Term(1.0, text=text)] if text is not None else []
        if image is not None:
            terms.append(Term(1.0, image=self._file(id, image, row.get(image, -1))))
        return Query(id, tuple(terms))

    def _file(self, query: str, image: str, row: int) -> Path:
        """The picture a query asks with: the gallery's, or one in the data folder."""
        places = [self.data / image, self.data / "images" / image, self.data / "ilias_core" / image]
        if row >= 0 and (path := self.view.facts([row])[0]["path"]):
            places.insert(0, Path(path))
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise UsageError(f"the picture {image} of query {query!r} is neither in the gallery nor in {self.data}")
        return found

    def _rows(self, rows: Sequence[int]) -> Vectors:
        """The stored vectors of rows, (rows, dim), as float32 of unit length."""
        blocks, starts = self.view.blocks, self.view.starts
        at = np.searchsorted(starts, rows, side="right") - 1
        taken = [blocks[block][row - starts[block]] for block, row in zip(at.tolist(), rows, strict=True)]
        found = np.array(taken, np.float32).reshape(len(rows), self.view.space.dim)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        unit: Vectors = found / np.maximum(lengths, 1e-12)
        return unit

    # -- rankings ------------------------------------------------------------------------------------------

    def _captions(self, task: Task, queries: Vectors) -> Run:
        """Pictures rank captions."""
        ids = list(task.pool)
        vectors = np.array(self._embedded([Query(id, (Term(1.0, text=str(task.pool[id]["text"])),)) for id in ids]))
        index: Index = rooms.load("indexes", "exact", [np.asarray(vectors, np.float32)])
        run = _run(list(_asked(task)), index.search(queries, min(len(ids), _depth(task))), ids)
        run.header = {"exact": index.exact, "pool": len(ids)}
        return run

    def _pictures(self, task: Task, queries: Vectors, matching: Matching) -> Run:
        if task.judged.candidates is not None:
            return self._candidates(task, queries, matching)
        mask = self._mask(task, matching)
        found = self.collection.index.search(queries, min(int(mask.sum()), _depth(task)), mask)
        ids = self._ids(found.rows)
        names = {row: matching.by_row.get(row, [UNMATCHED + id]) for row, id in ids.items()}
        single = all(len(known) == 1 for known in names.values())
        called = {row: known[0] for row, known in names.items()} if single else ids
        run = _run(list(_asked(task)), found, called)
        run.header = {"exact": self.collection.index.exact, "pool": int(mask.sum())}
        return run if single else renamed(run, matching)

    def _mask(self, task: Task, matching: Matching) -> Mask:
        """What is ranked: the pool that the benchmark names, else every picture of the gallery."""
        if not task.pool:
            return self.view.live
        mask = np.zeros(len(self.view.live), bool)
        named = [row for name, row in zip(matching.names, matching.rows, strict=True) if row >= 0 and name in task.pool]
        mask[named] = True
        return mask & self.view.live

    def _candidates(self, task: Task, queries: Vectors, matching: Matching) -> Run:
        """Each query ranks its own candidates that the gallery has."""
        row = dict(zip(matching.names, matching.rows.tolist(), strict=True))
        candidates = task.judged.candidates or Run({})
        made: dict[str, list[Hit]] = {}
        for query, vector in zip(_asked(task), queries, strict=True):
            names = [hit.image for hit in candidates[query] if row.get(hit.image, -1) >= 0]
            scores = self._rows([row[name] for name in names]) @ vector  # (candidates,)
            run = ranked_matrix([query], names, scores[None].astype(np.float64), len(names)) if names else Run({})
            made[query] = run[query] if names else []
        return Run(made)

    def _ids(self, rows: Any) -> dict[int, str]:
        distinct = np.unique(rows).tolist()
        return dict(zip(distinct, (facts["id"] for facts in self.view.facts(distinct)), strict=True))


def _run(queries: list[str], found: Found, names: Any) -> Run:
    """A run from rows and scores (queries, k); `names` gives each row's id."""
    distinct, codes = np.unique(found.rows, return_inverse=True)
    ids = np.array([*(names[row] for row in distinct.tolist()), None], dtype=object)[:-1]
    query = np.repeat(np.arange(len(queries)), found.rows.shape[1])  # (queries · k,)
    asked = Coded(np.array([*queries, None], dtype=object)[:-1], query)
    return Run.from_columns(asked, Coded(ids, codes.ravel()), found.scores.ravel())


def _asked(task: Task) -> dict[str, tuple[str | None, str | None]]:
    """{query: (text, picture)}; of image→text the picture is the query itself."""
    if task.way == "i2t":
        return {query: (None, query) for query in task.judged.queries}
    found = {q: (_text(facts.get("text")), _text(facts.get("image"))) for q, facts in task.judged.queries.items()}
    silent = [query for query, both in found.items() if both == (None, None)]
    if silent:
        raise UsageError(
            f"{len(silent)} queries of {task.name} have neither text nor picture here (such as {silent[0]!r}); "
            "see what the data folder lacks with --check"
        )
    # A caption's `image` is its answer and no part of it.
    return found if task.composed else {q: (text, None if text else image) for q, (text, image) in found.items()}


def _text(value: object) -> str | None:
    return str(value) if value not in (None, "") else None


def _judged(task: Task) -> list[str]:
    return [image for query in task.judged.qrels for image in task.judged.qrels.relevant(query)]


def _queries_pictures(task: Task) -> list[str]:
    return list(task.judged.queries)


def _images(task: Task) -> list[str]:
    """Everything that is to be found in the gallery: judged, listed, handed out, and asked with."""
    judged = task.judged
    named = [
        *judged.qrels.images.tolist(),
        *task.pool,
        *(judged.candidates.images.tolist() if judged.candidates else ()),
    ]
    pictures = [image for _, image in _asked(task).values() if image is not None]
    return list(dict.fromkeys([*named, *pictures]))


def _depth(task: Task) -> int:
    """As far as any measure looks: its cutoff, R, or else a thousand."""
    relevant = int(np.diff(task.judged.qrels.offsets).max(initial=0))
    looks = {"mAP@R": relevant, "Rprec": relevant}
    return max([LEAST, *(measure.cutoff or looks.get(measure.name, DEPTH) for measure in task.measures)])
