"""Chamfer similarity: for each descriptor of the query its best match in the image, and the mean of these."""

from __future__ import annotations

from dataclasses import dataclass

from eyespot.search.local.spatial import similarities
from eyespot.types import LocalFeatures, UsageError


def load(rest: str = "") -> Chamfer:
    """The measure; `UsageError` for settings, of which it has none."""
    if rest:
        raise UsageError(f"chamfer has no settings; write chamfer and not chamfer:{rest}")
    return Chamfer()


@dataclass(frozen=True)
class Chamfer:
    """Mean over the query's descriptors of the highest cosine to any of the image's; 1 for a picture and itself."""

    def score(self, query: LocalFeatures, image: LocalFeatures) -> float:
        """In [-1, 1]; not symmetric: what the image shows besides costs nothing."""
        return float(similarities(query, image).max(axis=1).mean())
