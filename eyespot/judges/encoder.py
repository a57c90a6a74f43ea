"""`encoder:NAME`: a second embedding model as a judge, offline with `encoder:starter`.

The cosine of query and picture is bent by a fixed logistic curve: probability = 1 / (1 + exp(-20 · (cosine - 0.25))).
It puts pictures in the order of their cosines and is not calibrated: 0.5 is not a line between right and wrong, and the
numbers of two models cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eyespot.judges._prompt import FreeJudge
from eyespot.storage.digests import text_digest
from eyespot.types import Answer, EyespotError, Pair, Query, Space, UsageError, Vectors, Verdict

SPELLING = "encoder:NAME"
KIND = "embedding model"
OFFLINE = "with starter"
NEEDS = "what the encoder needs; starter needs nothing"
MIDDLE, SLOPE = 0.25, 20.0  # the cosine that gives 0.5, and how steep the curve is there, in 4 · share per cosine


class Embedding(Protocol):
    """Queries and pictures as unit vectors of one space; the caller of `load` gives it."""

    space: Space

    def query(self, query: Query) -> Vectors:
        """The vector (dim,) of a query; `EyespotError` where it has none."""
        ...

    def picture(self, path: Path) -> Vectors:
        """The vector (dim,) of a picture; `EyespotError` where it cannot be read."""
        ...


@dataclass(frozen=True)
class ByCosine(FreeJudge):
    """A judge that compares vectors; another revision of the model is another judge."""

    embedding: Embedding

    @property
    def name(self) -> str:
        """The encoder's own name after `encoder:`."""
        return f"encoder:{self.embedding.space.encoder}"

    @property
    def prompt(self) -> str:
        """A digest of the model's space and of the curve: there are no words to it."""
        return text_digest(self.embedding.space.digest, str(MIDDLE), str(SLOPE))

    def answers(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        """One answer for every pair, in their order; each query is encoded once."""
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
    """The judge over an embedding; it has no prompt and costs nothing, so other options change nothing."""
    if embedding is None:
        raise UsageError(
            f"encoder:{rest or 'NAME'} judges with the vectors of a search; use it as in: eyespot search "
            f'"a heron" --rerank encoder:{rest or "starter"}'
        )
    return ByCosine(embedding)
