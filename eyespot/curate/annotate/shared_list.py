"""A list that several people go down together: who labels which photos, and how far all of them are.

Each photo goes to one person, a random tenth to two, on which agreement is measured. Once the team's marks let the
stopping rule fire, no photo below that rank is handed out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eyespot.curate.annotate.agreement import MarksByPerson, coefficients, everybody, labels
from eyespot.curate.annotate.annotation_store import AnnotationStore, Candidate
from eyespot.curate.annotate.progress import team_standing
from eyespot.curate.annotate.team_store import Unit, is_twice, name_of
from eyespot.types import Judgement

AT_ONCE = 24  # groups and single photos that are handed to somebody
Groups = Sequence[Sequence[str]]  # photos of a list that are labelled at once, in its order


def hand_out(store: AnnotationStore, id: str, who: str, groups: Groups = (), most: int = AT_ONCE) -> int:
    """Hand somebody the next photos that nobody else holds; gives how many there were.

    A group is handed out as a whole and is one of `most`, as it is one look: else a long burst would be all there is.
    """
    person = name_of(who)
    seed, listed = store.team.share(id), [photo.image for photo in store.candidates(id)]
    by_person = everybody(store, id)
    stop = team_standing(store, id, by_person, labels(store, id, by_person)).descent.stopped_at
    within = set(listed[:stop])
    units = [
        Unit(tuple(unit), 1 + is_twice(seed, unit[0]))
        for unit in groups or [[image] for image in listed]
        if unit[0] in within
    ]
    labelled = {(image, labeller) for labeller, marks in by_person.items() for image in marks}
    renew(store, id, who, by_person.get(person, {}))
    return store.team.hand_out(id, person, units, labelled, most)


def renew(store: AnnotationStore, id: str, who: str, judgements: Mapping[str, Judgement]) -> None:
    """Let what somebody holds begin anew, for they are at work; `judgements` are their last ones, by photo."""
    person = name_of(who)
    store.team.renew(id, person, judgements, store.team.marked_by_group(id, person, judgements))


def photos_of(store: AnnotationStore, id: str, who: str) -> list[Candidate]:
    """The photos of a shared list that somebody has labelled or holds, in the order of the list.

    What they held too long, and somebody else has or has labelled by now, is left out.
    """
    person, by_person = name_of(who), everybody(store, id)
    leases = store.team.leases(id)
    others = Counter(image for labeller, marks in by_person.items() if labeller != person for image in marks)
    others.update(one.image for one in leases if one.person != person and not one.lapsed)
    shown = {one.image for one in leases if one.person == person and not (one.lapsed and others[one.image])}
    shown |= by_person.get(person, {}).keys()
    return [photo for photo in store.candidates(id) if photo.image in shown]


def labelled_twice(
    store: AnnotationStore, id: str, by_person: MarksByPerson, groups: Groups = ()
) -> dict[str, Any] | None:
    """How the random tenth stands, down to where the team is: how many `photos` two people are to label, how many are
    `labelled`, and their `agreement`; None for a list that nobody has shared.

    Of a group that is marked at once the first photo counts alone, for the others say nothing new.
    """
    seed = store.team.seed(id)
    if seed is None:
        return None
    stop = team_standing(store, id, by_person, labels(store, id, by_person)).descent.stopped_at
    within = [photo.image for photo in store.candidates(id)][:stop]
    others = {image for unit in groups for image in unit[1:]}
    heads = [image for image in within if image not in others]
    people = Counter(image for marks in by_person.values() for image in marks)
    chosen = [image for image in heads if is_twice(seed, image) and people[image]]
    both = {image for image in chosen if people[image] > 1}
    common = {who: {image: one for image, one in marks.items() if image in both} for who, marks in by_person.items()}
    shared = {who: marks for who, marks in common.items() if marks}
    return {"photos": len(chosen), "labelled": len(both), "agreement": coefficients(shared)}
