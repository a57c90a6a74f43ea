"""A ranking with the most telling photos first: those of its first hits of which one is least sure what they are."""

from __future__ import annotations

from collections.abc import Mapping

from eyespot.curate.annotate.active import telling_first as most_telling
from eyespot.types import UsageError
from eyespot.web._search_params import SearchParams
from eyespot.web.found.results import RankedResult

DEPTH = 1000  # hits that are looked at


def telling_first(frozen: RankedResult, params: SearchParams, judged: Mapping[str, list[int]]) -> RankedResult:
    """The first hits, those that tell most first and the judged ones last, as a result of its own.

    Raises `UsageError` where there is not a yes and a no to learn from.
    """
    rows = frozen.slice(0, DEPTH).rows.tolist()
    labels = dict.fromkeys(judged["yes"], True) | dict.fromkeys([*judged["no"], *judged["doubt"]], False)
    if len({*labels.values()}) < 2:
        raise UsageError("the most telling photos are known once you gave a yes and a no; judge some of the best first")
    known = [row for row in labels if row not in set(rows)]
    vectors = frozen.snapshot.view.vectors([*rows, *known])
    order = most_telling(vectors, [labels.get(row) for row in (*rows, *known)])
    first = [rows[at] for at in order.tolist()]
    ahead = set(first)
    return frozen.in_order(params, [*first, *(row for row in rows if row not in ahead)], {})
