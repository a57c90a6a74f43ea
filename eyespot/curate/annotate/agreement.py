"""What several annotators of a query agree on, what they dispute, and what counts in the end.

Where annotators differ the last word of whoever settles disputes counts first, then the majority; where as many say yes
as no there is reasonable doubt, and doubt counts as not relevant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from eyespot.curate.annotate.annotation_store import ADJUDICATION, AnnotationStore, mark_of, relevant
from eyespot.curate.annotate.team_store import OWN_DISPUTES, name_of
from eyespot.runs.agreement import Agreement, Ratings, cohen_kappa, krippendorff_alpha
from eyespot.types import Judgement, UsageError


class Overlap(NamedTuple):
    """Two annotators over the photos that both labelled: how often each said what."""

    first: str
    second: str
    both_yes: int
    first_yes: int
    second_yes: int
    both_no: int

    @property
    def photos(self) -> int:
        """How many photos both labelled."""
        return sum(self[2:])

    @property
    def agreed(self) -> float:
        """The share of them on which they agree."""
        return (self.both_yes + self.both_no) / self.photos


@dataclass(frozen=True)
class Word:
    """The mark that settles a dispute, whose it is, and when it was made, in seconds since 1970."""

    who: str
    mark: str
    at: float


@dataclass(frozen=True)
class Dispute:
    """A photo on which annotators differ: the mark of each, and the word that settles it, if there is one.

    times: when each of them marked it, in seconds since 1970. grouped: who marked it as a member of a group.
    """

    image: str
    marks: dict[str, str]
    word: Word | None = None
    times: dict[str, float] = field(default_factory=dict)
    grouped: frozenset[str] = frozenset()
    notes: tuple[dict[str, Any], ...] = ()


MarksByPerson = Mapping[str, Mapping[str, Judgement]]  # by annotator, by photo


def everybody(store: AnnotationStore, id: str) -> MarksByPerson:
    """The last words of all annotators of a query, by name."""
    found = store.said_by(id, store.annotators())
    return {who: judgements for who, judgements in found.items() if judgements}


def overlaps(by_person: MarksByPerson) -> list[Overlap]:
    """Every two annotators who share a photo."""
    found = []
    for first, second in combinations(by_person, 2):
        shared = by_person[first].keys() & by_person[second].keys()
        both = [(relevant(by_person[first][image]), relevant(by_person[second][image])) for image in shared]
        cells = (both.count(cell) for cell in ((True, True), (True, False), (False, True), (False, False)))
        found.append(Overlap(first, second, *cells))
    return [overlap for overlap in found if overlap.photos]


def coefficients(by_person: MarksByPerson) -> dict[str, Agreement]:
    """Agreement beyond chance, each with its interval: Cohen's kappa of two people, over the photos that both labelled,
    and Krippendorff's alpha of all; none where nobody shares a photo."""
    if not overlaps(by_person):
        return {}
    every = Ratings.of(_ratings(by_person, set().union(*by_person.values())))
    shared = Ratings.of(_ratings(by_person, set.intersection(*map(set, by_person.values()))))
    kappa = {"cohen_kappa": cohen_kappa(shared)} if shared.items and len(by_person) == 2 else {}
    return {**kappa, "krippendorff_alpha": krippendorff_alpha(every)}


def _ratings(by_person: MarksByPerson, images: set[str]) -> list[tuple[str, str, int]]:
    # In order of the ids: the intervals are drawn item by item, and sets come in any order.
    pairs = ((image, who) for image in sorted(images) for who in by_person)
    return [(image, who, int(relevant(by_person[who][image]))) for image, who in pairs if image in by_person[who]]


def differences(store: AnnotationStore, id: str, by_person: MarksByPerson | None = None) -> list[Dispute]:
    """The photos on which annotators differ, settled or not, in the order of the list."""
    by_person = everybody(store, id) if by_person is None else by_person
    if len(by_person) < 2:
        return []
    words, notes = _words(store, id), store.team.notes(id)
    groups = {who: store.team.marked_by_group(id, who, one) for who, one in by_person.items()}
    found = []
    for image in store.photos(id):
        last = {who: one[image] for who, one in by_person.items() if image in one}
        marks = {who: mark_of(one) for who, one in last.items()}
        if len({mark == "y" for mark in marks.values()}) > 1:
            times = {who: one.at for who, one in last.items()}
            grouped = frozenset(who for who in last if image in groups[who])
            found.append(Dispute(image, marks, words.get(image), times, grouped, tuple(notes.get(image, ()))))
    return found


def settle(store: AnnotationStore, id: str, who: str, image: str, mark: str | None) -> None:
    """The word that ends a dispute; None takes it back. `UsageError` for a bad mark or name."""
    store.mark(id, who, {image: mark}, ADJUDICATION)


def check_settling(store: AnnotationStore, id: str, who: str, image: str) -> None:
    """`UsageError` where nobody differs on a photo, or `who` has marked it and the lead does not let them settle it."""
    if all(one.image != image for one in differences(store, id)):
        raise UsageError("nobody differs on this photo, so nothing is to settle; whoever sees it otherwise marks it")
    judgement = store.last_judgements(id, who).get(image)
    if judgement is not None and not store.team.allows(OWN_DISPUTES):
        raise UsageError(
            f"{name_of(who)} has marked this photo, and nobody settles their own dispute; let somebody else settle it, "
            "change your own mark, or ask the lead to allow it on the page Annotate"
        )


def labels(store: AnnotationStore, id: str, by_person: MarksByPerson | None = None) -> dict[str, bool]:
    """What counts in the end for every photo that somebody labelled, in the order of the list.

    A word that settled a dispute counts for as long as marks differ: once they agree, it is out of date.
    """
    by_person = everybody(store, id) if by_person is None else by_person
    words = _words(store, id)
    votes = {image: [relevant(one[image]) for one in by_person.values() if image in one] for image in store.photos(id)}
    final = {image: 2 * sum(given) > len(given) for image, given in votes.items() if given}
    done = {image: words[image].mark == "y" for image in words.keys() & final.keys() if len({*votes[image]}) > 1}
    return {**final, **done}


def _words(store: AnnotationStore, id: str) -> dict[str, Word]:
    """The words that settle disputes, by photo; of several the last one."""
    found = store.said_by(id, store.annotators(), ADJUDICATION)
    words = [(one, Word(who, mark_of(one), one.at)) for who, judgements in found.items() for one in judgements.values()]
    return {one.image: word for one, word in sorted(words, key=lambda pair: pair[0].at)}
