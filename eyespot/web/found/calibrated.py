"""How many of the first hits are relevant, and how probably each is, by the verdicts of people in the ledger.

A model's word alone counts nothing here: nobody has verified it on this ranking. Beside about thirty verdicts of a
person, which show what its answers are worth, it may narrow the interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from eyespot.ledger.judgements import PERSON, JudgeCount, Judgements, query_digest
from eyespot.llms.budget import BudgetSpent
from eyespot.search.calibrated import FIRST, Calibrated, Calibration, with_covariate
from eyespot.search.calibration import Cut, RankSample
from eyespot.search.judge_rerank import JudgeRerank
from eyespot.types import Answer, AnswerStream, EyespotError, NothingFound, Pair, Query, SequentialAnswers
from eyespot.web.found.derived import query_to_judge, run_of
from eyespot.web.found.results import RankedResult

DEPTHS = (1000, 300, 100, 30)  # hits that are spoken of where verdicts were spread over them by plan
WANTED = 30  # verdicts
JudgeKey: TypeAlias = tuple[str, str]  # a judge, and the digest of how it is asked
PRECISIONS = (0.95, 0.9, 0.8, 0.7, 0.5)


@dataclass(frozen=True)
class CalibrationSummary:
    """What verdicts say of the first `hits` of a ranking, and who gave them."""

    calibration: Calibration
    by: str
    verdicts: int

    @property
    def hits(self) -> int:
        """Of how many hits this speaks."""
        return self.calibration.curve.hits

    @property
    def counted(self) -> bool:
        """Whether each of these hits has a verdict, so that nothing is estimated."""
        return self.verdicts >= self.hits

    @property
    def covariate(self) -> dict[str, Any] | None:
        """What a model's answers did for the interval, as programs read it; None where no model answered."""
        covariate = self.calibration.covariate
        return None if covariate is None else covariate.as_json()

    @property
    def cuts(self) -> list[tuple[float, Cut]]:
        """How far to show hits for some expected precisions, as far as they can be reached; each number once."""
        found: dict[int, tuple[float, Cut]] = {}
        for precision in PRECISIONS:
            with suppress(NothingFound):
                cut = self.calibration.likely(precision)
                if cut.hits < self.hits:
                    found.setdefault(cut.hits, (precision, cut))
        return list(found.values())


def known_of(
    result: RankedResult, ledger: Judgements, judge_counts: Sequence[JudgeCount], judge_key: JudgeKey | None
) -> CalibrationSummary | None:
    """By one's own verdicts (a judge and the digest of how it was asked), else by those of another person.

    None where nobody has judged enough of the first hits, from the first ranks to the last ones that are spoken of.
    """
    enough = min(FIRST, result.total)
    people = [count for count in judge_counts if count.judge.startswith(PERSON) and count.images >= enough]
    ordered = sorted(people, key=lambda count: (count[:2] != judge_key, -count.images))
    found = (known_by(result, ledger, count[:2]) for count in ordered)
    return next((one for one in found if one is not None), None)


def known_by(result: RankedResult, ledger: Judgements, judge_key: JudgeKey) -> CalibrationSummary | None:
    """By the verdicts of one judge; None where there are not enough.

    It speaks of as many hits as a plan spread verdicts over, or down to the last one that was judged if some hits of
    every stretch before it were, whichever is more.
    """
    query, run = query_to_judge(result), run_of(result, DEPTHS[0])
    most = len(run[query.id])
    seen = _calibrating(most, _SilentJudge(*judge_key), ledger).ranks_seen(query, run)

    def speaks(depth: int) -> bool:
        plan = _calibrating(depth, _SilentJudge(*judge_key), ledger).first_round(query, run)
        judged = seen[seen <= depth]
        spread = len(judged) >= FIRST and bool(RankSample(plan.edges, judged).taken.all())
        return bool(np.isin(plan.ranks, judged).all()) or (depth in judged and spread)

    depths = sorted({*seen[FIRST - 1 :].tolist(), *(min(depth, most) for depth in DEPTHS)}, reverse=True)
    depth = next((depth for depth in depths if speaks(depth)), None)
    made = None if depth is None else _calibrated(result, depth, _SilentJudge(*judge_key), ledger)
    if made is None:
        return None
    assisted = with_covariate(made, query, ledger)
    return CalibrationSummary(assisted, judge_key[0], len(made.curve.sample.ranks))


def to_judge(result: RankedResult, ledger: Judgements, judge_key: JudgeKey) -> tuple[list[str], int]:
    """Ids of the photos to judge next for a calibration, in the order of their ranks, and how many verdicts there are.

    No ids where there are verdicts enough.
    """
    silent = _SilentJudge(*judge_key)
    made = _calibrated(result, min(DEPTHS[0], result.total), silent, ledger)
    verdicts = 0 if made is None else len(made.curve.sample.ranks)
    return [pair.image for pair in silent.wanted], verdicts


# -- by what is there -------------------------------------------------------------------------------------------


@dataclass
class _SilentJudge:
    """A judge of whom only the ledger is heard: what it would be asked next is noted."""

    name: str
    prompt: str
    wanted: list[Pair] = field(default_factory=list)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    language_model: None = None

    def judge(self, pairs: Sequence[Pair]) -> AnswerStream:
        self.wanted.extend(pairs)
        return SequentialAnswers(self._none())

    def _none(self) -> Iterator[Answer]:
        raise BudgetSpent("nobody is asked")
        yield  # a generator, as of other judges


class _ReadOnlyLedger:
    """A ledger that is only read: who looks at a page leaves no trace of what they searched for."""

    def __init__(self, ledger: Judgements) -> None:
        self.known, self.served, self.failures = ledger.known, ledger.served, ledger.failures

    def enter(self, queries: Any) -> dict[Query, str]:
        return {query: query_digest(query) for query in queries}


def _calibrating(depth: int, silent: _SilentJudge, ledger: Judgements) -> Calibrated:
    return Calibrated(JudgeRerank(silent, cast(Judgements, _ReadOnlyLedger(ledger)), depth), WANTED)


def _calibrated(result: RankedResult, depth: int, silent: _SilentJudge, ledger: Judgements) -> Calibration | None:
    query, run = query_to_judge(result), run_of(result, depth)
    for id, facts in run.facts.items():
        facts["path"] = facts["path"] or id  # a place for every hit: the ledger needs no picture
    try:
        return _calibrating(depth, silent, ledger)(query, run)
    except EyespotError:  # no verdict at all
        return None
