"""Rankings and relevance grades, held in columns and read like mappings."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from eyespot.types.messages import UsageError, quantity, refusing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Ranking: TypeAlias = Mapping[str, float] | Sequence[tuple[str, float]]  # images with scores


class RankedImage(NamedTuple):
    """One image of a ranking."""

    image: str
    score: float


class IdColumn(NamedTuple):
    """A column of ids: the distinct ones in order of first appearance, and for each row which of them it is."""

    ids: NDArray[np.object_]  # (distinct,)
    codes: NDArray[np.integer[Any]]  # (rows,)

    @classmethod
    def of(cls, values: Iterable[str] | IdColumn) -> IdColumn:
        """A column from its values, row by row; what is coded stays as it is."""
        import numpy as np

        if isinstance(values, IdColumn):
            return values
        seen: dict[str, int] = {}
        codes = np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)  # (rows,)
        return cls(np.array([*seen, None], dtype=object)[:-1], codes)


class _Ragged:
    """Images under queries, each query's rows together: the columns that rankings and judgements share.

    Rows `offsets[i]` up to `offsets[i + 1]` belong to `queries[i]`; `codes` says for each row which of `images` it is.
    A query may have no rows. `query` and `image` are the same columns written out, made when first asked for.
    """

    queries: list[str]
    offsets: NDArray[np.int64]  # (queries + 1,)

    def _lay_out(self, queries: Iterable[str], lengths: Sequence[int] | NDArray[np.int64], image: IdColumn) -> None:
        import numpy as np

        self.queries = list(queries)
        self.offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        self._image = image
        self._at = {query: at for at, query in enumerate(self.queries)}

    def _coded(self) -> IdColumn:
        return self._image

    def __repr__(self) -> str:
        firsts = ((query, self.images[self.codes[self._rows(query)][:3]].tolist()) for query in self.queries[:3])
        shown = "".join(f"; {query}: {', '.join(map(str, some))}, …" for query, some in firsts)
        queries, images = quantity(len(self.queries), "query"), quantity(len(self.codes), "image")
        return f"<{type(self).__name__} of {queries} and {images}{shown}>"

    @cached_property
    def images(self) -> NDArray[np.object_]:
        """The distinct images, (distinct,)."""
        return self._coded().ids

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """Which of `images` each row is, (rows,)."""
        import numpy as np

        return self._coded().codes.astype(np.int32, copy=False)

    def _rows(self, query: str) -> slice:
        at = self._at[query]
        return slice(int(self.offsets[at]), int(self.offsets[at + 1]))

    @cached_property
    def query(self) -> NDArray[np.object_]:
        """The query of each row, (rows,)."""
        import numpy as np

        return np.repeat(np.array([*self.queries, None], dtype=object)[:-1], np.diff(self.offsets))

    @cached_property
    def image(self) -> NDArray[np.object_]:
        """The image of each row, (rows,)."""
        return self.images[self.codes]


def in_order(hits: Ranking | Sequence[str]) -> Sequence[Any]:
    """The hits of one ranking, {image: score} by falling score; `TypeError` for a text, and for what has no order."""
    if isinstance(hits, str | bytes | Set) or not hasattr(hits, "__len__"):
        raise TypeError("no ranking")
    return sorted(hits.items(), key=lambda hit: -hit[1]) if isinstance(hits, Mapping) else hits


class Run(_Ragged, Mapping[str, list[RankedImage]]):
    """Rankings, best first: columns `query`, `image`, `rank`, `score`, read like a mapping from query id to hits.

    Raises `UsageError` for a score that is not a finite number and for an image that a query ranks twice.
    `facts` holds what the gallery knows of each image, `header` how the run was made, `notes` what the user should
    know before trusting it.
    """

    def __init__(self, rankings: Mapping[str, Ranking]) -> None:
        import numpy as np

        with refusing("a run is {query: [(image, score), …]} or {query: {image: score}}", rankings):
            ranked = {query: in_order(hits) for query, hits in rankings.items()}
            flat = [hit for hits in ranked.values() for hit in hits]
            self.score: NDArray[np.float64] = np.array([hit[1] for hit in flat], dtype=np.float64)  # (hits,)
            self._lay_out(ranked, [len(hits) for hits in ranked.values()], IdColumn.of(hit[0] for hit in flat))
        names = np.array([*self.queries, None], dtype=object)[:-1]
        refuse_unranked(
            IdColumn(names, np.repeat(np.arange(len(names)), np.diff(self.offsets))), self._image, self.score
        )
        self.facts: dict[str, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}
        self.notes: list[str] = []

    @classmethod
    def from_orders(cls, orders: Mapping[str, Sequence[str]]) -> Run:
        """A run from {query: [image, …]}, best first; without scores of their own, hits score -1, -2, -3, …"""
        with refusing("orders are {query: [image, …]}, best first", orders):
            lists = {query: in_order(images) for query, images in orders.items()}
        return cls({query: [RankedImage(one, -rank) for rank, one in enumerate(o, 1)] for query, o in lists.items()})

    @classmethod
    def from_columns(cls, query: Iterable[str] | IdColumn, image: Iterable[str] | IdColumn, score: Any) -> Run:
        """A run from rows in any order: descending score, equal scores in the order given.

        Queries stand in order of first appearance. Raises `UsageError` for a score that is not a finite number and for
        an image that a query ranks twice. Without a Python loop over hits where the ids come `IdColumn`.
        """
        import numpy as np

        query, image, score = IdColumn.of(query), IdColumn.of(image), np.asarray(score, dtype=np.float64)
        refuse_unranked(query, image, score)
        order: slice | NDArray[np.int64]
        queries: NDArray[np.integer[Any]] = query.codes
        # How to take rows so that each query's stand together, by descending score, ties as given
        steps = np.diff(queries)
        if (steps >= 0).all() and (score[1:] <= score[:-1])[steps == 0].all():
            order = slice(None)
        else:
            order = np.lexsort((-score, queries))
        made = cls({})
        lengths = np.bincount(query.codes, minlength=len(query.ids))
        made._lay_out(query.ids.tolist(), lengths, IdColumn(image.ids, image.codes[order]))
        made.score = score[order]
        return made

    def only(self, queries: Container[str]) -> Run:
        """The rankings of these queries as they are, and the notes on them, without a Python loop over hits."""
        import numpy as np

        chosen = np.array([query in queries for query in self.queries], dtype=bool)  # (queries,)
        if chosen.all():
            return self
        lengths = np.diff(self.offsets)
        rows = np.repeat(chosen, lengths)  # (hits,)
        codes = self.codes[rows]
        used = np.flatnonzero(np.bincount(codes, minlength=len(self.images)))  # images that are still ranked
        place = np.zeros(len(self.images), np.int32)  # (images,), where each of them went
        place[used] = np.arange(len(used))
        made = Run({})
        subset = (query for query, its in zip(self.queries, chosen.tolist(), strict=True) if its)
        made._lay_out(subset, lengths[chosen], IdColumn(self.images[used], place[codes]))
        made.score, made.facts, made.header = self.score[rows], self.facts, self.header
        about = [(note, getattr(note, "queries", ())) for note in self.notes]
        made.notes = [note for note, ids in about if not ids or any(id in queries for id in ids)]
        return made

    def reranked(self, rankings: Mapping[str, Sequence[RankedImage]], **header: Any) -> Run:
        """Other rankings of these images, with the facts and notes of this run, and its header with some more in it."""
        made = Run(rankings)
        made.facts, made.header, made.notes = self.facts, self.header | header, list(self.notes)
        return made

    def self_hits(self) -> dict[str, int]:
        """Of queries that rank an image of their own id, the row of that hit."""
        codes = {image: code for code, image in enumerate(self.images.tolist()) if image in self._at}
        found: dict[str, int] = {}
        for query, code in codes.items():
            rows = self._rows(query)
            places = (self.codes[rows] == code).nonzero()[0].tolist()
            found |= {query: rows.start + places[0]} if places else {}
        return found

    def without(self, rows: Iterable[int]) -> Run:
        """The run without the hits of these rows; its queries stay, also one that has no other."""
        import numpy as np

        others = np.ones(len(self.score), bool)
        others[list(rows)] = False
        names = np.array([*self.queries, None], dtype=object)[:-1]
        queries = np.repeat(np.arange(len(self)), np.diff(self.offsets))[others]
        made = Run.from_columns(IdColumn(names, queries), IdColumn(self.images, self.codes[others]), self.score[others])
        made.facts, made.header, made.notes = self.facts, self.header, self.notes
        return made

    def graded(self, qrels: Qrels) -> NDArray[Any]:
        """The grade of each hit, (hits,); -1 where the judgements say nothing of it."""
        import numpy as np

        codes = self._codes_of(qrels)[qrels.codes]  # (judged,)
        ranked = codes >= 0
        before = np.concatenate([[0], np.cumsum(ranked)])[qrels.offsets].tolist()  # (queries of the qrels + 1,)
        codes, grades = codes[ranked].astype(np.intp), qrels.grade[ranked]  # numpy takes other integers slowly
        hits = self.codes.astype(np.intp)
        grade_of = np.full(len(self.images), -1, grades.dtype)  # of one query after the other
        found = np.full(len(self.codes), -1, grades.dtype)
        for at, query in enumerate(qrels.queries):
            if query in self._at:
                judged, rows = slice(before[at], before[at + 1]), self._rows(query)
                grade_of[codes[judged]] = grades[judged]
                grade_of.take(hits[rows], out=found[rows], mode="clip")
                grade_of[codes[judged]] = -1
        return found

    def _codes_of(self, qrels: Qrels) -> NDArray[np.int32]:
        """For each image of the judgements its code here, or -1, (images of the qrels,)."""
        import numpy as np

        ours, judged = self.images.tolist(), qrels.images.tolist()
        if len(ours) <= len(judged):
            codes = dict(zip(ours, range(len(ours)), strict=True))
            return np.fromiter(map(codes.get, judged, repeat(-1)), np.int32, len(judged))
        codes = dict(zip(judged, range(len(judged)), strict=True))
        at = np.fromiter(map(codes.get, ours, repeat(-1)), np.int32, len(ours))  # (images,)
        found = np.full(len(judged), -1, np.int32)
        found[at[at >= 0]] = np.flatnonzero(at >= 0)
        return found

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """The rank of each hit in its query, from 1, (hits,)."""
        import numpy as np

        starts = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return (np.arange(1, len(self.codes) + 1) - starts).astype(np.int32)

    def __getitem__(self, query: str) -> list[RankedImage]:
        rows = self._rows(query)
        return [RankedImage(*one) for one in zip(self.images[self.codes[rows]], self.score[rows].tolist(), strict=True)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)


def refuse_unranked(query: IdColumn, image: IdColumn, score: NDArray[np.float64]) -> None:
    """`UsageError` for a score that is not a finite number, and for an image that a query ranks twice; all (rows,)."""
    import numpy as np

    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score))[0])
        raise UsageError(f"query {query.ids[query.codes[row]]!r} has the score {score[row]}, which ranks nothing")
    refuse_repeated(query, image)


def refuse_repeated(query: IdColumn, image: IdColumn) -> None:
    """`UsageError` for the first row whose query and image an earlier row has."""
    import numpy as np

    pairs = query.codes.astype(np.int64) * len(image.ids) + image.codes  # (rows,)
    in_order = np.sort(pairs)
    if (in_order[1:] == in_order[:-1]).any():
        twice = np.setdiff1d(np.arange(len(pairs)), np.unique(pairs, return_index=True)[1])[0]
        names = query.ids[query.codes[twice]], image.ids[image.codes[twice]]
        raise UsageError("query {!r} has image {!r} twice; keep one of the two".format(*names))


def grade_column(values: Any) -> NDArray[Any]:
    """Grades as whole numbers, int32, where all of them are, else float64, (judged,); `UsageError` for NaN or 2^31."""
    import numpy as np

    grades = np.asarray(values, dtype=np.float64)
    if not (np.abs(grades) < 2**31).all():
        raise UsageError("judgements have a grade that is not a number below 2,147,483,648")
    whole = grades.astype(np.int32)
    return whole if (whole == grades).all() else grades


class Qrels(_Ragged, Mapping[str, Mapping[str, float]]):
    """Judgements: query id → image id → grade; 0 was judged and is not relevant, what is not there is unjudged.

    A grade of 1 or more is relevant; one below 0 was pooled and not judged, as trec_eval has it; one between 0 and 1
    counts for nDCG alone. `grade` is the column of grades (judged,), `grades` the whole as a dict of dicts, `header`
    where the judgements come from.
    """

    def __init__(self, grades: Mapping[str, Mapping[str, float]], header: Mapping[str, Any] | None = None) -> None:
        with refusing("judgements are {query: {image: grade}}", grades):
            image = IdColumn.of(image for images in grades.values() for image in images)
            self._lay_out(grades, [len(images) for images in grades.values()], image)
            self.grade = grade_column([grade for images in grades.values() for grade in images.values()])
        self.header = dict(header or {})

    @classmethod
    def from_columns(cls, query: Iterable[str] | IdColumn, image: Iterable[str] | IdColumn, grade: Any) -> Qrels:
        """Judgements from rows in any order; `UsageError` if a query has two grades for an image."""
        import numpy as np

        query, image = IdColumn.of(query), IdColumn.of(image)
        refuse_repeated(query, image)
        order = np.argsort(query.codes, kind="stable")
        made = cls({})
        lengths = np.bincount(query.codes, minlength=len(query.ids))
        made._lay_out(query.ids.tolist(), lengths, IdColumn(image.ids, image.codes[order]))
        made.grade = grade_column(grade)[order]
        return made

    @cached_property
    def grades(self) -> dict[str, dict[str, Any]]:
        """{query: {image: grade}}, made when first asked for."""
        rows = [(query, self._rows(query)) for query in self.queries]
        return {q: dict(zip(self.images[self.codes[r]], self.grade[r].tolist(), strict=True)) for q, r in rows}

    def __getitem__(self, query: str) -> Mapping[str, Any]:
        return self.grades[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def relevant(self, query: str) -> set[str]:
        """The images of grade 1 or more."""
        return {image for image, grade in self.grades[query].items() if grade >= 1}
