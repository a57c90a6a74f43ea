"""Verdicts of people, as the ledger keeps them: yes, no, or doubt, which counts as no."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Protocol

from eyespot.judges.person import QUESTION, VERDICTS
from eyespot.ledger.judgements import PERSON, WITHDRAWN, Judgements, query_digest
from eyespot.types import Judgement, Query
from eyespot.web._security import clean_name
from eyespot.web._settings import Role, User

PROMPT = hashlib.sha256(QUESTION.encode()).hexdigest()[:16]  # as at the terminal: the question is the same
NOBODY = "visitor"


class ItemVerdict(Protocol):
    """What somebody said of an item."""

    item: str
    rank: int | None

    @property
    def verdict(self) -> str:
        """`yes`, `no` or `doubt`."""
        ...


def judge_of(person: User, said: str | None = None) -> str:
    """Under which name verdicts are kept: the token's, else what somebody says they are called."""
    return PERSON + (person.name if person.proven else clean_name(said or "") or person.name or NOBODY)


def own_of(person: User) -> tuple[str, str] | None:
    """Whose verdicts, on which question, are somebody's own; None for who cannot judge."""
    return (judge_of(person), PROMPT) if person.role >= Role.ANNOTATOR else None


def judged_now(judgements: Judgements, query: Query, said: ItemVerdict, judge: str) -> Judgement:
    """Keep a verdict; it is on the disk when this returns."""
    digest = judgements.enter([query])[query]
    made = Judgement(digest, said.item, judge, PROMPT, VERDICTS[said.verdict[0]], rank=said.rank, at=time.time())
    judgements.record([made])
    return made


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
