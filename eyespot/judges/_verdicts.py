"""The verdicts of a run: one scale for each ranking, and which models gave them.

A token probability of 0.6 and a word that counts as 1 cannot be compared. Which scale a ranking has depends on its
verdicts alone, so the same ledger gives the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eyespot.ledger.judgements import Judgements
from eyespot.llms.unsupported_fields import left_out
from eyespot.types import Judgement

HALF = 0.5  # of the probability: the answer that a model would put into words
OTHER = "it was answered on another scale than its ranking has"


def scale_of(judgements: Iterable[Judgement], prompts: Sequence[str]) -> str:
    """The prompt of the most verdicts; of equals the first, for `prompts` begin with the finest scale."""
    counts = Counter(one.prompt for one in judgements if one.verdict is not None and not one.refused)
    return max(prompts, key=lambda prompt: counts[prompt])


def on_one_scale(judgements: Mapping[str, Judgement], prompts: Sequence[str]) -> dict[str, Judgement]:
    """The judgements on one ranking, by image, as its scale has them; `prompts` end with that of words.

    On words a probability is the word that it makes the likelier one. On a finer scale a word is no verdict. A refusal
    is 0 on every scale.
    """
    if len(prompts) < 2:
        return dict(judgements)
    scale, words = scale_of(judgements.values(), prompts), prompts[-1]
    scaled = {}
    for image, judgement in judgements.items():
        verdict = judgement.verdict
        if verdict is None or judgement.refused:
            pass
        elif scale == words:
            share = verdict.probability
            if share is not None and share not in (0, 1):
                reason = f"a probability of {share:.3g}, as a word"
                verdict = replace(verdict, probability=float(share >= HALF), reason=reason)
            judgement = judgement._replace(verdict=verdict)
        elif judgement.prompt != scale:
            judgement = judgement._replace(verdict=None, failure=OTHER)
        scaled[image] = judgement
    return scaled


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
