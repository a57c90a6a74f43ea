"""How the labelling of a query stands: how far down, whether the rule has fired, what is left, and what it cost.

The stopping rule: go down the list until some photos in a row are not relevant (INQUIRE, section 3.2: 100).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise, repeat
from typing import Any

from eyespot.curate.annotate import auditing
from eyespot.curate.annotate.agreement import MarksByPerson
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate, relevant
from eyespot.curate.annotate.audit_bounds import Remaining
from eyespot.curate.annotate.auditing import Audited
from eyespot.curate.annotate.queries import CRITERIA, AnnotationQuery
from eyespot.curate.annotate.team_store import name_of
from eyespot.types import Judgement

IN_A_ROW = 100


@dataclass(frozen=True, slots=True)
class Descent:
    """How far down a list somebody is: ranks judged without a gap, and how many of the last were not relevant."""

    depth: int
    in_a_row: int
    stopped_at: int | None  # the rank, from 1, at which the rule fired first


def descent(labels: Iterable[bool | None], in_a_row: int = IN_A_ROW, singly: Iterable[bool] | None = None) -> Descent:
    """How far the labels of a list go, best first; the first None (unjudged) ends it, whatever comes behind.

    `singly` says which photos were marked by themselves: those of a group that was marked at once are not counted in a
    row, or a burst of a hundred frames would end a labelling after one look.
    """
    depth = irrelevant = 0
    stopped: int | None = None
    for label, alone in zip(labels, repeat(True) if singly is None else singly, strict=False):
        if label is None:
            break
        depth += 1
        irrelevant = 0 if label else irrelevant + alone
        if stopped is None and irrelevant >= in_a_row:
            stopped = depth
    return Descent(depth, irrelevant, stopped)


PAUSE, A_PHOTO = 60.0, 5.0  # seconds before marks, and for each further photo marked with the first; more is a pause
WAGE = 15.50  # US dollars an hour, as INQUIRE paid (appendix H.5)
# A query is too easy if more than half of its first 100 photos are relevant. INQUIRE takes such queries out of its
# re-ranking set (section 3.3); for its full set it gives no number (section 3.2), so there the limit is ours.
EASY_DEPTH, EASY_SHARE = 100, 0.5
SURE = 0.9  # a labelling is complete if at least this share of the relevant photos is found

TEAM = "all together"  # stands for everybody; no name of a person

ListedMarks = tuple[Sequence[Candidate], Mapping[str, Judgement]]  # a list, and what somebody said of its photos


@dataclass(frozen=True)
class LabellingProgress:
    """One person's labelling of one query.

    found_at_least: the share of all relevant photos that is found, by the upper end of the audit's interval.
    seconds: None where the time of no mark is known, as of marks that were made elsewhere.
    ranked: how many photos at the head of the list were ranked out of all photos; None for the whole list.
    """

    query: str
    who: str
    listed: int
    grows: bool  # the list goes on, and is not yet the whole gallery
    labelled: int
    relevant: int
    descent: Descent
    audit: Audited | None
    seconds: float | None
    ranked: int | None = None

    @property
    def stopped(self) -> bool:
        """Whether the rule has fired or the list has come to its end."""
        return self.descent.stopped_at is not None or self.exhausted

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing that was not looked at."""
        return not self.grows and self.descent.depth >= self.listed > 0

    @property
    def found_at_least(self) -> float | None:
        """The share of the relevant photos that is found, at least, whatever the ranking is like; None: no audit."""
        if self.audit is None or self.audit.left is None:
            return None
        return self._found_of(self.audit.left.high)

    @property
    def found_by_rank(self) -> float | None:
        """The same if unseen relevant photos lie no deeper than evenly over the logarithm of the rank.

        It serves to call a labelling complete, so it is None below `SURE`: there it would tell numbers of rankings that
        are not like that.
        """
        if self.audit is None or self.audit.most_by_rank is None:
            return None
        share = self._found_of(self.audit.most_by_rank)
        return share if share >= SURE else None

    @property
    def sure(self) -> bool:
        """Whether an audit says, in either way, that the labelling is complete."""
        return self.found_by_rank is not None or (self.found_at_least or 0.0) >= SURE

    def _found_of(self, hidden: int) -> float:
        # Each photo that was listed after the draw may be relevant, too
        together = None if self.audit is None else self.audit.together
        relevant = self.relevant if together is None else together  # what the others of an audit found is found
        every = relevant + hidden + (0 if self.audit is None else self.audit.later)
        return relevant / every if every else 1.0

    def cost(self, wage: float = WAGE) -> float | None:
        """What the time cost, at this wage an hour, in whole cents; None if it is not known."""
        return None if self.seconds is None else round(self.seconds / 3600 * wage, 2)

    def as_json(self, wage: float = WAGE) -> dict[str, Any]:
        """All of it as JSON has it, the cost at this wage an hour."""
        shares = {"found_at_least": self.found_at_least, "found_by_rank": self.found_by_rank}
        derived = {"stopped": self.stopped, **shares, "cost": self.cost(wage)}
        audit = self.audit
        left = None if audit is None or audit.left is None else {**audit.left._asdict(), "text": str(audit.left)}
        plain = None if audit is None else {**asdict(audit), "left": left}
        return {**asdict(self), **derived, "audit": plain}


def standing(store: AnnotationStore, id: str, who: str) -> LabellingProgress:
    """How somebody's labelling of a query stands."""
    return standing_of(store, id, who, (store.candidates(id), store.last_judgements(id, who)))


def standing_of(store: AnnotationStore, id: str, who: str, known: ListedMarks) -> LabellingProgress:
    """The same from the list and what somebody said, where both are known already."""
    listed, judgements = known
    labels = {image: relevant(one) for image, one in judgements.items()}
    grouped = store.team.marked_by_group(id, name_of(who), judgements)
    counts = len(listed), store.goes_on(id), len(labels), sum(labels.values())
    down = descent((labels.get(one.image) for one in listed), singly=(one.image not in grouped for one in listed))
    audit, time = auditing.standing(store, id, who), seconds(judgements.values(), store.openings(id, who))
    return _without_rest(LabellingProgress(id, who, *counts, down, audit, time, store.ranked_depth(id)))


def _without_rest(stands: LabellingProgress) -> LabellingProgress:
    """Of a list that is labelled to its end nothing is unseen, whatever an audit before left open."""
    if stands.audit is None or stands.audit.left is None or not stands.exhausted:
        return stands
    return replace(stands, audit=replace(stands.audit, left=Remaining(0.0, 0, 0), most_by_rank=0, later=0))


def team_standing(
    store: AnnotationStore, id: str, by_person: MarksByPerson, labels: Mapping[str, bool]
) -> LabellingProgress:
    """How the labelling of a query by all of its people together stands: what counts in the end, and all their time.

    Its audit is the last one of the query, whoever drew it.
    """
    listed, each = store.candidates(id), [standing_of(store, id, who, ((), marks)) for who, marks in by_person.items()]
    alone = {who: marks.keys() - store.team.marked_by_group(id, who, marks) for who, marks in by_person.items()}
    singly = set[str]().union(*alone.values())
    counts = len(listed), store.goes_on(id), len(labels), sum(labels.values())
    down = descent((labels.get(one.image) for one in listed), singly=(one.image in singly for one in listed))
    if audit := auditing.standing(store, id):
        audit = replace(audit, together=None)  # what nobody of the audit found counts, too
    times = [one.seconds for one in each]
    time = None if None in times else sum(filter(None, times))
    return _without_rest(LabellingProgress(id, TEAM, *counts, down, audit, time, store.ranked_depth(id)))


def seconds(judgements: Iterable[Judgement], openings: Sequence[float] = ()) -> float | None:
    """How long somebody looked, from the moments of their marks and the moments at which they opened the photos.

    Photos marked at the same moment, such as a page of them, took the gap before it. The first marks, and those after a
    pause, took the time since the photos were opened. If that is not known, or a pause as well, they count at the pace
    of the rest. None without a rest.
    """
    photos = Counter(one.at for one in judgements)
    gaps = []
    for before, after in pairwise([-math.inf, *sorted(photos)]):
        count = photos[after]
        if after - before <= _longest(count):
            since = before
        else:
            since = max((at for at in openings if before < at <= after), default=before)
        gaps.append((after - since, count))
    timed = [(gap, count) for gap, count in gaps if gap <= _longest(count)]
    if not timed:
        return None if photos else 0.0
    spent, counted = sum(gap for gap, _ in timed), sum(count for _, count in timed)
    return spent * photos.total() / counted


def _longest(photos: int) -> float:
    """The longest time, in seconds, in which somebody looks at this number of photos; more is a pause."""
    return PAUSE + A_PHOTO * (photos - 1)


def percent(share: float) -> str:
    """A share of which at least so much is sure: never rounded up."""
    return f"{math.floor(100 * share + 1e-9)}%"


# -- whether a query is worth keeping -------------------------------------------------------------------------------


def faults(
    wanted: AnnotationQuery, stands: LabellingProgress, labels: Mapping[str, bool], listed: Iterable[str]
) -> list[str]:
    """Why a labelled query should not go into a benchmark yet; none if it may (INQUIRE, section 3.2)."""
    first = [labels.get(image, False) for image in list(listed)[:EASY_DEPTH]]
    ranked = stands.ranked is None or stands.ranked >= EASY_DEPTH
    share = stands.found_at_least
    checks = [
        (bool(wanted.failing), f"the query does not fit: it is not {_criteria(wanted.failing, 'or')}"),
        (bool(wanted.open), f"still to answer: is it {_criteria(wanted.open, 'and')}?"),
        (not stands.relevant, "nothing relevant was found"),
        (not stands.stopped, "not labelled to the end"),
        (ranked and sum(first) > EASY_SHARE * len(first), f"too easy: {sum(first)} of the first {len(first)} are yes"),
        (stands.stopped and not stands.exhausted and share is None, "no audit of the rest"),
        (share is not None and not stands.sure, f"perhaps only {percent(share or 0.0)} of the relevant photos found"),
    ]
    return [reason for wrong, reason in checks if wrong]


def _criteria(names: Sequence[str], last: str) -> str:
    *first, end = [CRITERIA[name] for name in names] or [""]
    return f"{', '.join(first)} {last} {end}" if first else end
