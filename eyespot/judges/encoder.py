"""`encoder:NAME`: a second embedding model as a judge, offline with `encoder:starter`.

The cosine of query and picture is bent by a fixed logistic curve: probability = 1 / (1 + exp(-20 · (cosine - 0.25))).
It puts pictures in the order of their cosines and is not calibrated: 0.5 is no line between right and wrong, and the
numbers of two models cannot be compared.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eyespot.types import (
    Answer,
    AnswerStream,
    EyespotError,
    Pair,
    Query,
    SequentialAnswers,
    Space,
    UsageError,
    Vectors,
    Verdict,
)

SPELLING = "encoder:NAME"
KIND = "embedding model"
OFFLINE = "with starter"
NEEDS = "what the encoder needs; starter needs nothing"
MIDDLE, SLOPE = 0.25, 20.0  # the cosine that gives 0.5, and how steep the curve is there, in 4 · share per cosine


class Embedding(Protocol):
    """Queries and pictures as unit vectors of one space; whoever loads this judge hands it in."""

    space: Space

    def query(self, query: Query) -> Vectors:
        """The vector (dim,) of a query; `EyespotError` where it has none."""
        ...

    def picture(self, path: Path) -> Vectors:
        """The vector (dim,) of a picture; `EyespotError` where it cannot be read."""
        ...


@dataclass(frozen=True)
class ByCosine:
    """A judge that compares vectors; another revision of the model is another judge."""

    embedding: Embedding

    @property
    def name(self) -> str:
        """The encoder's own name after `encoder:`."""
        return f"encoder:{self.embedding.space.encoder}"

    @property
    def prompt(self) -> str:
        """A digest of the model's space and of the curve: there are no words to it."""
        how = (self.embedding.space.digest, str(MIDDLE), str(SLOPE))
        return hashlib.sha256("\x1f".join(how).encode()).hexdigest()[:16]

    @property
    def fallbacks(self) -> Mapping[str, str]:
        """None: every verdict is a cosine."""
        return {}

    @property
    def notes(self) -> list[str]:
        """None."""
        return []

    @property
    def language_model(self) -> None:
        """None: vectors cost nothing."""

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        """One answer for every pair, in their order; each query is encoded once."""
        return SequentialAnswers(self._answers(pairs))

    def _answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        known: dict[Query, Vectors] = {}
        for pair in pairs:
            try:
                if pair.query not in known:
                    known[pair.query] = self.embedding.query(pair.query)
                cosine = float(known[pair.query] @ self.embedding.picture(pair.path))
            except EyespotError as error:
                yield Answer(pair, None, str(error))
                continue
            yield Answer(pair, Verdict(share(cosine)))


def share(cosine: float) -> float:
    """The stated curve: it rises with the cosine, and gives 0.5 at 0.25."""
    return 1 / (1 + math.exp(-SLOPE * (cosine - MIDDLE)))


def load(rest: str = "", *, embedding: Embedding | None = None, **_unused: Any) -> ByCosine:
    """The judge over an embedding; there are no words to ask it in and nothing to pay, so other options say nothing."""
    if embedding is None:
        raise UsageError(
            f"encoder:{rest or 'NAME'} judges with vectors that a search hands it; use it as in: eyespot search "
            f'"a heron" --rerank encoder:{rest or "starter"}'
        )
    return ByCosine(embedding)
