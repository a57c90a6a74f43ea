"""Audits: a random draw of the photos nobody has looked at, its labels, and what they say of all that is left."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eyespot.curate.annotate.annotation_store import AnnotationStore, AuditSample, relevant
from eyespot.curate.annotate.candidates import draw_from_gallery
from eyespot.curate.annotate.remaining import Audit, Remaining, remaining
from eyespot.search.collection import Collection
from eyespot.types import NothingFound, UsageError

SIZE = 300  # photos


@dataclass(frozen=True)
class Audited:
    """How an audit stands: `done` of `size` photos are labelled, `relevant` of them relevant.

    `left` and `cautious` are there once all are: how many relevant photos nobody has seen, with 95 % intervals. The
    first is right as often as promised, the second at least as often.
    """

    size: int
    done: int
    relevant: int
    left: Remaining | None = None
    cautious: Remaining | None = None


@dataclass(frozen=True)
class Plan:
    """How many photos to draw, and which draw it is; without a seed nobody can know it before."""

    size: int = SIZE
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"an audit of {self.size} photos tells nothing; draw one or more")


PLAN = Plan()


def draw(
    store: AnnotationStore, id: str, who: str, collection: Collection | None = None, plan: Plan = PLAN
) -> AuditSample:
    """Draw an audit for somebody from what they have not labelled, and keep it.

    A list that grows stands for the whole gallery, so its audit needs the `collection`; any other list is all there is.
    Raises `UsageError` while an audit is under way, for who may choose between audits can choose their result, and
    `NothingFound` if everything is labelled.
    """
    before = store.audits(id, who)
    underway = standing(store, id, who)
    if underway is not None and underway.done < underway.size:
        left = underway.size - underway.done
        raise UsageError(f"{left} photos of the audit are still to be labelled; finish it before you draw another")
    rng = np.random.default_rng(secrets.randbits(64) if plan.seed is None else plan.seed)
    seen = store.last_judgements(id, who)
    if store.grows(id):
        if collection is None:
            raise UsageError(
                "the list of this query grows with the gallery, so its audit is drawn there; open the gallery"
            )
        rest, photos = draw_from_gallery(collection, seen, plan.size, rng)
    else:
        unseen = [photo for photo in store.candidates(id) if photo.image not in seen]
        rest, places = len(unseen), rng.choice(len(unseen), min(plan.size, len(unseen)), replace=False)
        photos = [unseen[place] for place in places.tolist()]
    if not photos:
        raise NothingFound("everything is labelled, so nothing is left to audit")
    drawn = AuditSample(rest, float(rng.random()), photos, list(seen))
    store.keep_audit(id, who, drawn, before)
    return drawn


def standing(store: AnnotationStore, id: str, who: str) -> Audited | None:
    """How somebody's last audit of a query stands; None if they never drew one."""
    drawn = store.audit(id, who)
    if drawn is None:
        return None
    return audit_result({image: relevant(said) for image, said in store.last_judgements(id, who).items()}, drawn)


def audit_result(labels: Mapping[str, bool], drawn: AuditSample) -> Audited:
    """The same from all that somebody has labelled: the photos of the rest that turned up since count as found."""
    shown = [labels[photo.image] for photo in drawn.photos if photo.image in labels]
    size, done, found = len(drawn.photos), len(shown), sum(shown)
    if done < size:
        return Audited(size, done, found)
    before = {*drawn.seen, *(photo.image for photo in drawn.photos)}
    since = [label for image, label in labels.items() if image not in before]
    unseen = max(drawn.rest - size - len(since), 0)
    audit = Audit(drawn.rest, size, found)
    both = (remaining(audit, lot=lot).without(sum(since), unseen) for lot in (drawn.lot, 1.0))
    return Audited(size, done, found, *both)
