"""Audits: a random draw of the photos nobody has looked at, its labels, and what they say of all that is left.

A small audit of a large rest is drawn by depth (`depth_bands`): a part with the same chance everywhere, for the bound
that holds whatever the ranking is like, the others near the depth at which labelling stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eyespot.curate.annotate.annotation_store import JOIN, AnnotationStore, AuditSample, Candidate, relevant
from eyespot.curate.annotate.audit_bounds import (
    Audit,
    Band,
    DepthDesign,
    Remaining,
    draw_bands,
    even_part,
    hidden_at_most,
    reach,
    remaining,
    too_deep,
)
from eyespot.curate.annotate.candidates import draw_from_gallery, nearest
from eyespot.curate.annotate.team_store import judge_of
from eyespot.search.collection import Collection
from eyespot.types import NothingFound, UsageError, quantity

SIZE = 300  # photos
AT_ONCE = 24  # photos that are handed to somebody


@dataclass(frozen=True)
class Audited:
    """How an audit stands: `done` of `size` photos are labelled, `relevant` of them relevant.

    `left` is there once all are: how many relevant photos nobody has seen, with a 95 % interval, by all photos of the
    audit and the chances with which they were drawn. `most_by_rank` is how many at most (95 %) if
    they lie no deeper than evenly over the logarithm of the rank; None where the audit was not drawn by depth, or found
    photos so deep that it contradicts this. Where several work at it, `people` are their names and `together` is how
    many relevant photos they have found in all. `later` is how many photos came on the list after the draw that
    nobody of them has labelled: the audit says nothing of them.
    """

    size: int
    done: int
    relevant: int
    left: Remaining | None = None
    most_by_rank: int | None = None
    people: tuple[str, ...] = ()
    together: int | None = None
    later: int = 0


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
    Who worked at the last audit with them is of this one, too: what they have labelled is not part of the rest. Raises
    `UsageError` while an audit is under way, also of others (`join` it), for who may choose between audits can choose
    their result, and `NothingFound` if everything is labelled.
    """
    before, last = store.audits(id), store.last_audit(id, who)
    others = [] if last is None else store.auditors(last[0])
    if store.team.seed(id) is not None:
        others += [name for name, judgements in store.said_by(id, store.annotators()).items() if judgements]
    team = list(dict.fromkeys([who, *others]))
    running = under_way(store, id) or standing(store, id, who)
    if running is not None and (left := running.size - running.done) > 0:
        still = f"{quantity(left, 'photo of the audit is', 'photos of the audit are')} still to be labelled"
        raise UsageError(f"{still}; finish it, or join it, before you draw another")
    rng = np.random.default_rng(secrets.randbits(64) if plan.seed is None else plan.seed)
    seen = dict.fromkeys(image for judgements in store.said_by(id, team).values() for image in judgements)
    if store.grows(id) and collection is None:
        raise UsageError("the list of this query grows with the gallery, so its audit is drawn there; open the gallery")
    listed, source = store.candidates(id), collection if store.grows(id) else None
    photos = len(listed) if source is None else int(source.view.live.sum())
    if source is not None:
        rest, drawn = draw_from_gallery(source, seen, plan.size, rng)
    else:
        unseen = [photo for photo in listed if photo.image not in seen]
        places = rng.choice(len(unseen), min(plan.size, len(unseen)), replace=False)
        rest, drawn = len(unseen), [unseen[place] for place in places.tolist()]
    if not drawn:
        raise NothingFound("everything is labelled, so nothing is left to audit")
    even = even_part(plan.size, rest)
    audit = AuditSample(rest, drawn[:even], list(seen))
    if len(drawn) > even:
        depth = next((place for place, photo in enumerate(listed) if photo.image not in seen), len(listed))
        end = reach(depth, plan.size, photos)
        ranked = listed[:end] if source is None else nearest(source, store.query(id).query, end)
        audit = by_depth(ranked, photos, audit, plan, rng)
    store.keep_audit(id, team, audit, before=before, listed=len(listed))
    return audit


def by_depth(
    ranked: Sequence[Candidate], photos: int, even: AuditSample, plan: Plan, rng: np.random.Generator
) -> AuditSample:
    """An audit of an even draw and of further photos near the depth that is labelled, in random order.

    `ranked` is the ranking of all photos as far down as `reach` says; `photos` is the number of all.
    """
    seen, drawn = set(even.seen), {photo.image for photo in even.photos}
    known = {photo.image: photo for photo in [*even.photos, *ranked]}
    unseen = {photo.image: rank for rank, photo in enumerate(ranked, 1) if photo.image not in seen}
    whole, further = max(photos, len(ranked)), plan.size - len(drawn)
    bands = draw_bands(unseen, drawn, further, rng, end=len(ranked), photos=whole, rest=even.rest)
    together = [known[image] for image in sorted(drawn.union(*(band.drawn for band in bands)))]
    shuffled = [together[place] for place in rng.permutation(len(together)).tolist()]
    return even._replace(photos=shuffled, design=DepthDesign(sorted(drawn), bands))


def join(store: AnnotationStore, id: str, who: str) -> AuditSample:
    """Let somebody work at the audit of a query that is under way; `UsageError` if there is none."""
    last = store.last_audit(id)
    if last is None or under_way(store, id) is None:
        raise UsageError(f"no audit of {id!r} is under way; draw one")
    store.change(JOIN, [(last[0], judge_of(who))])
    return last[1]


def hand_out(store: AnnotationStore, id: str, who: str, most: int = AT_ONCE) -> int:
    """Hand somebody the next photos of their audit that nobody else has; gives how many there were."""
    if (last := store.last_audit(id, who)) is None:
        return 0
    number, drawn = last
    labelled = set[str]().union(*store.said_by(id, store.auditors(number)).values())
    return store.hand_out_audit(number, who, [photo.image for photo in drawn.photos], labelled, most)


def share_of(store: AnnotationStore, id: str, who: str) -> list[Candidate] | None:
    """The photos of an audit that somebody was handed, in that order; None if they have no audit."""
    if (last := store.last_audit(id, who)) is None:
        return None
    number, drawn = last
    known = {photo.image: photo for photo in drawn.photos}
    return [known[image] for image in store.audit_share(number, who)]


def under_way(store: AnnotationStore, id: str) -> Audited | None:
    """How the last audit of a query stands, whoever drew it, while it is not finished; else None."""
    found = standing(store, id)
    return None if found is None or found.done >= found.size else found


def standing(store: AnnotationStore, id: str, who: str | None = None) -> Audited | None:
    """How the last audit of a query stands that somebody drew or joined, without a name anybody; None without any."""
    if (last := store.last_audit(id, who)) is None:
        return None
    number, drawn = last
    people = store.auditors(number)
    by_person = store.said_by(id, people)
    each = [{image: relevant(one) for image, one in by_person[person].items()} for person in people]
    # Of those who labelled the same photo the one who came first counts
    labels = {image: label for given in reversed(each) for image, label in given.items()}
    # What came on the list after the draw was perhaps no part of the rest, and nothing found there lessens it
    listed = store.candidates(id)
    rest = {photo.image for photo in [*drawn.photos, *listed[: store.listed_at_draw(number)]]}
    found = audit_result({image: label for image, label in labels.items() if image in rest}, drawn)
    # The rest of a list that grows is the gallery, of which what is listed later was a part
    known = labels.keys() | rest | set(drawn.seen)
    later = 0 if store.grows(id) else sum(photo.image not in known for photo in listed)
    found = replace(found, later=later if store.listed_at_draw(number) else 0)
    if len(people) == 1:
        return found
    return replace(found, people=tuple(people), together=sum(labels.values()))


def audit_result(labels: Mapping[str, bool], drawn: AuditSample) -> Audited:
    """The same from all that somebody has labelled of the photos that were there at the draw.

    Those of the rest that turned up since count as found.
    """
    shown = [labels[photo.image] for photo in drawn.photos if photo.image in labels]
    size, done, found = len(drawn.photos), len(shown), sum(shown)
    if done < size:
        return Audited(size, done, found)
    photos = [photo.image for photo in drawn.photos]
    parts = [Band(1, drawn.rest, drawn.rest, photos)] if drawn.design is None else drawn.design.bands
    audits = [Audit(part.unseen, len(part.drawn), sum(labels[image] for image in part.drawn)) for part in parts]
    # What was labelled besides the audit no longer remains
    before = {*drawn.seen, *photos}
    since = [label for image, label in labels.items() if image not in before]
    left = remaining(audits).without(sum(since), max(drawn.rest - size - len(since), 0))
    return Audited(size, done, found, left, most_by_rank(labels, drawn))


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
