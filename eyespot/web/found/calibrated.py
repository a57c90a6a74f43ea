"""How many of the first hits are relevant, and how probably each is, by the verdicts that the ledger has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

from eyespot.judges._budget import BudgetSpent
from eyespot.ledger.judgements import PERSON, Judgements, Voice, query_digest
from eyespot.search.calibrated import FIRST, Calibrated, Calibration
from eyespot.search.calibration import Cut
from eyespot.search.judged import Judged
from eyespot.types import Answer, EyespotError, NothingFound, Pair, Query, Run
from eyespot.web.found.judged import query_to_judge, run_of
from eyespot.web.found.results import Frozen

DEPTHS = (1000, 300, 100, 30)  # hits that are spoken of; the most for which the verdicts are spread enough
WANTED = 30  # verdicts
Own: TypeAlias = tuple[str, str]  # a judge, and the digest of how it is asked
PRECISIONS = (0.95, 0.9, 0.8, 0.7, 0.5)


class Known(NamedTuple):
    """What verdicts say of the first `hits` of a ranking, and who gave them."""

    calibration: Calibration
    by: str
    verdicts: int

    @property
    def hits(self) -> int:
        """Of how many hits this speaks."""
        return self.calibration.curve.hits

    @property
    def cuts(self) -> list[tuple[float, Cut]]:
        """How far to show hits for some expected precisions, as far as they can be reached; each number once."""
        found: dict[int, tuple[float, Cut]] = {}
        for precision in PRECISIONS:
            if (cut := self._cut(precision)) is not None and cut.hits < self.hits:
                found.setdefault(cut.hits, (precision, cut))
        return list(found.values())

    def _cut(self, precision: float) -> Cut | None:
        try:
            return self.calibration.likely(precision)
        except NothingFound:
            return None


class Spread(NamedTuple):
    """Ids of the photos to judge next, in the order of their ranks, and how many verdicts there are already."""

    wanted: list[str]
    verdicts: int
    known: Known | None


def voices_on(frozen: Frozen, ledger: Judgements) -> list[Voice]:
    """Who judged for the words and the picture of a search."""
    return [] if frozen.query is None else ledger.voices(query_digest(frozen.query))


def known_of(frozen: Frozen, ledger: Judgements, voices: Sequence[Voice], own: Own | None) -> Known | None:
    """By one's own verdicts (a judge and the digest of how it was asked), else other people's, else a model's.

    None where nobody has judged enough of the first hits, from the first ranks to the last ones that are spoken of.
    """
    enough = [voice for voice in voices if voice.images >= min(FIRST, frozen.total)]
    found = (_known(frozen, ledger, voice) for voice in sorted(enough, key=lambda one: _first(one, own)))
    return next((one for one in found if one is not None), None)


def _first(voice: Voice, own: Own | None) -> tuple[bool, bool, int]:
    return voice[:2] != own, not voice.judge.startswith(PERSON), -voice.images


def _known(frozen: Frozen, ledger: Judgements, voice: Voice) -> Known | None:
    for depth in dict.fromkeys(min(depth, frozen.total) for depth in DEPTHS):
        made = _calibrated(frozen, depth, _Silent(voice.judge, voice.prompt), ledger)
        if made is not None and _enough(made):
            return Known(made, voice.judge, len(made.curve.sample.ranks))
    return None


def _enough(made: Calibration) -> bool:
    """Whether there are verdicts on some hits of every stretch of the ranking."""
    sample = made.curve.sample
    return len(sample.ranks) >= min(FIRST, sample.hits) and bool(sample.taken.all())


def spread_of(frozen: Frozen, ledger: Judgements, own: Own) -> Spread:
    """What to judge for a calibration: the next of its rounds, or nothing where there are verdicts enough."""
    silent = _Silent(*own)
    made = _calibrated(frozen, min(DEPTHS[0], frozen.total), silent, ledger)
    verdicts = 0 if made is None else len(made.curve.sample.ranks)
    known = Known(made, own[0], verdicts) if made is not None and _enough(made) else None
    return Spread([pair.image for pair in silent.wanted], verdicts, known)


# -- by what is there -------------------------------------------------------------------------------------------


@dataclass
class _Silent:
    """A judge of whom only the ledger is heard: what it would be asked next is noted."""

    name: str
    prompt: str
    wanted: list[Pair] = field(default_factory=list)

    def judge(self, pairs: Sequence[Pair]) -> Iterator[Answer]:
        self.wanted.extend(pairs)
        raise BudgetSpent("nobody is asked")
        yield  # an iterator, as of every judge


class _Unwritten:
    """A ledger that is only read: who looks at a page leaves no trace of what they searched for."""

    def __init__(self, ledger: Judgements) -> None:
        self.known = ledger.known

    def enter(self, queries: Any) -> dict[Query, str]:
        return {query: query_digest(query) for query in queries}


def _calibrated(frozen: Frozen, depth: int, silent: _Silent, ledger: Judgements) -> Calibration | None:
    query, run = query_to_judge(frozen), run_of(frozen, depth)
    stage = Judged(silent, cast(Judgements, _Unwritten(ledger)), depth)
    try:
        return Calibrated(stage, WANTED)(query, _whole(run))
    except EyespotError:  # no verdict at all
        return None


def _whole(run: Run) -> Run:
    """With a place for every hit: what is asked of the ledger needs no picture."""
    for id, facts in run.facts.items():
        facts["path"] = facts["path"] or id
    return run
