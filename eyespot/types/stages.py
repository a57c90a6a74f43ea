"""The role of everything that ranks: queries and a run in, a run out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from eyespot.types.queries import Query
from eyespot.types.rankings import Run


class Stage(Protocol):
    """One step of a search: it makes a run of queries, or re-ranks the run of the stage before it."""

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A ranking for each query; a stage that only re-ranks raises `UsageError` without a run."""
        ...
