"""A benchmark end to end: its queries searched in a gallery with the encoder that made the gallery's vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from eyespot import rooms
from eyespot.benchmarks._asking import (
    QueryVectors,
    VectorSource,
    matched_names,
    rows_of,
    task_queries,
    wanted,
    with_other_names,
)
from eyespot.benchmarks._benchmark import Task
from eyespot.gallery.view import View
from eyespot.photos.pictures import id_of
from eyespot.runs.matrix import ranked_matrix
from eyespot.search.adapted import AnyAdapter, cautions, index_under, refuse_other_space, seen_through
from eyespot.search.chain import chain_of
from eyespot.search.collection import Collection
from eyespot.search.embedding import KnownVectors, cut_notes
from eyespot.search.matching import UNMATCHED, RowMatching, matched, renamed
from eyespot.search.query_rewriting import Reworded
from eyespot.search.rescored import Rescored
from eyespot.settings.search import RankingSettings
from eyespot.types import IdColumn, Index, NothingFound, Query, RankedImage, Run, UsageError, Vectors, quantity

DEPTH, LEAST = 1000, 100
Rank: TypeAlias = Callable[[list[str], Vectors], Run]  # queries by their vectors (queries, dim) to their rankings


def unfit(task: Task, stages: RankingSettings) -> str:
    """Why the stages cannot rank a task, in one sentence with the way out; empty where they can."""
    if stages.neighbours is None and stages.local is None and stages.way == "look":
        return ""
    option = "--by" if stages.way != "look" else "--neighbours" if stages.local is None else "--rerank-local"
    if task.way == "i2t":
        return f"{task.name} ranks captions, and {option} needs pictures of the gallery; leave it out"
    if task.judged.candidates is not None:
        return f"each query of {task.name} ranks its own candidates, which {option} does not reach; leave it out"
    if stages.local and not all(image for _, image in task_queries(task).values()):
        return (
            f"the queries of {task.name} are words, and local descriptors compare pictures; choose a benchmark whose "
            "queries have pictures, or leave out --rerank-local"
        )
    return ""


@dataclass(frozen=True)
class GallerySearcher:
    """One space of a gallery as the system to be measured, with an `adapter` every query in its own view of it.

    `data` is where pictures of queries lie that the gallery has not; `match` the gallery's column that judged images
    are named by; `allow_missing`: go on though some images of the benchmark are not in the gallery. At least `least`
    images are ranked for each query. The first `looked_at` of a run have their pictures in its facts; `reword` gives a
    query other terms before it is searched. `stages` says what follows the first stage; `known_queries` are those that
    another searcher of the same space has encoded.
    """

    collection: Collection
    data: Path
    match: str | None = None
    allow_missing: bool = False
    least: int = LEAST
    looked_at: int = 0
    reword: Reworded | None = None
    adapter: AnyAdapter | None = None
    stages: RankingSettings = field(default_factory=lambda: RankingSettings(by="look"))
    known_queries: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.adapter is not None:
            refuse_other_space(self.adapter, self.view.space)

    def __call__(self, task: Task) -> Run:
        """The task's queries ranked; raises `UsageError` if images are missing and that is not allowed."""
        if why := unfit(task, self.stages):
            raise UsageError(why)
        matching = self._matched(*wanted(task))
        # Needed in the gallery for the benchmark's numbers: all that is to be ranked or found
        judged = task.judged
        if task.way == "i2t":
            needed = set()  # what a query asks with may lie in the data folder
        else:
            handed = judged.candidates.images.tolist() if judged.candidates is not None else []
            relevant = (image for query in judged.qrels for image in judged.qrels.relevant(query))
            needed = {*relevant, *handed, *task.pool, *(judged.images if task.listed is not None else ())}
        notes = self._checked(matching, needed)
        sources, source_notes = self._sources(task, matching)
        vectors, encoding = self._asking.encoded(sources)  # (queries, dim)
        rank = self._captions(task) if task.way == "i2t" else self._pictures(task, matching)
        started = time.perf_counter()
        run = rank(list(sources), vectors)
        seconds = _each(encoding, started, len(sources))
        run.header |= {"encoder": self.view.space.encoder, "space": self.view.space.digest, "seconds": seconds}
        run.header |= {"adapted": True} if self.adapter is not None else {}
        run.header |= {"view": view} if (view := self.view.space.picture_view) else {}
        missing = sum(name in needed for name in matching.unmatched) + len(task_queries(task)) - len(sources)
        if task.listed is not None:
            listed = task.listed.rows(self.view, self.match, self.allow_missing)
            missing += listed.total - listed.there
            run.header |= {"listed": task.listed.title}
            notes += [f"{task.listed.sentence(listed)}; they cannot be found"] * (listed.there < listed.total)
        run.header |= {"missing": missing} if missing else {}
        caution = cautions(self.adapter, [Query(id, source.terms) for id, source in sources.items()])
        run.notes = list(dict.fromkeys([*notes, *source_notes, *caution, *run.notes]))
        return run

    def rerank(self, task: Task, run: Run, depth: int) -> Run:
        """The first `depth` hits of another system's run in the order of these stages, the rest behind as they were.

        Hits that the gallery lacks go behind those that it has, and a note counts them.
        """
        if task.way == "i2t":
            raise UsageError(f"{task.name} ranks captions, re-ranking needs pictures; name the file of another task")
        if why := unfit(task, self.stages):
            raise UsageError(why)
        ids = self.ids_of(task, [hit.image for query in run for hit in run[query][:depth]])
        if not ids:
            way_out = "choose that of the run with -g, or the column of its names with --match"
            raise NothingFound(f"the gallery has none of the first {depth} hits of {task.name}; {way_out}")
        heads: dict[str, list[RankedImage]] = {}  # under the gallery's ids, each picture once
        for query in (query for query in run if query in task.judged.queries):
            best: dict[str, float] = {}
            for hit in run[query][:depth]:
                if hit.image in ids:
                    best.setdefault(ids[hit.image], hit.score)
            heads[query] = [RankedImage(id, score) for id, score in best.items()]
        ranked = self.ranked(task, Run(heads), depth)
        scores = {query: {hit.image: hit.score for hit in ranked[query]} for query in ranked}
        named = {
            query: [
                RankedImage(hit.image, scores[query][ids[hit.image]]) for hit in run[query][:depth] if hit.image in ids
            ]
            for query in ranked
        }
        made, without = Rescored(Run(named), depth)(run.only(set(named)))
        made.header |= {name: value for name, value in ranked.header.items() if name != "depth"}
        made.notes = [*run.notes, *ranked.notes]
        if without:
            made.notes.append(f"{without} of the first {quantity(depth, 'hit')} are not in the gallery and go last")
        return made

    def ranked(self, task: Task, run: Run, depth: int) -> Run:
        """A run of gallery ids after these stages; without the queries whose pictures are not here."""
        matching = self._matched(*wanted(task))
        sources, notes = self._sources(task, matching)
        there = {query: sources[query] for query in run if query in sources}
        vectors, encoding = self._asking.encoded(there)
        queries = self._queries(task, matching, list(there))
        chain = chain_of(
            self.collection,
            self.stages,
            k=depth,
            mask=self.view.live,
            adapter=self.adapter,
            vectors=self._known(queries, vectors),
            reranks=depth,
        )
        started = time.perf_counter()
        made = chain(queries, run)
        made.header["seconds"] = _each(encoding, started, len(there))
        made.notes = [*notes, *made.notes]
        return made

    def ids_of(self, task: Task, names: Sequence[str]) -> dict[str, str]:
        """The gallery's id of each image that it has, by the names of a run."""
        rows = self._rows_named(list(dict.fromkeys(names)), task.image_facts)
        return {name: str(found["id"]) for name, found in zip(rows, self.view.facts(list(rows.values())), strict=True)}

    def _queries(self, task: Task, matching: RowMatching, names: Sequence[str]) -> list[Query]:
        """Queries whose vectors are known; with words and pictures, where a stage reads those."""
        if self.stages.way != "look":
            texts = task_queries(task)
            return [Query.words(text, name) if (text := texts[name][0]) else Query(name, ()) for name in names]
        if self.stages.local is None:
            return [Query(name, ()) for name in names]
        pictured = {query.id: query for query in self._asking.queries(task, matching)}
        if lacking := [name for name in names if name not in pictured]:
            raise UsageError(
                f"the pictures of {len(lacking)} queries are not on this machine (such as that of {lacking[0]!r}), and "
                "local descriptors need them; add them to the data folder, or leave out --rerank-local"
            )
        return [pictured[name] for name in names]

    def _known(self, queries: Sequence[Query], vectors: Vectors) -> KnownVectors:
        return KnownVectors({query.id: row for query, row in zip(queries, vectors, strict=True)}, self.view.space.dim)

    @property
    def view(self) -> View:
        """The gallery's rows in this space."""
        return self.collection.view

    def _matched(self, names: Sequence[str], facts: Mapping[str, Mapping[str, object]]) -> RowMatching:
        return matched_names(self.view, names, facts, column=self.match)

    @cached_property
    def _asking(self) -> QueryVectors:
        return QueryVectors(self.collection, self.data, self.reword, self.known_queries)

    # -- for whoever looks at pictures ---------------------------------------------------------------------

    def runnable_queries(self, task: Task) -> list[Query]:
        """The task's queries in words and pictures; without those whose pictures are not here."""
        pictures = [image for _, image in task_queries(task).values() if image is not None]
        return self._asking.queries(task, self._matched(pictures, task.image_facts) if pictures else None)

    def query_pictures(self, task: Task) -> dict[str, tuple[str, Path]]:
        """Of image→text, the id and the place of the picture of every query; without those that are not here."""
        rows = self._rows_named(list(task.judged.queries), task.image_facts)
        facts = zip(rows, self.view.facts(list(rows.values())), strict=True)
        found = {name: (str(row["id"]), Path(row["path"])) for name, row in facts if row["path"]}
        files = {query.id: query.terms[0].image for query in self.runnable_queries(task) if query.id not in found}
        return found | {name: (id_of(file.read_bytes()), file) for name, file in files.items() if file is not None}

    def pictured(self, task: Task, run: Run, depth: int) -> Run:
        """The run with `id` and `path` of the first hits in its facts, as far as the gallery has them."""
        names = list(dict.fromkeys(hit.image for hits in run.values() for hit in hits[:depth]))
        unknown = [name for name in names if name not in run.facts]
        found = self._rows_named(unknown, task.image_facts)
        facts = zip(found, map(itemgetter("id", "path"), self.view.facts(list(found.values()))), strict=True)
        made = copy(run)
        made.facts = {**run.facts, **{name: {"id": id, "path": path} for name, (id, path) in facts}}
        return made

    def _rows_named(self, names: list[str], facts: Mapping[str, Mapping[str, object]]) -> dict[str, int]:
        """The row of each name that the gallery has, and of `gallery:ID`, as runs of ours name unjudged pictures."""
        strange = [name for name in names if name.startswith(UNMATCHED)]
        ids = matched(self.view, [name.removeprefix(UNMATCHED) for name in strange], "id").rows.tolist()
        known = [name for name in names if not name.startswith(UNMATCHED)]
        rows = self._matched(known, facts).rows.tolist() if known else []
        found = zip([*strange, *known], [*ids, *rows], strict=True)
        return {name: row for name, row in found if row >= 0}

    # -- who is who ----------------------------------------------------------------------------------------

    def _checked(self, matching: RowMatching, needed: set[str]) -> list[str]:
        doubted = matching.notes if matching.ambiguous else []
        lacking = [name for name in matching.unmatched if name in needed]
        if not lacking:
            return doubted
        message = f"{len(lacking)} of {quantity(len(needed), 'image')} of the benchmark are not in the gallery"
        message += f" (such as {lacking[0]!r})"
        if not self.allow_missing:
            way_out = "name the column of their ids with --match, index the rest, or add --allow-missing"
            raise UsageError(f"{message}; {way_out}")
        return [f"{message}; they cannot be found", *doubted]

    def _sources(self, task: Task, matching: RowMatching) -> tuple[dict[str, VectorSource], list[str]]:
        """The queries that can be searched, and notes on those that cannot."""
        found = self._asking.sources(task, matching)
        there = {query: source for query, source in found.items() if source is not None}
        lost = [query for query in found if query not in there]
        cut = cut_notes([Query(query, source.terms) for query, source in there.items()], self.collection.encoder)
        if not lost:
            return there, [*cut]
        where = f"neither in the gallery nor in {self.data} (such as that of {lost[0]!r})"
        message = f"the pictures of {len(lost)} of {quantity(len(found), 'query')} are {where}"
        if not self.allow_missing or not there:
            raise UsageError(f"{message}; add them, or go on without such queries with --allow-missing")
        return there, [f"{message}; these queries are not asked", *cut]

    # -- rankings ------------------------------------------------------------------------------------------

    def _captions(self, task: Task) -> Rank:
        ids = list(task.pool)
        if silent := [id for id in ids if not task.pool[id].get("text")]:
            few = f"{len(silent)} captions of {task.name} have no text here, such as {silent[0]!r}"
            raise UsageError(f"{few}; score rankings with --run")
        vectors = self._asking.texts([str(task.pool[id]["text"]) for id in ids])
        over_index: Index = rooms.load("indexes", "exact", [vectors])
        index = over_index if self.adapter is None else index_under(self.adapter, [vectors])

        def rank(names: list[str], queries: Vectors) -> Run:
            found = index.search(queries, min(len(ids), self._depth(task)))  # rows and scores (queries, k)
            query = np.repeat(np.arange(len(names)), found.rows.shape[1])  # (queries · k,)
            distinct, codes = np.unique(found.rows, return_inverse=True)
            captions = IdColumn(np.array([*(ids[row] for row in distinct), None], dtype=object)[:-1], codes.ravel())
            of_query = IdColumn(np.array([*names, None], dtype=object)[:-1], query)
            run = Run.from_columns(of_query, captions, found.scores.ravel())
            run.header = {"exact": index.exact, "pool": len(ids)}
            return run

        return rank

    def _pictures(self, task: Task, matching: RowMatching) -> Rank:
        if (candidates := task.judged.candidates) is not None:
            return lambda names, queries: self._candidates(candidates, matching, names, queries)
        # What is ranked: the pool that the benchmark names, else every picture of the gallery but those apart
        mask = self.view.live.copy()
        if task.pool:
            mask[:] = False
            mask[rows_of(matching, task.pool)] = True
        elif task.listed is not None:
            mask[:] = task.listed.rows(self.view, self.match, self.allow_missing).mask
            mask[rows_of(matching, task.judged.images)] = True
        else:
            mask[rows_of(matching, set(task.apart).difference(task.judged.qrels.images.tolist()))] = False
        mask &= self.view.live
        if not mask.any():
            raise NothingFound(f"no image of {task.name} is in the gallery; choose another with -g")

        def rank(names: list[str], vectors: Vectors) -> Run:
            k = min(int(mask.sum()), self._depth(task))
            queries = self._queries(task, matching, names)
            known = self._known(queries, vectors)
            chain = chain_of(self.collection, self.stages, k=k, mask=mask, adapter=self.adapter, vectors=known)
            ranked = chain(queries)
            run = self._renamed(task, matching, ranked)
            run.header, run.notes = ranked.header | {"pool": int(mask.sum())}, ranked.notes
            return run

        return rank

    def _renamed(self, task: Task, matching: RowMatching, ranked: Run) -> Run:
        """Gallery ids under the names of the benchmark; one may have several, and then is ranked under each."""
        known = matching if task.called is None else with_other_names(task.called, matching, ranked)
        names = {id: known.by_id.get(id, [UNMATCHED + id]) for id in ranked.images.tolist()}
        if all(len(several) == 1 for several in names.values()):
            single = np.array([*(several[0] for several in names.values()), None], dtype=object)[:-1]
            queries = np.array([*ranked.queries, None], dtype=object)[:-1]
            of_query = np.repeat(np.arange(len(queries)), np.diff(ranked.offsets))  # (hits,)
            run = Run.from_columns(IdColumn(queries, of_query), IdColumn(single, ranked.codes), ranked.score)
        else:
            run = renamed(ranked, known)
        seen = ranked.images[np.unique(ranked.codes[ranked.rank <= self.looked_at])].tolist()
        facts = {id: {key: ranked.facts[id][key] for key in ("id", "path")} for id in seen}
        run.facts = {name: facts[id] for id in seen for name in names[id]}
        return run

    def _candidates(self, candidates: Run, matching: RowMatching, queries: list[str], vectors: Vectors) -> Run:
        """Each query ranks its own candidates that the gallery has."""
        row = {name: row for name, row in zip(matching.names, matching.rows.tolist(), strict=True) if row >= 0}
        made: dict[str, list[RankedImage]] = {}
        for query, vector in zip(queries, vectors, strict=True):
            names = [hit.image for hit in candidates[query] if hit.image in row]
            if names:
                images = self._asking.rows([row[name] for name in names])
                seen = (vector, images) if self.adapter is None else seen_through(self.adapter, vector, images)
                scores = (seen[1] @ seen[0]).astype(np.float64)  # (n,)
                made[query] = ranked_matrix([query], names, scores[None], len(names))[query]
        return Run(made)

    def _depth(self, task: Task) -> int:
        """As far as any measure looks: its cutoff, R, or else a thousand; and as far as a second stage re-ranks."""
        relevant = int(np.diff(task.judged.qrels.offsets).max(initial=0))
        depths = {"mAP@R": relevant, "Rprec": relevant}
        deepest = [measure.cutoff or depths.get(measure.name, DEPTH) for measure in task.measures]
        leaves = max((len(task.excluded(query)) for query in task.judged.queries), default=0)
        return max([self.least, *deepest]) + leaves


def _each(encoding: float, started: float, queries: int) -> dict[str, float]:
    """Seconds for each query: to encode it, and since the search started."""
    return {"encode": encoding / max(1, queries), "search": (time.perf_counter() - started) / max(1, queries)}
