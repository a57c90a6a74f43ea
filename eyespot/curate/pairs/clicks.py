"""Photos that people said yes to for the same query, as image–image pairs to train a retriever on.

One photo stands for the query, another one is what it should find. The pairs are vectors of one space of a gallery,

    OUT/texts.npy, images.npy, of.npy, ids.txt      for `eyespot train quari OUT`

and hold no words: what a query says is learned from captions. (QuARI trains on image–image pairs as well: table 1b.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyespot.gallery.view import View
from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import Judgements
from eyespot.search.recorded import feedback_of
from eyespot.storage.atomic import whole_folder
from eyespot.types import NothingFound, Query, UsageError

MOST = 256  # pairs of one query


@dataclass(frozen=True)
class ClickedPairs:
    """Rows of photos in pairs, (n, 2), which queries they are of, and what gives no pair with how often."""

    rows: NDArray[np.int64]
    queries: int
    left_out: Counter[str]


def clicked_pairs(view: View, ledger: Path, whose: str | None = None, seed: int = 0) -> ClickedPairs:
    """Every two yes photos of a query, both ways; of a query with very many, as many as count are drawn.

    By the verdicts and clicks of all people, or of one person or judge. Raises `NothingFound` where none gives a pair.
    """
    if not ledger.exists():
        raise NothingFound(f"there is no ledger {ledger}; judge photos first, or name one with --ledger")
    left_out: Counter[str] = Counter()
    found = list(_pairs(view, ledger, whose, np.random.default_rng(seed), left_out))
    if not found:
        why = "; ".join(f"{count} {reason}" for reason, count in left_out.items()) or "nobody has judged a photo"
        raise NothingFound(f"no query has two photos with a yes ({why}); judge more, or name another ledger")
    return ClickedPairs(np.concatenate(found), len(found), left_out)


def _pairs(
    view: View, ledger: Path, whose: str | None, rng: np.random.Generator, left_out: Counter[str]
) -> Iterator[NDArray[np.int64]]:
    with Judgements(ledger) as judgements, Clicks(ledger) as clicks:
        for digest, query in judgements.queries().items():
            try:
                known = None if query is None else feedback_of(judgements, clicks, Query(digest, query.terms), whose)
            except (NothingFound, UsageError):  # nobody of that name judged it; a picture of it is gone
                known = None
            rows = np.zeros(0, np.int64) if known is None else view.rows_by_id(known.yes)
            rows[~view.live[rows]] = -1  # whose picture is gone
            left_out["photos are not in this space"] += int((rows < 0).sum())
            every = np.array(list(permutations(rows[rows >= 0][:MOST].tolist(), 2)), np.int64).reshape(-1, 2)
            if len(every):
                yield every[np.sort(rng.permutation(len(every))[:MOST])]
            else:
                left_out["queries have fewer than two photos with a yes"] += 1


def write(view: View, pairs: ClickedPairs, out: Path) -> None:
    """The pairs as a folder that `eyespot train quari` reads; `UsageError` if it is there already."""
    if out.exists():
        raise UsageError(f"{out} is there already; name a new folder with --out")
    images, of = np.unique(pairs.rows[:, 1], return_inverse=True)
    with whole_folder(out) as building:
        np.save(building / "texts.npy", view.vectors(pairs.rows[:, 0].tolist()))
        np.save(building / "images.npy", view.vectors(images.tolist()))
        np.save(building / "of.npy", of.astype(np.int64))
        ids = [str(facts["id"]) for facts in view.facts(images.tolist())]
        (building / "ids.txt").write_text("".join(f"{id}\n" for id in ids), encoding="utf-8")
