"""Judged photos move a query: towards those that are what is meant, away from those that are not.

The photos that are (yes) and that are not (no) give a direction: what tells them from the gallery, by linear
discriminant analysis, as with labels (`eyespot.search.label_learning`). Added to the query's vector it makes another
one; so a moved search is an ordinary one, exact where that is. docs/how/feedback.md compares it with Rocchio's
formula, a probe, SeeSaw's query alignment and a view of the space made of the clicks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eyespot.ledger.clicks import Clicks
from eyespot.ledger.judgements import PERSON, Judgements, query_digest
from eyespot.search.chain import chain_of
from eyespot.search.embedding import KnownVectors, embed
from eyespot.search.label_learning import Contrast, mixed
from eyespot.search.named import NameReader, rewording_notes
from eyespot.types import Judgement, Mask, Note, NothingFound, Query, Run, UsageError, Vectors, quantity

if TYPE_CHECKING:
    from eyespot.search.searchable import Searchable
    from eyespot.settings.search import RankingSettings

ONLY_NO = 0.1  # how much the direction counts where no photo is a yes
MOST = 2048  # photos of either kind that count


class Feedback(NamedTuple):
    """The ids of photos that are what is meant, and of those that are not; and who says so, in words."""

    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    by: str = ""


class Moved(NamedTuple):
    """What moved a query: the rows of photos of either kind, how many others the space does not have, and by whom.

    disputed: how many photos are a yes and a no at once, and count as neither.
    """

    yes: list[int]
    no: list[int]
    missing: int
    by: str
    disputed: int = 0

    @property
    def fields(self) -> dict[str, int | str]:
        """The same in numbers, for the header of a run."""
        return {"yes": len(self.yes), "no": len(self.no), "missing": self.missing, "by": self.by}

    @property
    def note(self) -> Note:
        """What the user should know, under the code `moved`."""
        whose = f" of {self.by}" if self.by else ""
        lost = ((self.missing, "not in this space"), (self.disputed, "a yes and a no at once"))
        are = ("judged photo is", "judged photos are")
        tail = "".join(f"; {quantity(count, *are)} {why}" for count, why in lost if count)
        if self.yes or self.no:
            return Note("moved", f"moved by {len(self.yes):,} yes and {len(self.no):,} no{whose}{tail}")
        what = f"no judged photo{whose} counts" if tail else f"there is no verdict{whose} for this query"
        return Note("moved", f"not moved: {what}{tail}")


def rows_of(feedback: Feedback, rows: NDArray[np.int64]) -> Moved:
    """The rows of judged photos, given those of all its ids, yes before no; -1 is a photo that is not here.

    A photo in both kinds counts in neither. Of very many, as many as count are taken evenly.
    """
    yes, no = rows[: len(feedback.yes)], rows[len(feedback.yes) :]
    kinds = [np.setdiff1d(one[one >= 0], other) for one, other in ((yes, no), (no, yes))]
    few = [kind[np.linspace(0, len(kind) - 1, min(MOST, len(kind))).astype(np.int64)].tolist() for kind in kinds]
    disputed = len(np.intersect1d(yes[yes >= 0], no))
    return Moved(few[0], few[1], int((rows < 0).sum()), feedback.by, disputed)


def moved(query: Vectors, yes: Vectors, no: Vectors, contrast: Contrast) -> Vectors:
    """The query (dim,) moved by judged photos, yes (n, dim) and no (m, dim), of unit length; without any the query."""
    return mixed(query, contrast.direction(yes, no), 1.0 if len(yes) else ONLY_NO, contrast)


@dataclass(frozen=True)
class MovedSearch:
    """All stages that settings name, as `chain_of` makes them, for queries that judged photos move.

    The header of its run says under `moved` by how many. Raises `UsageError` for a search by words alone.
    """

    collection: Searchable
    settings: RankingSettings
    feedback: Feedback
    k: int
    mask: Mask | None = None
    rewriting: Callable[[Query], Query] | None = None
    grouped: bool = False
    named: bool = False

    def __post_init__(self) -> None:
        refuse_words(self.settings.way)

    def __call__(self, queries: Sequence[Query], run: Run | None = None) -> Run:
        """A new run; a run that came before is re-ranked, where the options say so."""
        reword = self.rewriting
        worded = queries if reword is None else [reword(query) for query in queries]
        view, encoder = self.collection.view, self.collection.encoder
        read, words = worded, self.collection.words if self.settings.way == "both" and self.named else None
        if words is not None and words.names is not None:  # the names that the encoder knows best
            reader, sample = NameReader(words), self.collection.contrast.sample
            read = [reader.reworded(query, encoder, sample) for query in worded]
        vectors = embed(read, encoder)
        rows = view.rows_by_id([*self.feedback.yes, *self.feedback.no])
        rows[~view.live[rows]] = -1
        moves = rows_of(self.feedback, rows)
        if moves.yes or moves.no:
            yes, no, contrast = view.vectors(moves.yes), view.vectors(moves.no), self.collection.contrast
            vectors = np.stack([moved(vector, yes, no, contrast) for vector in vectors])
        known = KnownVectors({query.id: vector for query, vector in zip(queries, vectors, strict=True)}, view.space.dim)
        again = {query.id: query for query in worded}
        how: dict[str, Any] = {name: getattr(self, name) for name in ("k", "mask", "grouped", "named")}
        how["rewriting"] = None if reword is None else lambda query: again[query.id]
        made = chain_of(self.collection, self.settings, vectors=known, **how)(queries, run)
        made.header["moved"] = moves.fields
        names = [note for pair in zip(worded, read, strict=True) for note in rewording_notes(*pair)]
        made.notes = [moves.note, *made.notes, *names]
        return made


def refuse_words(by: str) -> None:
    """`UsageError` for a search by words alone, which no photo moves."""
    if by == "words":
        raise UsageError("judged photos move what is searched by look; search by look, or by words and look")


# -- what is recorded ---------------------------------------------------------------------------------------------
# Kept by query: its words as they were typed, weights and the bytes of pictures, in whatever space. A doubt moves
# nothing. A verdict stands before a click of the same person; of several people the majority counts, and where they are
# even the photo moves nothing. What a model said counts where it is named.

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
