"""Stage 8, a person's audit: whether the panel judged right, and whether reliability tells what it should (appendix B).

Two review queues are drawn, blind: a case shows the input, the question and a candidate, and not what the panel said.
`accept` means that the candidate answers, `drop` that it does not. Decisions are compared with the votes afterwards;
what the panel said of the cases lies sealed beside them, for whoever compares without the recipe at hand.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.panel import TEST, Lists, settle_votes, tail_reliability
from eyespot.pipelines import Record
from eyespot.pipelines.data_card import wilson
from eyespot.pipelines.human_review import Case, Queue, write_queue
from eyespot.pipelines.outcomes import line_of
from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.tables import rows_of
from eyespot.storage.text_files import refuse
from eyespot.types import UsageError

VERDICTS, LAST, PANEL = "verdicts.jsonl", "last-hits.jsonl", "panel.jsonl"
WHY = "{question} Does the second picture answer this about the first? accept: yes, drop: no"
ALL = "all"
ACCEPTED, REFUSED = "accepted", "refused"


def write_queues(made: FinishedSteps, folder: Path, verdicts: int = 100) -> dict[str, int]:
    """Both queues in a folder; how many cases each has: `verdicts` of each verdict, three quarters as many last hits.

    Decisions that lie there stay.
    """
    test = {query["id"] for query in made.in_split(TEST)}
    sure = [one for one in made.sure if one["query"] in test]
    answers: dict[str, list[Record]] = {"true": [], "false": []}
    for triplet in sure:
        answers["true" if triplet["answers"] else "false"].append(triplet)
    last = [(hits[-1], settle_votes(hits[-1], len(made.seats))[0]) for hits in made.hits.values()]
    hits = {"true": [one for one, yes in last if yes], "false": [one for one, yes in last if yes is False]}
    drawn = {VERDICTS: _drawn(made, answers, verdicts), LAST: _drawn(made, hits, verdicts * 3 // 4)}
    judges, before = len(made.seats), before_last(made.hits, made.counted, made.pipe.lists)
    cases_of = {one["id"]: one for triplets in drawn.values() for one in triplets}
    sealed = (
        Sealed(id, one["kind"], one["question"], settle_votes(one, judges)[0], before.get(id), one["votes"])
        for id, one in cases_of.items()
    )
    make_folder(folder)
    write_panel(folder, sealed)
    for name, triplets in drawn.items():
        cases = []
        for one in _shuffled(triplets, made.pipe.recipe.seed, name):
            pictures, ids = (one["path"], one["candidate_path"]), (one["image"], one["candidate"])
            cases.append(Case(one["id"], WHY.format(question=one["question"]), pictures, shown=ids))
        write_queue(folder / name, cases)
    return {name: len(triplets) for name, triplets in drawn.items()}


def _drawn(made: FinishedSteps, groups: Mapping[str, list[Record]], count: int) -> list[Record]:
    chosen = (_shuffled(group, made.pipe.recipe.seed, name)[:count] for name, group in groups.items())
    return [one for group in chosen for one in group]


def _shuffled(triplets: Iterable[Record], seed: int, what: str) -> list[Record]:
    return sorted(triplets, key=lambda one: Random(f"{seed}\x1f{what}\x1f{one['id']}").random())


# -- what a person said -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuditAgreement:
    """How often people agree with one verdict of the panel on queries of a kind, with a 95% interval (Wilson).

    Of what was accepted this is the precision of targets; of what was refused, the rest are answers that were missed.
    """

    verdict: str
    kind: str
    agreed: int
    cases: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Of the cases."""
        return self.agreed / self.cases


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """Reliability before a last hit that the person rejected, and before one they accepted; Welch's t-test."""

    rejected: int
    accepted: int
    difference: float  # mean of the rejected less that of the accepted
    t: float
    freedom: float
    p: float
    effect: float  # Cohen's d, by the pooled deviation


def agreed(panel: Mapping[str, Sealed], verdicts: Mapping[str, bool]) -> list[AuditAgreement]:
    """People's decisions so far beside the panel's, both by case, for each kind that has any and together."""
    found, kinds = [], sorted({sealed.kind for sealed in panel.values()})
    for verdict, accepted in ((ACCEPTED, True), (REFUSED, False)):
        both = [(panel[id].kind, yes) for id, yes in verdicts.items() if id in panel and panel[id].answers is accepted]
        for kind in (*kinds, ALL):
            cases = [yes is accepted for of, yes in both if kind in (of, ALL)]
            hits = sum(cases)
            found += [AuditAgreement(verdict, kind, hits, len(cases), *wilson(hits, len(cases)))] if cases else []
    return found


def compared(panel: Mapping[str, Sealed], verdicts: Mapping[str, bool]) -> TwoGroups | None:
    """Whether reliability, told by what comes before the last hit, is lower where that hit answers after all.

    None while a group has fewer than two.
    """
    scores: dict[bool, list[float]] = {True: [], False: []}
    for id, yes in verdicts.items():
        if id in panel and (before := panel[id].before) is not None:
            scores[yes].append(before)
    return welch(scores[False], scores[True]) if min(map(len, scores.values())) > 1 else None


def said_in(queue: Path) -> dict[str, bool]:
    """What a person said so far, by case: whether the candidate answers."""
    if not queue.exists():
        raise UsageError(f"there is no {queue}; make the set first, with: eyespot build rmir RECIPE --out FOLDER")
    return {id: decision.choice != "drop" for id, decision in Queue(queue).standing().items()}


# -- what the panel said ----------------------------------------------------------------------------------------------


class Sealed(NamedTuple):
    """What the panel said of a case; nobody who answers it may see that before."""

    id: str
    kind: str
    question: str
    answers: bool | None  # None where the panel is in doubt
    before: float | None  # for a last hit: the reliability that the hits before it tell
    votes: Sequence[Mapping[str, str]]


def write_panel(folder: Path, sealed: Iterable[Sealed]) -> None:
    """Put it beside the queues, in place of an earlier one, whole."""
    write_whole(folder / PANEL, lambda file: file.writelines(line_of(one._asdict()) for one in sealed))


def read_panel(folder: Path) -> dict[str, Sealed]:
    """By case; empty where there is none. `UsageError` names a line that is none of it."""
    path, found = folder / PANEL, dict[str, Sealed]()
    for line, row in rows_of(path) if path.exists() else ():
        if set(row) != set(Sealed._fields):
            refuse(path, f"line {line}", "is not what a panel said; run eyespot build rmir again")
        found[row["id"]] = Sealed(**row)
    return found


def before_last(hits: Mapping[str, Sequence[Record]], counted: Container[str], lists: Lists) -> dict[str, float]:
    """For each last hit the reliability of its query by the hits before it; only `counted` triplets tell it."""
    found = {}
    for *before, last in hits.values():
        voted = [one for one in before if one["id"] in counted]
        found[last["id"]] = tail_reliability(voted, lists.judges, lists.depth - 1)
    return found


# -- Welch's t-test ---------------------------------------------------------------------------------------------------


def welch(first: Sequence[float], second: Sequence[float]) -> TwoGroups:
    """Two groups of unlike spread compared (Welch 1947): two-tailed, degrees of freedom by Satterthwaite."""
    a, b = np.array(first, np.float64), np.array(second, np.float64)
    errors = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    difference, error = float(a.mean() - b.mean()), float(sum(errors))
    pooled = math.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
    if not error:
        same = difference == 0
        return TwoGroups(len(a), len(b), difference, 0.0 if same else math.inf, math.nan, float(same), math.nan)
    freedom = error**2 / float(errors[0] ** 2 / (len(a) - 1) + errors[1] ** 2 / (len(b) - 1))
    t = difference / math.sqrt(error)
    # Two-tailed, at t = √ν tan θ: the density is then proportional to cos(θ)^(ν - 1), for θ up to π/2
    places, weights = np.polynomial.legendre.leggauss(200)
    halves = [(math.pi / 2 - start) / 2 for start in (math.atan(abs(t) / math.sqrt(freedom)), 0.0)]
    beyond, every = (half * float(weights @ np.sin(half * (1 - places)) ** (freedom - 1)) for half in halves)
    return TwoGroups(len(a), len(b), difference, t, freedom, beyond / every, difference / pooled)
