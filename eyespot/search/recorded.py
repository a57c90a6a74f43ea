"""What is recorded for a query, verdicts and clicks, as what moves it.

The record is the ledger: verdicts (`y`, `n`) of people and of judges, and clicks (`m`, `x`). It is kept by query: its
words as they were typed, weights and the bytes of pictures; the encoder has no part, since a photo is what is meant in
whatever space. A doubt moves nothing. Somebody's verdict on a photo stands before their click; of several people the
majority counts, and where they are even the photo moves nothing. What a model said counts where it is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.search.feedback import Feedback
from eyespot.types import Judgement, NothingFound, Query

Wishes = Mapping[str, bool | None]  # by image; None is a doubt


def recorded(ledger: Path, query: Query, whose: str | None = None) -> Feedback:
    """The photos that the record of a query says yes and no to: of all people, or of the person or judge that is named.

    `NothingFound` for somebody who said nothing of this query. A ledger that is not there holds nothing.
    """
    if not ledger.exists():
        return _feedback_by({}, whose)
    with Judgements(ledger) as judgements, Clicks(ledger) as clicks:
        return feedback_of(judgements, clicks, query, whose)


def feedback_of(
    judgements: Judgements, clicks: Clicks, query: Query, whose: str | None = None, unknown: str | None = None
) -> Feedback:
    """The same of a ledger that is open; somebody who is `unknown` to it said nothing, which is no error."""
    digest = query_digest(query)
    wishes: dict[str, dict[str, bool | None]] = {who: dict(images) for who, images in clicks.last(digest).items()}
    for judge, verdicts in judgements.people(digest, None).items():
        wishes.setdefault(judge, {}).update({image: _wish(one) for image, one in verdicts.items()})
    if unknown is not None:
        wishes.setdefault(unknown, {})
    return _feedback_by(wishes, whose)


def _feedback_by(wishes: Mapping[str, Wishes], whose: str | None) -> Feedback:
    people = {who: images for who, images in wishes.items() if who.startswith(PERSON)}
    if whose is None:
        by = next(iter(people)).removeprefix(PERSON) if len(people) == 1 else f"{len(people)} people"
        return _majority(people, by if people else "")
    for name in (whose, f"{PERSON}{whose}"):
        if name in wishes:
            return _majority({name: wishes[name]}, name.removeprefix(PERSON))
    there = ", ".join(sorted(who.removeprefix(PERSON) for who in wishes)) or "nobody"
    raise NothingFound(f"{whose} has judged no photo for this query; those who have: {there}")


def _majority(wishes: Mapping[str, Wishes], by: str) -> Feedback:
    votes: Counter[str] = Counter()
    for images in wishes.values():
        votes.update({image: {True: 1, False: -1, None: 0}[wish] for image, wish in images.items()})
    yes, no = (tuple(image for image, sum in votes.items() if sum * sign > 0) for sign in (1, -1))
    return Feedback(yes, no, by)


def _wish(judgement: Judgement) -> bool | None:
    """Yes or no; None for a doubt."""
    verdict = judgement.verdict
    if verdict is None or verdict.reason == "doubt":
        return None
    return verdict.grade > 0 if verdict.grade is not None else (verdict.probability or 0.0) >= 0.5
