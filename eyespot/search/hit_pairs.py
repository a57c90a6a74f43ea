"""Hits of a ranking as pairs for a judge, and the way back from its judgements to the names in the ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from eyespot.types import Judgement, Pair, Query, RankedImage, Run

Key: TypeAlias = tuple[str, str]  # digest of the query, id of the picture
Heads: TypeAlias = Mapping[Query, Mapping[int, RankedImage]]  # by rank, from 1


def hits_at(queries: Sequence[Query], run: Run, ranks: Iterable[int]) -> Heads:
    """The hits of each query that the run has at these ranks, from 1, as far as it has them."""
    ranks = [int(rank) for rank in ranks]
    rankings = {query: run[query.id] for query in queries if query.id in run}
    return {query: {rank: hits[rank - 1] for rank in ranks if rank <= len(hits)} for query, hits in rankings.items()}


class HitPairs:
    """Pictures that a query ranks; `facts` say which picture a hit is: `id` and `path`."""

    def __init__(self, heads: Heads, facts: Mapping[str, Mapping[str, Any]]) -> None:
        self._heads, self._facts = heads, facts
        every = [hit.image for hits in heads.values() for hit in hits.values()]
        self.pictureless = sum(self._picture(image) is None for image in every)

    def _picture(self, image: str) -> tuple[str, Path] | None:
        """The id and the place of a picture."""
        facts = self._facts.get(image, {})
        return (facts["id"], Path(facts["path"])) if facts.get("path") else None

    @cached_property
    def pairs(self) -> list[Pair]:
        """What can be judged, by query and rank."""
        found = ((query, self._picture(hit.image)) for query, hits in self._heads.items() for hit in hits.values())
        return [Pair(query, *picture) for query, picture in found if picture is not None]

    @property
    def ranks(self) -> dict[Key, int]:
        """Where a picture was seen, by query id and its own id."""
        found: dict[Key, int] = {}
        for query, hits in self._heads.items():
            for rank, hit in hits.items():
                if (picture := self._picture(hit.image)) is not None:
                    found.setdefault((query.id, picture[0]), rank)
        return found

    def by_name(self, found: Mapping[Key, Judgement], digests: Mapping[str, str]) -> dict[str, dict[str, Judgement]]:
        """Judgements by query id and image name; one picture may have several names, and one question several ids."""
        return {
            query.id: {
                hit.image: found[key]
                for hit in hits.values()
                if (picture := self._picture(hit.image)) is not None
                and (key := (digests.get(query.id, ""), picture[0])) in found
            }
            for query, hits in self._heads.items()
        }


@dataclass(frozen=True)
class CaptionPairs:
    """Captions that a picture ranks: each caption is put to the judge as the query, with the picture that ranks it.

    So a verdict serves both directions. `captions` by picture as the ranking has them, the captions best first;
    `pictures` say the id and the place of each picture.
    """

    captions: Mapping[str, Sequence[Query]]
    pictures: Mapping[str, tuple[str, Path]]
    pictureless: int = 0

    @property
    def ranks(self) -> Mapping[Key, int]:
        """None: captions were ranked, and no picture has a rank among pictures."""
        return {}

    @cached_property
    def pairs(self) -> list[Pair]:
        """Each caption with the picture that ranks it."""
        return [Pair(caption, *self.pictures[name]) for name, captions in self.captions.items() for caption in captions]

    def by_name(self, found: Mapping[Key, Judgement], digests: Mapping[str, str]) -> dict[str, dict[str, Judgement]]:
        """Judgements by the name of the picture and the id of the caption."""
        return {
            name: {
                caption.id: found[key]
                for caption in captions
                if (key := (digests.get(caption.id, ""), self.pictures[name][0])) in found
            }
            for name, captions in self.captions.items()
        }


JudgedPairs: TypeAlias = HitPairs | CaptionPairs  # what a judge decides on
