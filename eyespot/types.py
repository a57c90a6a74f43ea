"""The data that flows between the rooms, and the roles that move it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
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
    from one thread. The same array in the same batch gives the same bits.
    """

    space: Space
    batch: int  # how many pictures `encode_pixels` likes at once
    min_side: int | None  # a JPEG may be decoded at a reduced scale while its shorter side stays this long; None: never
    match_floor: float | None  # a best text→image score below this is probably no match; None: not calibrated
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


class Found(NamedTuple):
    """Nearest rows per query: `rows` and `scores` are (queries, k), best first, k ≤ what was asked."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]


class Index(Protocol):
    """Vectors to nearest rows by inner product."""

    exact: bool

    def search(self, queries: Vectors, k: int, mask: Mask | None = None) -> Found:
        """The k best rows for each query among those the mask lets through; fewer only if fewer exist."""
        ...


# -- rankings and grades ------------------------------------------------------------------------------------


class Hit(NamedTuple):
    """One image of a ranking."""

    image: str
    score: float


class Run(Mapping[str, list[Hit]]):
    """Rankings, best first: columns `query`, `image`, `rank`, `score`, read like a mapping from query id to hits.

    `facts` holds what the gallery knows of each image, `header` how the run was made, `notes` what the user should
    know before trusting it.
    """

    def __init__(self, rankings: Mapping[str, Sequence[Hit]]) -> None:
        import numpy as np

        self._bounds = dict(zip(rankings, _bounds([len(hits) for hits in rankings.values()]), strict=True))
        flat = [(query, rank, *hit) for query, hits in rankings.items() for rank, hit in enumerate(hits, 1)]
        self.query: NDArray[np.object_] = np.array([row[0] for row in flat], dtype=object)  # (hits,)
        self.rank: NDArray[np.int32] = np.array([row[1] for row in flat], dtype=np.int32)  # (hits,)
        self.image: NDArray[np.object_] = np.array([row[2] for row in flat], dtype=object)  # (hits,)
        self.score: NDArray[np.float64] = np.array([row[3] for row in flat], dtype=np.float64)  # (hits,)
        self.facts: dict[str, dict[str, Any]] = {}
        self.header: dict[str, Any] = {}
        self.notes: list[str] = []

    @classmethod
    def from_rankings(cls, rankings: Mapping[str, Sequence[tuple[str, float]]]) -> Run:
        """A run from {query: [(image, score), …]}, each ranking best first."""
        return cls({query: [Hit(*hit) for hit in hits] for query, hits in rankings.items()})

    def __getitem__(self, query: str) -> list[Hit]:
        start, stop = self._bounds[query]
        return [Hit(*pair) for pair in zip(self.image[start:stop], self.score[start:stop].tolist(), strict=True)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)


def _bounds(lengths: Sequence[int]) -> list[tuple[int, int]]:
    stops = list(accumulate(lengths))
    return list(zip([0, *stops], stops, strict=False))


class Qrels(Mapping[str, Mapping[str, int]]):
    """Judgements: query id → image id → grade; 0 was judged and is not relevant, what is not there is unjudged.

    A grade of 1 or more is relevant. `header` says where the judgements come from.
    """

    def __init__(self, grades: Mapping[str, Mapping[str, int]], header: Mapping[str, Any] | None = None) -> None:
        self.grades = {query: dict(images) for query, images in grades.items()}
        self.header = dict(header or {})

    def __getitem__(self, query: str) -> Mapping[str, int]:
        return self.grades[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self.grades)

    def __len__(self) -> int:
        return len(self.grades)

    def relevant(self, query: str) -> set[str]:
        """The images of grade 1 or more."""
        return {image for image, grade in self.grades[query].items() if grade > 0}
