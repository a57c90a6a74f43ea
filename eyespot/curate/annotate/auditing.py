"""Audits: a random draw of the photos nobody has looked at, its labels, and what they say of all that is left.

A small audit of a large rest is drawn by depth (`depth_bands`): a part with the same chance everywhere, for the bound
that holds whatever the ranking is like, the others near the depth at which labelling stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eyespot.curate.annotate.annotation_store import AnnotationStore, AuditSample, Candidate, relevant
from eyespot.curate.annotate.candidates import draw_from_gallery, nearest
from eyespot.curate.annotate.depth_bands import (
    DepthDesign,
    Ranking,
    draw_bands,
    even_part,
    hidden_at_most,
    reach,
    too_deep,
)
from eyespot.curate.annotate.remaining import Audit, Remaining, remaining
from eyespot.search.collection import Collection
from eyespot.types import NothingFound, UsageError

SIZE = 300  # photos


@dataclass(frozen=True)
class Audited:
    """How an audit stands: `done` of `size` photos are labelled, `relevant` of them relevant.

    `left` and `cautious` are there once all are: how many relevant photos nobody has seen, with 95 % intervals. The
    first is right as often as promised, the second at least as often. `most_by_rank` is how many at most (95 %) if
    they lie no deeper than evenly over the logarithm of the rank; None where the audit was not drawn by depth, or found
    photos so deep that it contradicts this.
    """

    size: int
    done: int
    relevant: int
    left: Remaining | None = None
    cautious: Remaining | None = None
    most_by_rank: int | None = None


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
    if store.grows(id) and collection is None:
        raise UsageError("the list of this query grows with the gallery, so its audit is drawn there; open the gallery")
    listed = store.candidates(id)
    source = collection if store.grows(id) else None
    photos = len(listed) if source is None else int(source.view.live.sum())
    rest, drawn = _draw_evenly(listed, source, seen, plan.size, rng)
    if not drawn:
        raise NothingFound("everything is labelled, so nothing is left to audit")
    if len(drawn) > (even := even_part(plan.size, rest)):
        depth = next((place for place, photo in enumerate(listed) if photo.image not in seen), len(listed))
        end = reach(depth, plan.size, photos)
        ranked = listed[:end] if source is None else nearest(source, store.query(id).query, end)
        audit = by_depth(ranked, photos, AuditSample(rest, float(rng.random()), drawn[:even], list(seen)), plan, rng)
    else:
        audit = AuditSample(rest, float(rng.random()), drawn, list(seen))
    store.keep_audit(id, who, audit, before)
    return audit


def _draw_evenly(
    listed: Sequence[Candidate], source: Collection | None, seen: Iterable[str], size: int, rng: np.random.Generator
) -> tuple[int, list[Candidate]]:
    """How many photos of a list, or of a gallery, are not seen, and so many of them in random order."""
    if source is not None:
        return draw_from_gallery(source, seen, size, rng)
    known = set(seen)
    unseen = [photo for photo in listed if photo.image not in known]
    places = rng.choice(len(unseen), min(size, len(unseen)), replace=False)
    return len(unseen), [unseen[place] for place in places.tolist()]


def by_depth(
    ranked: Sequence[Candidate], photos: int, even: AuditSample, plan: Plan, rng: np.random.Generator
) -> AuditSample:
    """An audit of an even draw and of further photos near the depth that is labelled, in random order.

    `ranked` is the ranking of all photos as far down as `reach` says; `photos` is the number of all.
    """
    seen, drawn = set(even.seen), {photo.image for photo in even.photos}
    known = {photo.image: photo for photo in [*even.photos, *ranked]}
    unseen = {photo.image: rank for rank, photo in enumerate(ranked, 1) if photo.image not in seen}
    ranking = Ranking(unseen, len(ranked), max(photos, len(ranked)), even.rest)
    bands = draw_bands(ranking, drawn, plan.size - len(drawn), rng)
    together = [known[image] for image in sorted(drawn.union(*(band.drawn for band in bands)))]
    shuffled = [together[place] for place in rng.permutation(len(together)).tolist()]
    return even._replace(photos=shuffled, design=DepthDesign(sorted(drawn), bands))


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
    even = [photo.image for photo in drawn.photos] if drawn.design is None else drawn.design.even
    # What was labelled besides the even draw, also in this audit, no longer remains
    before = {*drawn.seen, *even}
    since = [label for image, label in labels.items() if image not in before]
    unseen = max(drawn.rest - len(even) - len(since), 0)
    audit = Audit(drawn.rest, len(even), sum(labels[image] for image in even))
    left, cautious = (remaining(audit, lot=lot).without(sum(since), unseen) for lot in (drawn.lot, 1.0))
    return Audited(size, done, found, left, cautious, most_by_rank(labels, drawn))


def most_by_rank(labels: Mapping[str, bool], drawn: AuditSample) -> int | None:
    """How many relevant photos remain at most under the condition on their depth; None where it is not to be had."""
    shown = {photo.image for photo in drawn.photos}
    relevant_ones = {image for image in shown if labels[image]}
    if drawn.design is None or too_deep(drawn.design.bands, relevant_ones):
        return None
    rest = drawn.rest - len(shown)
    hidden = hidden_at_most(drawn.design.bands, relevant_ones, rest)
    seen = shown.union(drawn.seen)
    since = [label for image, label in labels.items() if image not in seen]
    return max(min(hidden - sum(since), rest - len(since)), 0)
