"""Which models gave the verdicts of a run, and what these did not accept of the requests: for the run's header."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from eyespot.ledger.judgements import Judgements
from eyespot.llms.unsupported_fields import left_out
from eyespot.types import Judgement


def served_by(judge: str, judgements: Iterable[Judgement], ledger: Judgements) -> dict[str, Any]:
    """Replies by `served` model and by `fingerprint`, and what was `not_accepted`; without what is not known."""
    models: Counter[str] = Counter()
    fingerprints: Counter[str] = Counter()
    fields: dict[str, None] = {}
    for model, fingerprint, changes, replies in ledger.served(judgements):
        models[model] += replies
        fingerprints[fingerprint] += replies
        fields |= dict.fromkeys(left_out(changes))
    facts = {
        "served": {model: count for model, count in models.items() if model},
        "fingerprints": {name: count for name, count in fingerprints.items() if name},
        "not_accepted": [f"{field}: not accepted by {judge}" for field in fields],
    }
    return {name: fact for name, fact in facts.items() if fact}
