"""Stages 5 and 6: only what the whole panel agrees on stays; a photo in doubt leaves everywhere, or for one query only.

A doubtful photo may stand in the pool as a target of another query, and nobody can say whether finding it for the
first is right. The paper removes it with all its triplets (`doubt = "everywhere"`), which needs far fewer inputs than
photos. With `doubt = "query"` it stays, and is left out of the ranking of the query that doubts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from eyespot.curate.rmir.votes import confidence
from eyespot.pipelines import Context, Drop, Keep, Outcome, Record, Records

DOUBTED, ABSTAINED, LEFT = "confidence below 1", "most judges abstain", "its photo left the seed set"
FURTHER, NEGATIVE, NO_TARGET = "a further target of its query", "a judged negative", "its query has no target"

Doubt: TypeAlias = Literal["everywhere", "query"]


class Settled(NamedTuple):
    """What the panel says of a triplet; `answers` None where it is in doubt."""

    answers: bool | None
    confidence: float


def settle_votes(triplet: Record, judges: int) -> Settled:
    """What the votes come to."""
    return Settled(*confidence([vote["verdict"] for vote in triplet["votes"]], judges))


@dataclass(frozen=True)
class ConfidentSettings:
    """A triplet stays if the share of judges that say the same is at least `least`.

    `doubt` is where a photo leaves on which the panel is not of one mind: "everywhere" is the paper's rule, "query"
    leaves it out of the ranking of that query only.
    """

    least: float = 1.0
    doubt: Doubt = "everywhere"


def doubtful(judged: Records, found: Records, judges: int, least: float) -> Iterator[Record]:
    """Candidates that are in doubt, and those on which a judge gave no answer."""
    sure = {one["id"]: _is_sure(settle_votes(one, judges), least) for one in judged}
    return (one for one in found if not sure.get(one["id"], False))


def confident(judged: Records, context: Context, judges: int, settings: ConfidentSettings) -> Iterator[Outcome]:
    """Triplets of which the panel is sure, and whose photo did not leave the seed set."""
    least, leaving = settings.least, set[str]()
    if settings.doubt == "everywhere":
        leaving = {one["candidate"] for one in doubtful(judged, context.earlier["candidates"], judges, least)}
    for one in judged:
        verdict = settle_votes(one, judges)
        record = {**one, "answers": verdict.answers, "confidence": verdict.confidence}
        if not _is_sure(verdict, least):
            yield Drop(record, DOUBTED if verdict.confidence else ABSTAINED, f"confidence {verdict.confidence:.2f}")
        elif one["candidate"] in leaving:
            yield Drop(record, LEFT)
        else:
            yield Keep(record)


def _is_sure(verdict: Settled, least: float) -> bool:
    return verdict.answers is not None and verdict.confidence >= least


# -- triplets to queries ----------------------------------------------------------------------------------------


def gathered(triplets: Records, context: Context) -> Iterator[Outcome]:
    """Queries that have a target, each in the place of its first one; the other triplets become part of it or go."""
    questions = {one["id"]: one for one in context.earlier["checked"]}
    targets, negatives = _by_query(triplets, True), _by_query(triplets, False)
    begun: set[str] = set()
    for one in triplets:
        query = one["query"]
        if not one["answers"]:
            yield Drop(one, NEGATIVE if query in targets else NO_TARGET)
        elif query in begun:
            yield Drop(one, FURTHER)
        else:
            begun.add(query)
            theirs = {"targets": targets[query], "negatives": negatives.get(query, [])}
            yield Keep({**questions[query], **theirs}, of=one["id"])


def _by_query(triplets: Records, answers: bool) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in triplets:
        if one["answers"] is answers:
            found.setdefault(one["query"], []).append(one["candidate"])
    return found
