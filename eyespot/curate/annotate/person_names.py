"""The names under which people mark photos, and what the ledger calls them."""

from __future__ import annotations

from eyespot.ledger.judgements import PERSON
from eyespot.types import UsageError

LONGEST = 60  # characters of a name


def judge_of(who: str) -> str:
    """How a person is called in the ledger; `UsageError` for a name that is empty, long, or unprintable."""
    name = " ".join(who.split())
    if not name or len(name) > LONGEST or not name.isprintable():
        raise UsageError(f"an annotator's name has 1 to {LONGEST} printable characters; give one with --as NAME")
    return f"{PERSON}{name}"


def name_of(who: str) -> str:
    """A name as the ledger has it, without needless spaces; `UsageError` as for `judge_of`."""
    return judge_of(who).removeprefix(PERSON)
