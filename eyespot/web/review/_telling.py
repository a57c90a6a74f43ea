"""A case as the page shows it, and nothing that whoever answers blind may not know yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eyespot.html import tidy
from eyespot.pipelines.human_review import Case, ReviewDecision
from eyespot.web.review._queues import Shelved


def case_fields(shelved: Shelved, case: Case, stands: ReviewDecision | None, who: str) -> dict[str, Any]:
    """All of a case: its pictures' addresses, why it is here, its texts, and what stands."""
    return {
        "case": case.digest,
        "id": tidy(case.id),
        "place": shelved.places[case.digest] + 1,
        "why": tidy(case_question(shelved, case)),
        "pictures": [f"/review/{shelved.key}/pictures/{case.digest}/{at}" for at in range(len(case.pictures))],
        "texts": dict(case.texts),
        "stands": None if stands is None else decision_fields(shelved, stands, who),
    }


def case_question(shelved: Shelved, case: Case) -> str:
    """Why a person is to look: in a blind audit the bare question, for its page has keys of its own."""
    sealed = None if shelved.panel is None else shelved.panel.get(case.id)
    return case.why if sealed is None else sealed.question


def decision_fields(shelved: Shelved, stands: ReviewDecision, who: str) -> dict[str, Any]:
    """A decision that stands; what another said in an audit is left out, for it would lead whoever answers blind."""
    mine = stands.who == who
    hidden: dict[str, Any] = {"choice": None, "texts": {}, "note": ""}
    content = {"choice": stands.choice, "texts": dict(stands.texts), "note": stands.note}
    return {
        "seen": stands.digest,
        "who": stands.who,
        "mine": mine,
        **(hidden if shelved.panel is not None and not mine else content),
    }


def counts(shelved: Shelved, standing: Mapping[str, ReviewDecision]) -> dict[str, int]:
    """How many cases there are and how many are open."""
    return {"cases": len(shelved.cases), "open": len(shelved.cases) - len(standing)}
