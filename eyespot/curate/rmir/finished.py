"""What a pipeline that has run made: its queries, their targets, the pool, and every vote that was cast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eyespot.curate._attribution import attributions
from eyespot.curate.rmir import confident, split
from eyespot.curate.rmir.panel import voted_on
from eyespot.curate.rmir.pipeline import RmirPipeline
from eyespot.pipelines import Record, Records, StepResult


@dataclass(frozen=True)
class FinishedSteps:
    """The finished steps of a pipeline."""

    pipe: RmirPipeline
    done: Sequence[StepResult]

    def of(self, name: str) -> StepResult:
        """A finished step."""
        return next(one for one in self.done if one.step.name == name)

    def records(self, name: str) -> Records:
        """What it kept."""
        return self.of(name).records

    @cached_property
    def queries(self) -> list[Record]:
        """The queries of both splits."""
        return list(self.records("split"))

    @cached_property
    def triplets(self) -> list[Record]:
        """Every triplet that was voted on, those on which a judge was silent among them."""
        return list(voted_on(self.records("judged")))

    @cached_property
    def hits(self) -> dict[str, list[Record]]:
        """The judged hits of the first image index for each query, in their order."""
        return split.ranked(self.triplets, self.pipe.lists.space)

    @cached_property
    def counted(self) -> set[str]:
        """The triplets whose votes tell reliability, by their ids."""
        records = {name: self.records(name) for name in ("judged", "confident")}
        return {one["id"] for one in split.counted(records, self.pipe.settings("split"))}

    @cached_property
    def seats(self) -> list[str]:
        """The names of the judges."""
        return [seat.name for seat in self.pipe.seats]

    @cached_property
    def seeds(self) -> dict[str, Record]:
        """The seed set, by photo; also what left it."""
        return {one["id"]: one for one in self.records("seeds")}

    @cached_property
    def attributions(self) -> dict[str, dict[str, str | None]]:
        """By photo of the pool and of the queries, as far as they are in the gallery: licence, author and url."""
        images = {**dict.fromkeys(self.pool), **dict.fromkeys(query["image"] for query in self.queries)}
        return attributions(self.pipe.world, images, self.pipe.settings("seeds").space)

    @cached_property
    def doubted(self) -> set[str]:
        """Photos that left the seed set; none where doubt concerns a query only."""
        settings: confident.ConfidentSettings = self.pipe.settings("confident")
        return {one["candidate"] for one in self._in_doubt} if settings.doubt == "everywhere" else set()

    @cached_property
    def unknown(self) -> dict[str, list[str]]:
        """By query the photos of the pool of which nobody can say whether they answer it."""
        pool, queries = set(self.pool), {query["id"] for query in self.queries}
        found: dict[str, list[str]] = {}
        for one in self._in_doubt:
            if one["query"] in queries and one["candidate"] in pool:
                found.setdefault(one["query"], []).append(one["candidate"])
        return found

    @cached_property
    def _in_doubt(self) -> list[Record]:
        least, found = self.pipe.settings("confident").least, self.records("candidates")
        return list(confident.doubtful(self.records("judged"), found, len(self.seats), least))

    @cached_property
    def pool(self) -> list[str]:
        """The photos that are ranked, in the order of the seed set."""
        settings: split.SplitSettings = self.pipe.settings("split")
        targets = {target for query in self.queries for target in query["targets"]}
        wanted = targets if settings.pool == "targets" else set(self.seeds) - self.doubted
        return [id for id in self.seeds if id in wanted]

    def votes(self) -> Iterator[Mapping[str, Any]]:
        """Every vote, a row each."""
        for one in self.triplets:
            for vote in one["votes"]:
                yield {"query": one["query"], "image": one["candidate"], "triplet": one["id"], **vote}

    def in_split(self, name: str) -> list[Record]:
        """The queries of a split."""
        return [query for query in self.queries if query["split"] == name]
