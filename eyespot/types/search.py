"""Queries, nearest rows, queries with their own view of the space, and the roles that find, rank and adapt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from eyespot.types.encoders import Mask, Vectors
from eyespot.types.messages import UsageError, kind_text, refusing
from eyespot.types.rankings import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Term:
    """One weighted part of a query: words or a picture, never both; a negative weight pushes away."""

    weight: float
    text: str | None = None
    image: Path | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.image is None) or not isinstance(self.text, str | None):
            raise UsageError("a query term is either words or a picture")


@dataclass(frozen=True)
class Query:
    """What is looked for: one or more weighted terms under an id."""

    id: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not all(isinstance(t, Term) for t in self.terms):
            raise UsageError(
                f"a query is an id with terms, as in Query.words('a heron', 'q1'), not {kind_text(self.terms)}"
            )

    @classmethod
    def words(cls, text: str, id: str = "q") -> Query:
        """A query of plain words."""
        return cls(id, (Term(1.0, text=text),))

    @classmethod
    def picture(cls, image: Path | str, id: str = "q") -> Query:
        """A query by example."""
        with refusing("a picture is named by its path, and one in memory is given to Collection.search", image):
            return cls(id, (Term(1.0, image=Path(image)),))

    @classmethod
    def composed(cls, image: Path | str, text: str, id: str = "q") -> Query:
        """A picture and words of equal weight."""
        return cls(id, (Term(1.0, image=Path(image)), Term(1.0, text=text)))


class NearestRows(NamedTuple):
    """Nearest rows per query: `rows` and `scores` are (queries, k), best first, k ≤ what was asked.

    `recall` is None where these surely are the nearest; else the share of the nearest that these answers hold, as their
    own search estimates it or, of lists and graphs, as it was measured; NaN if it never was. An approximate index
    answers exactly where that is no more work, and where the estimate is below what was promised.
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


class ScanRequest(NamedTuple):
    """One of several searches that share a scan: a query (dim,), or an `AdaptedQuery`, with its own k and mask."""

    query: Any
    k: int
    mask: Mask | None = None


class BatchSearch(Protocol):
    """Several searches at once, each answered as if it were the only one."""

    def search_each(self, requests: Sequence[ScanRequest]) -> list[NearestRows]:
        """For each request its k best rows, (1, k') both; what one of them is refused for is raised for all."""


class AdaptedQuery(NamedTuple):
    """A query with its own view of the space, in factors: the score of an image is cos(query, f(image)).

    f(x) = identity · x + (x @ left) @ right.T for image rows x (dim,); `query` (dim,) has unit length, `left` and
    `right` are (dim, r). `identity` is 1 or 0. The dense (dim, dim) map is never needed.
    """

    query: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    identity: float


class Stage(Protocol):
    """One step of a search: it makes a run of queries, or re-ranks the run of the stage before it."""

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A ranking for each query; a stage that only re-ranks raises `UsageError` without a run."""


class Adapter(Protocol):
    """Queries of one space to their own views of it."""

    @property
    def space(self) -> str | None:
        """The encoder whose vectors it was trained on, if that is known."""

    @property
    def dim(self) -> int:
        """The length of the vectors it takes."""

    @property
    def caution(self) -> str | None:
        """One sentence for its users if it was not shown to find more than the vectors as they are; else None."""

    def adapt(self, queries: Vectors) -> list[AdaptedQuery]:
        """A view for each unit vector of queries (n, dim)."""
