"""The data that flows between the rooms, and the roles that move it."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Vectors: TypeAlias = NDArray[np.float32]  # (rows, dim), each row of unit length
    Pixels: TypeAlias = NDArray[Any]  # one picture as a model takes it, or a batch of them
    Mask: TypeAlias = NDArray[np.bool_]  # (rows,), True where a row may be found
else:
    # The command line needs this file to show its help, and numpy is half of what that would cost.
    Vectors = Pixels = Mask = Any


class EyespotError(Exception):
    """What went wrong and the way out, in one sentence; the command line prints it and ends with `exit_code`."""

    exit_code = 1


class UsageError(EyespotError):
    """The request itself is wrong: an unknown name, a malformed filter, options that exclude each other."""

    exit_code = 2


class NothingFound(EyespotError):
    """The request was fine and there is nothing to give."""

    exit_code = 4


# -- queries ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """One weighted part of a query: words or a picture, never both; a negative weight pushes away."""

    weight: float
    text: str | None = None
    image: Path | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.image is None):
            raise UsageError("a query term is either words or a picture")


@dataclass(frozen=True)
class Query:
    """What is looked for: one or more weighted terms under an id."""

    id: str
    terms: tuple[Term, ...]

    @classmethod
    def words(cls, text: str, id: str = "q") -> Query:
        """A query of plain words."""
        return cls(id, (Term(1.0, text=text),))

    @classmethod
    def picture(cls, image: Path | str, id: str = "q") -> Query:
        """A query by example."""
        return cls(id, (Term(1.0, image=Path(image)),))

    @classmethod
    def composed(cls, image: Path | str, text: str, id: str = "q") -> Query:
        """A picture and words of equal weight."""
        return cls(id, (Term(1.0, image=Path(image)), Term(1.0, text=text)))


# -- vectors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Space:
    """What two vectors must share to be compared: encoder, revision, weights and preprocessing.

    `weights` and `preprocessing` are digests or exact descriptions; any change to them is another space.
    """

    encoder: str  # the name that loads it again: "starter", "open_clip:ViT-B-32/openai"
    revision: str
    weights: str
    preprocessing: str
    dim: int

    @property
    def digest(self) -> str:
        """Sixteen hex digits that name this space and no other."""
        parts = (self.encoder, self.revision, self.weights, self.preprocessing, str(self.dim))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


class Encoder(Protocol):
    """Pictures and words to unit vectors of one space.

    `read` runs in many threads at once and must not share state; `encode_pixels` and `encode_texts` are called
    from one thread. The same array in the same batch gives the same bits. A picture that cannot be embedded gets a row
    of NaN; an encoder that has `notes`, sentences on such things, is asked for them when indexing is over.
    """

    space: Space
    batch: int  # how many pictures `encode_pixels` likes at once
    min_side: int | None  # a JPEG may be decoded at a reduced scale while its shorter side stays this long; None: never
    licence: str  # of the weights, as SPDX or in words

    def read(self, picture: Image) -> Pixels:
        """One upright RGB picture, decoded, to the array the model takes (no batch axis)."""
        ...

    def encode_pixels(self, pixels: Pixels) -> Vectors:
        """A batch of what `read` gave, (n, ...), to unit vectors (n, dim)."""
        ...

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts to unit vectors (n, dim); the encoder's own prompt rules are applied here."""
        ...

    def caveat(self, text: str) -> str | None:
        """One sentence for the user if the encoder probably does not understand this text (language, script)."""
        ...

    def weakest_match(self, text: str) -> float | None:
        """A best text→image score below this is probably no match for this text; None: not calibrated."""
        ...


class Composer(Protocol):
    """What an encoder has besides that reads a picture and words as one input, as multimodal language models do.

    `Query.composed` then is one input; for all other encoders it is the weighted sum of its two vectors.
    """

    def encode_composed(self, pixels: Pixels, texts: Sequence[str]) -> Vectors:
        """Pictures (n, ...) as `read` gave them with a text each to unit vectors (n, dim)."""
        ...


class NearestRows(NamedTuple):
    """Nearest rows per query: `rows` and `scores` are (queries, k), best first, k ≤ what was asked.

    `recall` is None where these surely are the nearest; else the share of the nearest that such answers held when the
    index was measured, NaN if it never was. An approximate index answers exactly where that is no more work.
    """

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    recall: float | None = None

    @property
    def exact(self) -> bool:
        """Whether these surely are the nearest."""
        return self.recall is None


class Index(Protocol):
    """Vectors to nearest rows by inner product."""

    exact: bool  # whether every answer is; of a single one `Found.exact` says it

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> NearestRows:
        """The k best rows for each query among those the mask lets through; fewer only if fewer exist."""
        ...


class AdaptedQuery(NamedTuple):
    """A query with its own view of the space, in factors: the score of an image is cos(query, f(image)).

    f(x) = identity · x + (x @ left) @ right.T for image rows x (dim,); `query` (dim,) has unit length, `left` and
    `right` are (dim, r). `identity` is 1 or 0. The dense (dim, dim) map is never needed.
    """

    query: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    identity: float


class Adapter(Protocol):
    """Queries of one space to their own views of it."""

    space: str | None  # the encoder whose vectors it was trained on, if that is known
    dim: int

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        """A view for each unit vector of queries (n, dim)."""
        ...


class LocalFeatures(NamedTuple):
    """What stands out in a picture, strongest first: n descriptors and where each of them is.

    `descriptors` (n, dim), uint8 or float16, count by their directions, not their lengths. `keypoints` (n, 2 to 4) are
    x, y, and where the extractor knows them diameter and angle in degrees, in pixels at the size it was described at.
    """

    descriptors: NDArray[Any]
    keypoints: NDArray[np.float32]


class Extractor(Protocol):
    """Pictures to local features; called from one thread."""

    name: str  # what loads it again: "sift", "dinov2:facebook/dinov2-base"
    settings: Mapping[str, str | int | float]  # all else that decides what comes out
    min_side: int | None  # as an encoder's

    def describe(self, picture: Image, count: int) -> LocalFeatures:
        """The strongest features of an upright RGB picture, at most `count`; none at all of a blank one."""
        ...


class LocalReranker(Protocol):
    """How alike two pictures are by their local features; more is better, scores compare within one query only."""

    def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
        """The score of an image for a query picture; both have at least one feature."""
        ...


# -- rankings and grades ------------------------------------------------------------------------------------


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


class Run(_Ragged, Mapping[str, list[RankedImage]]):
    """Rankings, best first: columns `query`, `image`, `rank`, `score`, read like a mapping from query id to hits.

    `facts` holds what the gallery knows of each image, `header` how the run was made, `notes` what the user should
    know before trusting it.
    """

    def __init__(self, rankings: Mapping[str, Sequence[RankedImage]]) -> None:
        import numpy as np

        flat = [hit for hits in rankings.values() for hit in hits]
        self._lay_out(rankings, [len(hits) for hits in rankings.values()], IdColumn.of(hit[0] for hit in flat))
        self.score: NDArray[np.float64] = np.array([hit[1] for hit in flat], dtype=np.float64)  # (hits,)
        self.facts: dict[str, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}
        self.notes: list[str] = []

    @classmethod
    def from_rankings(cls, rankings: Mapping[str, Sequence[tuple[str, float]]]) -> Run:
        """A run from {query: [(image, score), …]}, each ranking best first."""
        return cls({query: [RankedImage(*hit) for hit in hits] for query, hits in rankings.items()})

    @classmethod
    def from_orders(cls, orders: Mapping[str, Sequence[str]]) -> Run:
        """A run from {query: [image, …]}, best first; without scores of their own, hits score -1, -2, -3, …"""
        return cls(
            {query: [RankedImage(image, -rank) for rank, image in enumerate(o, 1)] for query, o in orders.items()}
        )

    @classmethod
    def from_columns(cls, query: Iterable[str] | IdColumn, image: Iterable[str] | IdColumn, score: Any) -> Run:
        """A run from rows in any order: descending score, equal scores in the order given.

        Queries stand in order of first appearance. Raises `UsageError` for a score that is no finite number and for
        an image that a query ranks twice. Without a Python loop over hits where the ids come `IdColumn`.
        """
        import numpy as np

        query, image, score = IdColumn.of(query), IdColumn.of(image), np.asarray(score, dtype=np.float64)
        if not np.isfinite(score).all():
            row = int(np.flatnonzero(~np.isfinite(score))[0])
            raise UsageError(f"query {query.ids[query.codes[row]]!r} has the score {score[row]}, which ranks nothing")
        if (twice := repeated_row(query, image)) is not None:
            names = query.ids[query.codes[twice]], image.ids[image.codes[twice]]
            raise UsageError("query {!r} ranks image {!r} twice; keep one of the two".format(*names))
        order = _best_first(query.codes, score)
        made = cls({})
        lengths = np.bincount(query.codes, minlength=len(query.ids))
        made._lay_out(query.ids.tolist(), lengths, IdColumn(image.ids, image.codes[order]))
        made.score = score[order]
        return made

    def only(self, queries: Container[str]) -> Run:
        """The rankings of these queries as they are, without a Python loop over hits."""
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
        kept = (query for query, its in zip(self.queries, chosen.tolist(), strict=True) if its)
        made._lay_out(kept, lengths[chosen], IdColumn(self.images[used], place[codes]))
        made.score, made.facts, made.header, made.notes = self.score[rows], self.facts, self.header, self.notes
        return made

    def graded(self, qrels: Qrels) -> NDArray[np.int32]:
        """The grade of each hit, (hits,); -1 where the judgements say nothing of it."""
        import numpy as np

        theirs = {image: code for code, image in enumerate(qrels.images.tolist())}
        image = np.array([theirs.get(image, -1) for image in self.images.tolist()], np.int64)[self.codes]  # (hits,)
        query = np.array([qrels._at.get(query, -1) for query in self.queries], np.int64)  # (queries,)
        query = np.repeat(query, np.diff(self.offsets))  # (hits,)
        judged = np.repeat(np.arange(len(qrels), dtype=np.int64), np.diff(qrels.offsets)) * len(theirs) + qrels.codes
        order = np.argsort(judged)
        wanted = query * len(theirs) + image
        at = np.minimum(np.searchsorted(judged[order], wanted), max(len(order) - 1, 0))
        there = (query >= 0) & (image >= 0) & bool(len(order))
        there[there] = judged[order][at[there]] == wanted[there]
        grades = np.full(len(wanted), -1, dtype=np.int32)
        grades[there] = qrels.grade[order][at[there]]
        return grades

    @cached_property
    def rank(self) -> NDArray[np.int32]:
        """The rank of each hit in its query, from 1, (hits,)."""
        import numpy as np

        starts = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return (np.arange(1, len(self.codes) + 1) - starts).astype(np.int32)

    def __getitem__(self, query: str) -> list[RankedImage]:
        rows = self._rows(query)
        return [
            RankedImage(*pair) for pair in zip(self.images[self.codes[rows]], self.score[rows].tolist(), strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)


def repeated_row(query: IdColumn, image: IdColumn) -> int | None:
    """The first row whose query and image stood together in an earlier row, or None."""
    import numpy as np

    pairs = query.codes.astype(np.int64) * len(image.ids) + image.codes  # (rows,)
    in_order = np.sort(pairs)
    if not (in_order[1:] == in_order[:-1]).any():
        return None
    first = np.unique(pairs, return_index=True)[1]
    return int(np.setdiff1d(np.arange(len(pairs)), first)[0])


def _best_first(queries: NDArray[np.integer[Any]], score: NDArray[np.float64]) -> slice | NDArray[np.int64]:
    """How to take rows so that each query's stand together, by descending score, ties as given."""
    import numpy as np

    steps = np.diff(queries)
    if (steps >= 0).all() and (score[1:] <= score[:-1])[steps == 0].all():
        return slice(None)
    return np.lexsort((-score, queries))


class Qrels(_Ragged, Mapping[str, Mapping[str, int]]):
    """Judgements: query id → image id → grade; 0 was judged and is not relevant, what is not there is unjudged.

    A grade of 1 or more is relevant; one below 0 was pooled and not judged, as trec_eval has it. `grade` is the
    column of grades (judged,), `grades` the whole as a dict of dicts, `header` where the judgements come from.
    """

    def __init__(self, grades: Mapping[str, Mapping[str, int]], header: Mapping[str, Any] | None = None) -> None:
        import numpy as np

        image = IdColumn.of(image for images in grades.values() for image in images)
        self._lay_out(grades, [len(images) for images in grades.values()], image)
        self.grade: NDArray[np.int32] = np.array([g for images in grades.values() for g in images.values()], np.int32)
        self.header = dict(header or {})

    @classmethod
    def from_columns(cls, query: Iterable[str] | IdColumn, image: Iterable[str] | IdColumn, grade: Any) -> Qrels:
        """Judgements from rows in any order; `UsageError` if a query has two grades for an image."""
        import numpy as np

        query, image = IdColumn.of(query), IdColumn.of(image)
        if (twice := repeated_row(query, image)) is not None:
            names = query.ids[query.codes[twice]], image.ids[image.codes[twice]]
            raise UsageError("query {!r} has two grades for image {!r}; keep one of the two".format(*names))
        order = np.argsort(query.codes, kind="stable")
        made = cls({})
        lengths = np.bincount(query.codes, minlength=len(query.ids))
        made._lay_out(query.ids.tolist(), lengths, IdColumn(image.ids, image.codes[order]))
        made.grade = np.asarray(grade, dtype=np.int32)[order]
        return made

    @cached_property
    def grades(self) -> dict[str, dict[str, int]]:
        """{query: {image: grade}}, made when first asked for."""
        rows = [(query, self._rows(query)) for query in self.queries]
        return {q: dict(zip(self.images[self.codes[r]], self.grade[r].tolist(), strict=True)) for q, r in rows}

    def __getitem__(self, query: str) -> Mapping[str, int]:
        return self.grades[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def relevant(self, query: str) -> set[str]:
        """The images of grade 1 or more."""
        return {image for image, grade in self.grades[query].items() if grade > 0}


# -- judging ------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A query and one picture that is judged for it."""

    query: Query
    image: str  # its id
    path: Path  # where its pixels are


@dataclass(frozen=True)
class Verdict:
    """What a judge says of a pair: how probable it is that the picture is relevant (0 to 1), or a grade, or both."""

    probability: float | None = None
    grade: int | None = None
    reason: str = ""
    confidence: float | None = None  # the judge's own, 0 to 1

    def __post_init__(self) -> None:
        if self.probability is None and self.grade is None:
            raise ValueError("a verdict has a probability or a grade")
        if any(share is not None and not 0 <= share <= 1 for share in (self.probability, self.confidence)):
            raise ValueError("probability and confidence lie between 0 and 1")


class Spent(NamedTuple):
    """What answers cost: requests that left this machine (retries too), tokens, and money in US dollars."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    def plus(self, more: Spent) -> Spent:
        """Both together."""
        calls, tokens_in, tokens_out, money = more
        return Spent(self.calls + calls, self.tokens_in + tokens_in, self.tokens_out + tokens_out, self.money + money)

    def times(self, count: int) -> Spent:
        """So many of it."""
        return Spent(self.calls * count, self.tokens_in * count, self.tokens_out * count, self.money * count)


class Answer(NamedTuple):
    """What came back for a pair: a verdict, or why there is none.

    A model that declines to look (`refused`) gives a verdict of probability 0, as INQUIRE counts it.
    """

    pair: Pair
    verdict: Verdict | None
    failure: str = ""  # one sentence where there is no verdict
    refused: bool = False
    spent: Spent = Spent()
    prompt: str = ""  # a digest of how it was asked, where that is another way than the judge's own


class Judge(Protocol):
    """Who looks at pictures and says whether they are what the query asks for."""

    name: str  # who it is: "openai:gpt-5-mini", "transformers:llava-hf/llava-1.5-7b-hf@main", "person:ada"
    prompt: str  # a digest of how it is asked: another wording is another judge

    def judge(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair, each as soon as it is there, in any order."""
        ...


class Judgement(NamedTuple):
    """A verdict and how it came about: who judged which pair, asked how, when, seen at which rank, at what price."""

    query: str  # digest of what was asked, whatever its id
    image: str  # id of the picture: the digest of its bytes
    judge: str
    prompt: str
    verdict: Verdict | None
    failure: str = ""
    refused: bool = False
    rank: int | None = None  # from 1, where the picture was seen in a ranking
    at: float = 0.0  # seconds since 1970
    spent: Spent = Spent()
