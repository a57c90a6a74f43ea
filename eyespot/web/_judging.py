"""Verdicts of people, as the ledger keeps them: yes, no, or doubt, which counts as no."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, Field

from eyespot.judges.person import QUESTION, VERDICTS
from eyespot.ledger.judgements import PERSON, WITHDRAWN, Judgements, query_digest
from eyespot.types import Judgement, Query
from eyespot.web._security import clean_name
from eyespot.web._settings import Role, User
from eyespot.web.found.derived import verdict_of

PROMPT = hashlib.sha256(QUESTION.encode()).hexdigest()[:16]  # as at the terminal: the question is the same
NOBODY = "visitor"


class Mark(BaseModel, extra="forbid"):
    """A verdict on one of several items; null takes it back."""

    item: str = Field(max_length=500)
    verdict: Literal["yes", "no", "doubt"] | None
    rank: int | None = Field(None, ge=1, le=2**31, strict=True)


def judge_of(person: User, name: str | None = None) -> str:
    """Under which name verdicts are kept: the token's, else what somebody says they are called."""
    return PERSON + (person.name if person.proven else clean_name(name or "") or person.name or NOBODY)


def judge_key_of(person: User) -> tuple[str, str] | None:
    """Whose verdicts, on which question, are somebody's own; None for who cannot judge."""
    return (judge_of(person), PROMPT) if person.role >= Role.ANNOTATOR else None


def judged_now(
    judgements: Judgements, query: Query, item: str, verdict: str, *, rank: int | None, judge: str
) -> Judgement:
    """Keep a verdict, `yes`, `no` or `doubt`; it is on the disk when this returns."""
    digest = judgements.enter([query])[query]
    made = Judgement(digest, item, judge, PROMPT, VERDICTS[verdict[0]], rank=rank, at=time.time())
    judgements.record([made])
    return made


def judged_together(judgements: Judgements, query: Query, marks: Iterable[Mark], judge: str) -> int:
    """Keep verdicts on several items in one go, or take them back where the verdict is None; how many changed.

    They are on the disk when this returns, all of them or none.
    """
    digest, now = judgements.enter([query])[query], time.time()
    marked = {mark.item: mark for mark in marks}
    before = judgements.known(digest, marked, judge, PROMPT)
    made = []
    for item, mark in marked.items():
        if verdict_of(before.get(item)) == mark.verdict:
            continue
        verdict, failure = (None, WITHDRAWN) if mark.verdict is None else (VERDICTS[mark.verdict[0]], "")
        made.append(Judgement(digest, item, judge, PROMPT, verdict, failure, rank=mark.rank, at=now))
    judgements.record(made)
    return len(made)


def take_back(judgements: Judgements, query: Query, item: str, judge: str) -> Judgement | None:
    """Withdraw somebody's verdict, which stays in the ledger as history; None where they have none."""
    before = verdicts_on(judgements, query, [item], judge).get(item)
    if before is None:
        return None
    made = Judgement(before.query, item, judge, PROMPT, None, WITHDRAWN, rank=before.rank, at=time.time())
    judgements.record([made])
    return made


def verdicts_on(judgements: Judgements, query: Query | None, items: Iterable[str], judge: str) -> dict[str, Judgement]:
    """What this person last said of these items for this query."""
    return {} if query is None else judgements.known(query_digest(query), items, judge, PROMPT)


def verdicts_by(
    judgements: Judgements, query: Query, judge_key: tuple[str, str], whose: str | None
) -> dict[str, Judgement]:
    """All that somebody (a judge, and how it is asked) last said for a query; with `whose` everybody's verdicts."""
    last = judgements.people(query_digest(query), judge_key[1])
    return last.get(judge_key[0], {}) if whose is None else combined(last)


def combined(last: Mapping[str, Mapping[str, Judgement]]) -> dict[str, Judgement]:
    """One verdict for each photo that several people judged: that of most, and doubt where they are even."""
    votes: dict[str, list[Judgement]] = {}
    for judgements in last.values():
        for image, one in judgements.items():
            votes.setdefault(image, []).append(one)
    found = {}
    for image, several in votes.items():
        verdict = majority(map(verdict_of, several))
        even = several[0]._replace(verdict=VERDICTS["d"])
        found[image] = next((one for one in several if verdict_of(one) == verdict), even)
    return found


def majority(verdicts: Iterable[str | None]) -> str | None:
    """The verdict that more people gave than any other, and `doubt` where they are even; None for no verdicts."""
    ordered = Counter(verdicts).most_common(2)
    if len(ordered) == 2 and ordered[0][1] == ordered[1][1]:
        return "doubt"
    return ordered[0][0] if ordered else None
