"""Queries: weighted words and pictures under an id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eyespot.types.messages import UsageError


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
