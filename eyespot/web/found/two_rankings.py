"""Two rankings of one query: what moved, how much they share, and, by people's verdicts, which is better."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from eyespot.ledger.judgements import PERSON, Judgements
from eyespot.metrics import Compared, Resampling, compare, evaluate
from eyespot.types import Judgement, Qrels, Query, Run
from eyespot.web._judging import PROMPT, combined
from eyespot.web.found.tabs import verdict_of

MEASURES = ("AP", "nDCG@10")
SAMPLES = 2000  # of the bootstrap and the test
FEWEST = 2  # queries: one has no interval
MOST = 60  # queries that are searched again on both sides


class TwoRankings(NamedTuple):
    """The ids of the first hits of two rankings, best first."""

    left: Sequence[str]
    right: Sequence[str]

    def overlap(self, k: int) -> float:
        """The share of the first k that both have."""
        first, second = self.left[:k], self.right[:k]
        return len({*first} & {*second}) / max(1, min(k, max(len(first), len(second))))

    @property
    def shared(self) -> list[str]:
        """What both have, in the order of the left one."""
        there = {*self.right}
        return [id for id in self.left if id in there]

    @property
    def tau(self) -> float | None:
        """Kendall's rank correlation of what both have; None for fewer than two."""
        place = {id: at for at, id in enumerate(self.right)}
        ranks = [place[id] for id in self.shared]
        pairs = len(ranks) * (len(ranks) - 1) // 2
        agreeing = sum(later > rank for at, rank in enumerate(ranks) for later in ranks[at + 1 :])
        return (2 * agreeing - pairs) / pairs if pairs else None

    def change(self, id: str) -> str:
        """What the right one did to a hit of the left one: `▲ 3`, `▼ 2`, `=`, or that only one has it."""
        if id not in self.left or id not in self.right:
            return "only left" if id in self.left else "only right"
        up = self.left.index(id) - self.right.index(id)
        return f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "="


def judged_queries(ledger: Judgements) -> list[tuple[Query, dict[str, int]]]:
    """The queries on which people judged, and the verdicts of most: at least one photo relevant and one not."""
    queries = ledger.queries()
    last: dict[str, dict[str, dict[str, Judgement]]] = {}  # query, judge, image
    for row in ledger.rows():
        one = row.judgement
        if not one.judge.startswith(PERSON) or one.prompt != PROMPT:
            continue
        own = last.setdefault(one.query, {}).setdefault(one.judge, {})
        own.pop(one.image, None)  # a verdict that its judge withdrew counts no more
        if one.verdict is not None and one.verdict.grade is not None:
            own[one.image] = one
    grades = {
        query: {image: int(verdict_of(one) == "yes") for image, one in combined(people).items()}
        for query, people in last.items()
    }
    found = ((queries.get(digest), its) for digest, its in grades.items())
    return [(query, its) for query, its in found if query is not None and {0, 1} <= {*its.values()}][:MOST]


def measured(
    queries: Iterable[tuple[Query, Mapping[str, int]]],
    left: Callable[[Query], Sequence[str]],
    right: Callable[[Query], Sequence[str]],
) -> list[Compared]:
    """Both sides by the verdicts, with the paired difference of each measure; nothing for fewer than two queries.

    Only photos that somebody judged count, in the order of each side (condensed lists, Sakai 2007): so neither side
    loses by photos that nobody saw.
    """
    grades: dict[str, dict[str, int]] = {}
    orders: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for number, (query, its) in enumerate(queries):
        name = str(number)
        grades[name] = dict(its)
        for side, ranked in zip(orders, (left, right), strict=True):
            side[name] = [id for id in ranked(query) if id in its]
    if len(grades) < FEWEST:
        return []
    scores = [evaluate(Run.from_orders(side), Qrels(grades), list(MEASURES)) for side in orders]
    return list(compare({"left": scores[0], "right": scores[1]}, Resampling(SAMPLES)).pairs)
