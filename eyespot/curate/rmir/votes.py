"""What votes come to: the confidence in a majority, and how reliably a query's other candidates are none.

RMIR, sections 3.1.4 and 3.1.7. Votes are "true", "false" and "abstain"; a judge that gave none still counts as a judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

TRUE, FALSE, ABSTAIN = "true", "false", "abstain"


def confidence(votes: Sequence[str], judges: int) -> tuple[bool | None, float]:
    """The majority among true and false, and its share of all judges; None and 0 where most abstain or both tie."""
    counts = Counter(votes)
    abstained = judges - counts[TRUE] - counts[FALSE]
    if counts[TRUE] == counts[FALSE] or abstained > max(counts[TRUE], counts[FALSE]):
        return None, 0.0 if abstained > max(counts[TRUE], counts[FALSE]) else counts[TRUE] / judges
    verdict = counts[TRUE] > counts[FALSE]
    return verdict, max(counts[TRUE], counts[FALSE]) / judges


def negativeness(votes: Sequence[str], judges: int) -> float:
    """The share of the judges that answered who said false; 0 where under half of all judges did.

    An abstention is an answer. A judge that failed gave none, and which way it would have voted is unknown.
    """
    refused = Counter(votes)[FALSE]
    return refused / len(votes) if votes and 2 * refused >= judges else 0.0


def reliability(listed: Sequence[float], depth: int) -> float:
    """TSR: the mean over i of the mean negativeness of a list from place i to its end, (1/K) Σ mean(L_i..L_K).

    `listed` are negativenesses in the order of the image index; places up to `depth` (K) are artificial negatives.
    """
    padded = [*listed[:depth], *[1.0] * (depth - len(listed))]
    total, tails = 0.0, 0.0
    for count, one in enumerate(reversed(padded), 1):
        total += one
        tails += total / count
    return tails / depth if depth else 0.0
