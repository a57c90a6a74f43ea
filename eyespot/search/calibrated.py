"""A few verdicts on one query's ranking, spread by plan: how probable each hit is relevant, and how many there are.

stage = Judged(judge_named("person:ada"), Judgements(Path("photos/ledger.sqlite")), depth=1000)
found = Calibrated(stage, verdicts=40)(query, run)
found.count  # 55.2 expected, between 41 and 73, of the first 1,000

A person's verdicts count. So do those of a model whose errors were measured on labelled pictures (an `Accuracy`); the
word of any other model is its `opinion`, from which no number of relevant pictures follows. Beside a person's verdicts
it may be a `covariate`: `with_covariate`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.judges import JudgeStats, known
from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.llms.budget import BudgetSpent
from eyespot.search.calibration import HELPED, Accuracy, Count, Curve, Cut, RankSample, assisted, fit, next_ranks, plan
from eyespot.search.judge_rerank import JudgeRerank, JudgeResult, RerankEstimate, points
from eyespot.types import EyespotError, Query, Run, UsageError

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

EXACT = Accuracy()
FIRST = 16  # verdicts of the first round: two or more in each stratum of 10,000 hits
UNSAID = "what they are like is taken from their neighbours"
YES = 0.5  # and more
OWN_ENCODER = "own_encoder"  # the only model that answered is the one that made the ranking


class Covariate(NamedTuple):
    """What a model's answers on the first hits did for a count by a person's verdicts.

    `code` is "helped", or says why the count is by people `alone` (`calibration.covariate`); `narrowed` is by which
    share its interval is narrower than alone, up to 1; below 0 it is wider.
    """

    judge: str
    answers: int
    code: str
    alone: Count
    narrowed: float

    @property
    def helped(self) -> bool:
        """Whether the count is narrower by it."""
        return self.code == HELPED

    def as_json(self) -> dict[str, Any]:
        """What programs read."""
        alone = {"low": self.alone.low, "high": self.alone.high}
        return {**self._asdict(), "alone": alone, "narrowed": round(self.narrowed, 3)}


@dataclass(frozen=True)
class Calibration:
    """What verdicts on some of the first hits say of them all.

    `run` is the ranking as it was, `curve` of its first `curve.hits`, `result` what the judge said. What the curve
    says of relevance raises `UsageError` where nobody has verified the judge.
    """

    run: Run
    query: str
    judge: str
    curve: Curve
    result: JudgeResult
    covariate: Covariate | None = None

    @property
    def verified(self) -> bool:
        """Whether the verdicts tell what is relevant, and not only what a model says of it."""
        return is_verified(self.judge, self.curve.accuracy)

    @property
    def opinion(self) -> dict[str, Any]:
        """To how many of those that it looked at, spread over the first `among` hits, the judge says yes."""
        yes, looked = int((self.curve.verdicts >= YES).sum()), len(self.curve.verdicts)
        return {"judge": self.judge, "yes": yes, "looked": looked, "among": self.curve.hits}

    @property
    def count(self) -> Count:
        """How many of the first `curve.hits` are relevant."""
        return self._verified.count()

    def likely(self, precision: float) -> Cut:
        """How far to show hits; `NothingFound` where not even the first ones are expected to be that good."""
        return self._verified.likely(precision)

    @property
    def probability(self) -> dict[str, float]:
        """How probable it is that a hit is relevant, by its image: of the first `curve.hits`."""
        hits = self.run[self.query][: self.curve.hits]
        return {hit.image: float(p) for hit, p in zip(hits, self._verified.probability, strict=True)}

    @property
    def _verified(self) -> Curve:
        refuse_unverified(self.judge, self.curve.accuracy)
        return self.curve


def is_verified(judge: str, accuracy: Accuracy) -> bool:
    """Whether verdicts of this judge tell what is relevant: a person's do, a model's once its errors are known."""
    return judge.startswith(PERSON) or not accuracy.exact


def refuse_unverified(judge: str, accuracy: Accuracy) -> None:
    """`UsageError` for a judge whose word alone would become a number of relevant pictures."""
    if not is_verified(judge, accuracy):
        raise UsageError(
            f"nobody has verified {judge}, so its word says neither how many pictures are relevant nor how probably "
            "each is; judge yourself (person:NAME), or say how often it is right on labelled pictures (--accuracy)"
        )


@dataclass(frozen=True)
class _CurveState:
    """The ranks that were tried, the curve of what was said so far, and by whom it was said."""

    sample: RankSample | None  # None: before the first round
    curve: Curve | None  # None: there is no verdict yet
    result: JudgeResult


NOTHING = _CurveState(None, None, JudgeResult({}, JudgeStats()))


@dataclass(frozen=True)
class Calibrated:
    """Calibrates one ranking by so many verdicts on its first `stage.depth` hits, in rounds.

    The first round is planned over the ranks, each further one goes to where the curve is uncertain. Everything
    follows from the ranking and the verdicts, so what was asked before comes from the ledger, and more verdicts begin
    with the same ones. Other verdicts of this judge count as well where it saw the picture at the rank that it has now;
    at any other rank, picked by another search, it would not speak for its neighbours.
    """

    stage: JudgeRerank
    verdicts: int = 40
    accuracy: Accuracy = EXACT

    def __post_init__(self) -> None:
        if self.verdicts < 1:
            raise UsageError("a calibration needs at least one verdict")

    def __call__(self, query: Query, run: Run) -> Calibration:
        """The calibration; where a budget ends it early it is of what was answered.

        Raises `EyespotError` if there is no verdict at all, `BudgetSpent` where that is for want of a budget.
        """
        seen = NOTHING
        for size in sizes(self._wanted(query, run)):
            seen = self._round(seen, self._next(seen, size, query, run), query, run)
            if seen.result.stopped or seen.curve is None:
                break
        # With the verdicts that the ledger has besides
        assert seen.sample is not None
        others = np.setdiff1d(self.ranks_seen(query, run), seen.sample.ranks)
        seen = self._round(seen, others, query, run) if len(others) else seen
        name, result = self.stage.judge.name, seen.result
        if seen.curve is None and result.stopped:
            raise BudgetSpent(f"{name}: {result.stats}; {result.stopped}")
        if seen.curve is None:
            why = result.failures[0] if result.failures else "none of them has a picture here"
            raise EyespotError(f"{name} has no verdict on any of the pictures chosen for it ({why}); see to that")
        # The same ranking, with who judged and what should be known of it
        judged = copy(run)
        judged.header = {**run.header, **self.stage.header(result)}
        judged.notes = [*run.notes, *self.stage.notes(run, result, UNSAID)]
        return Calibration(judged, query.id, name, seen.curve, result)

    def plan(self, query: Query, run: Run) -> RerankEstimate:
        """What asking would take at most: where the next verdicts go depends on those that are not there yet."""
        wanted, pairs, seen = self._wanted(query, run), 0, NOTHING
        for size in sizes(wanted):
            planned = self.stage.plan([query], run, ranks := self._next(seen, size, query, run))
            if planned.to_ask or not planned.pairs:
                rest = wanted - pairs - len(ranks)
                return RerankEstimate(pairs + planned.pairs + rest, planned.to_ask + rest, planned.pictureless)
            pairs, seen = pairs + planned.pairs, self._round(seen, ranks, query, run)
        return RerankEstimate(pairs, 0, seen.result.pictureless)

    # -- rounds ---------------------------------------------------------------------------------------------

    def _round(self, seen: _CurveState, ranks: Ints, query: Query, run: Run) -> _CurveState:
        """What is known once these hits were result at as well."""
        result = seen.result.and_then(self.stage.ask([query], run, ranks))
        sample = self.first_round(query, run) if seen.sample is None else seen.sample.joined(ranks)
        hits = run[query.id][: sample.hits]
        answers = (result.verdict(query.id, hits[rank - 1].image) for rank in sample.ranks)
        verdicts = np.array([np.nan if one is None else min(1.0, points(one)) for one in answers])  # (n,)
        if np.isnan(verdicts).all():
            curve = None
        else:
            curve = fit([hit.score for hit in hits], sample, verdicts, self.accuracy, _seed(query))
        return _CurveState(sample, curve, result)

    def _next(self, seen: _CurveState, size: int, query: Query, run: Run) -> Ints:
        if seen.sample is None or seen.curve is None:
            return self.first_round(query, run).ranks
        # what failed has no place in the curve, and would fail again
        return np.setdiff1d(next_ranks(seen.curve, size), seen.sample.ranks)

    def first_round(self, query: Query, run: Run) -> RankSample:
        """The hits that are judged first: spread over the ranks, so that they speak for all."""
        return plan(self._hits(query, run), min(FIRST, self._wanted(query, run)), _seed(query))

    def _hits(self, query: Query, run: Run) -> int:
        return min(self.stage.depth, len(run[query.id]))

    def _wanted(self, query: Query, run: Run) -> int:
        return min(self.verdicts, self._hits(query, run))

    # -- what else is known ---------------------------------------------------------------------------------

    def ranks_seen(self, query: Query, run: Run) -> Ints:
        """The ranks, ascending, at which the judge saw the same pictures as now."""
        ids = [run.facts.get(hit.image, {}).get("id", "") for hit in run[query.id][: self.stage.depth]]
        votes = known(self.stage.judge, self.stage.ledger, query_digest(query), ids)
        return np.array([rank for rank, id in enumerate(ids, 1) if id in votes and votes[id].rank == rank], np.int64)


def sizes(verdicts: int) -> Iterator[int]:
    """How many verdicts each round takes: as many as all before it together, so that there are few rounds."""
    done = 0
    while done < verdicts:
        size = min(max(FIRST, done), verdicts - done)
        yield size
        done += size


def _seed(query: Query) -> int:
    """The same for a question whatever its id, and another one for another question."""
    return int(query_digest(query)[:8], 16)


# -- a model's answers beside a person's verdicts -----------------------------------------------------------------


def with_covariate(made: Calibration, query: Query, ledger: Judgements) -> Calibration:
    """The calibration by a person's verdicts, narrowed by a model's answers where they help; else as it was.

    No model is asked. The one with the most answers on the hits that the count covers is taken; a model that made the
    ranking itself is not, because its answers repeat the order.

    `covariate` says which model it was and whether it helped; it is None where no model answered, and where the
    verdicts are a model's own.
    """
    if not made.judge.startswith(PERSON):
        return made
    hits = made.run[query.id][: made.curve.hits]
    ids = [made.run.facts.get(hit.image, {}).get("id", "") for hit in hits]
    if (found := fullest_answers(query, ids, made.run, ledger)) is None:
        return made
    judge, given = found
    if made_ranking(judge, made.run):
        return replace(made, covariate=Covariate(judge, _answered(given), OWN_ENCODER, made.count, 0.0))
    helped = assisted(made.curve, given)
    covariate = Covariate(judge, _answered(given), helped.code, helped.alone, helped.narrowed)
    return replace(made, curve=helped.curve, covariate=covariate)


def fullest_answers(query: Query, ids: Sequence[str], run: Run, ledger: Judgements) -> tuple[str, Reals] | None:
    """The model with the most answers on these pictures, and them, (ids,); one that made the ranking comes last."""
    digest, answers = query_digest(query), dict[str, Reals]()  # of each model, the fullest under one prompt
    for model in ledger.judge_counts(digest):
        if model.judge.startswith(PERSON):
            continue
        judgements = ledger.known(digest, ids, model.judge, model.prompt)
        verdicts = (judgements[id].verdict if id in judgements else None for id in ids)
        given = np.array([np.nan if verdict is None else min(1.0, points(verdict)) for verdict in verdicts])  # (ids,)
        if _answered(given) > _answered(answers.get(model.judge, np.zeros(0))):
            answers[model.judge] = given
    ranked = sorted(answers, key=lambda judge: (made_ranking(judge, run), -_answered(answers[judge])))
    return (ranked[0], answers[ranked[0]]) if ranked else None


def _answered(answers: Reals) -> int:
    return int((~np.isnan(answers)).sum())


def made_ranking(judge: str, run: Run) -> bool:
    """Whether a model ranked these hits itself, also under another kind of judge; one that may have counts as well."""
    rankers = set(_encoders(run.header))
    if not rankers:
        return judge.startswith("encoder:")
    return not {_model(judge), _model(_model(judge))}.isdisjoint({*rankers, *map(_model, rankers)})


def _model(name: str) -> str:
    """A model's name without its kind and revision: `encoder:starter` is `starter`."""
    return name.partition(":")[2].partition("@")[0] or name


def _encoders(header: Mapping[str, Any]) -> Iterator[str]:
    """The encoders that made a run, also those of the runs it was fused from."""
    if "encoder" in header:
        yield str(header["encoder"])
    for part in header.get("of", ()):
        yield from _encoders(part)
