"""Checks that open the card of an RMIR set: its size, shortcuts, leaks, its judges, and what a person found.

Where one half of a query alone finds the targets about as well as both together, nothing has to be reasoned.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyespot.curate._world import PhotoWorld
from eyespot.curate.rmir.audit import (
    ACCEPTED,
    ALL,
    LAST,
    REFUSED,
    VERDICTS,
    AuditAgreement,
    agreed,
    compared,
    read_panel,
    said_in,
)
from eyespot.curate.rmir.files import FinishedSteps
from eyespot.curate.rmir.panel import ABSTAIN, TEST, TRAIN, TRUE, settle_votes
from eyespot.gallery.groups.near_duplicates import Near, first_of_family, near_duplicates
from eyespot.pipelines import Record
from eyespot.pipelines.data_card import CardTable, Level, QualityCheck, level_of, licence_check, wilson
from eyespot.pipelines.data_card.content import LEVELS
from eyespot.pipelines.human_review import Queue
from eyespot.runs.agreement import Ratings, krippendorff_alpha
from eyespot.search.embedding import embed
from eyespot.types import Composer, Mask, Query, Vectors, quantity

CUTOFFS = (1, 10, 20, 50)
K = 20  # the first places that Recall@20 looks at
LARGE = 10  # a pool of this many times K leaves a random order a Recall@K of a tenth
RANDOM = "a random order"
DESCRIBED = "the target's description"  # an upper end: what can be found once everything has been reasoned


@dataclass(frozen=True)
class Shortcut:
    """What of the targets one way of asking finds: Recall@k of each query, by k."""

    way: str
    by_query: dict[int, list[float]]


def shortcuts(made: FinishedSteps, queries: Sequence[Record]) -> list[Shortcut]:
    """Each way of asking, and a random order, over the pool; the input and what is in doubt are never ranked."""
    world, space = made.pipe.world, made.pipe.lists.space
    rows = world.rows(space)
    pool: Mask = np.zeros(int(world.view(space).starts[-1]), bool)
    pool[[rows[id] for id in made.pool if id in rows]] = True
    subset = [one for one in queries if one["image"] in rows]
    if not subset or not pool.any():
        return []
    found = []
    left = {
        one["id"]: {rows[id] for id in (one["image"], *made.unknown.get(one["id"], [])) if id in rows} for one in subset
    }
    depth = min(max(CUTOFFS) + max(map(len, left.values())), int(pool.sum()))
    for way, vectors in _ways(world, space, subset, rows).items():
        hits = world.collection(space).index.search(vectors, depth, pool).rows  # (queries, depth)
        found.append(Shortcut(way, _recalls(hits, subset, rows, left)))
    # In a random order each photo is among the first k of n with probability k / n
    ranked = [int(pool.sum()) - int(pool[list(left[one["id"]])].sum()) for one in subset]
    return [*found, Shortcut(RANDOM, {k: [min(1.0, k / max(1, count)) for count in ranked] for k in CUTOFFS})]


def _ways(world: PhotoWorld, space: str, queries: Sequence[Record], rows: Mapping[str, int]) -> dict[str, Vectors]:
    """The queries' vectors, (queries, dim), by what is asked with; both as in a search by both."""
    words = world.texts([one["question"] for one in queries], space)
    pictures = world.vectors([rows[one["image"]] for one in queries], space)
    both: Vectors
    encoder = world.collection(space).encoder
    if isinstance(encoder, Composer):
        # Picture and question as one input, by an encoder that reads them so
        facts = world.view(space).facts([rows[one["image"]] for one in queries])
        pairs = zip(facts, queries, strict=True)
        composed = [Query.composed(Path(str(photo["path"])), one["question"]) for photo, one in pairs]
        both = embed(composed, encoder)
    else:
        both = words + pictures
        both /= np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
    targets = world.texts([one["target"] for one in queries], space)
    return {"question alone": words, "picture alone": pictures, "both": both, DESCRIBED: targets}


def _recalls(
    hits: NDArray[np.int64], queries: Sequence[Record], rows: Mapping[str, int], left: Mapping[str, set[int]]
) -> dict[int, list[float]]:
    shares: dict[int, list[float]] = {k: [] for k in CUTOFFS}
    for one, ranked in zip(queries, hits.tolist(), strict=True):
        others = [row for row in ranked if row not in left[one["id"]]]
        targets = {rows[id] for id in one["targets"] if id in rows}
        for k in CUTOFFS:
            shares[k].append(len(targets.intersection(others[:k])) / max(1, len(targets)))
    return shares


def leaks(made: FinishedSteps) -> list[tuple[str, int, int]]:
    """What is shared, by how many, of how many; also where nothing was found."""
    every, test, train = made.queries, made.in_split(TEST), made.in_split(TRAIN)
    family, pool = families(made), set(made.pool)
    inputs = {family[one["image"]] for one in train}
    questions = {one["question"].casefold() for one in train}
    in_pool = sum(one["image"] in pool for one in every)
    copies = sum(any(family[id] == family[one["image"]] for id in one["targets"]) for one in every)
    repeated = len(made.pool) - len({family[id] for id in made.pool})
    same_input = sum(family[one["image"]] in inputs for one in test)
    same_question = sum(one["question"].casefold() in questions for one in test)
    return [
        ("queries whose own input is in the pool (left out when they are scored)", in_pool, len(every)),
        ("queries of which a target is a near-duplicate of the input", copies, len(every)),
        ("photos of the pool that are near-duplicates of an earlier one", repeated, len(made.pool)),
        ("test queries whose input, or a near-duplicate, asks in training", same_input, len(test)),
        ("test queries of which a target is one in training", shared_targets(made), len(test)),
        ("test queries whose question is one in training", same_question, len(test)),
    ]


def shared_targets(made: FinishedSteps) -> int:
    """How many test queries have a target that is also one in training."""
    targets = {id for one in made.in_split(TRAIN) for id in one["targets"]}
    return sum(not targets.isdisjoint(one["targets"]) for one in made.in_split(TEST))


def families(made: FinishedSteps) -> dict[str, int]:
    """A number for each photo of the set, the same for near-duplicates by perceptual hash or by cosine."""
    ids = sorted({*made.pool, *(one["image"] for one in made.queries)})
    world, space = made.pipe.world, made.pipe.lists.space
    hashes = world.hashes([(id, made.seeds[id]["path"]) for id in ids])
    rows = world.rows(space)
    pairs = near_duplicates(hashes, world.vectors([rows[id] for id in ids], space), Near())
    return dict(zip(ids, np.asarray(first_of_family(pairs, len(ids))).tolist(), strict=True))


Z = 1.959964  # of a 95% interval
JUDGES = 2.0, 3.0  # from how many of them that differ a panel is amber, and green
ALPHA = 0.4, 0.667  # Krippendorff's own limit for tentative conclusions is 0.667
AUDIT = "A person's audit"
PRECISION = 0.75  # of targets: the lower end of the interval of the paper's 81% of 200
MISSED = 0.3  # the greatest share of all answers among the judged photos that may be missed


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95% interval over queries."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """By the normal approximation; of fewer than two values nothing is known."""
        if len(values) < 2:
            return cls(float(np.mean(values)) if values else math.nan, -math.inf, math.inf)
        mean, half = float(np.mean(values)), Z * float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half)


def quality_checks(made: FinishedSteps, found: Sequence[Shortcut], audit: Path | None) -> Iterator[QualityCheck]:
    """All of them; `found` are the shortcuts, `audit` is the folder of a person's decisions."""
    times = len(made.pool) / K
    text = f"{quantity(len(made.pool), 'photo')}, {times:.1f} times K = {K} (at least {LARGE})."
    yield QualityCheck("Size of the pool", level_of(times, LARGE * 0.4, LARGE), text)
    counts = {kind: sum(one["kind"] == kind for one in made.in_split(TEST)) for kind in made.kinds}
    text = ", ".join(f"{kind} {count:,}" for kind, count in counts.items())
    yield QualityCheck("Test queries of each kind", level_of(min(counts.values()), 30, 100), f"{text} (at least 100).")
    yield shortcut_check(found)
    shared, tests = shared_targets(made), len(made.in_split(TEST))
    text = f"{shared:,} of {tests:,} test queries have a target that is one in training"
    text += "; apart_targets = true of the step split leaves such training queries out." if shared else "."
    if tests and made.in_split(TRAIN):  # without either nothing can be shared, and nothing is shown
        yield QualityCheck("Training answers", "amber" if shared else "green", text)
    yield unjudged_check(made)
    yield from panel_checks(made.triplets, made.seats, made.controls)
    yield control_check(made.controls, made.triplets, len(made.seats))
    yield audit_check(made, audit)
    yield licence_check([made.attributions.get(id, {}).get("licence") for id in made.pool])


def unjudged_check(made: FinishedSteps) -> QualityCheck:
    """How many photos near the targets were not judged; beside judged ones, how many answers they hide at most."""
    missing, pooled = len(made.unjudged), len(made.pooled)
    share = missing / max(1, len(made.nearest))
    text = f"{missing:,} of {quantity(len(made.nearest), 'photo')} of the pool nearest to a target were not judged"
    if missing and pooled:  # most of them are no answers; those judged from the same lists say how many may be
        _, high = wilson(sum(one["answers"] for one in made.sure if "pooled" in one), pooled)
        hidden, known = missing * high, sum(len(one["targets"]) for one in made.queries)
        share = hidden / (hidden + known)
        text += f"; of {pooled:,} judged from these lists at most {high:.1%} answer: at most {hidden:.0f} answers are"
        text += f" missing beside {known:,} targets"
    return QualityCheck("Unjudged photos", level_of(1 - share, 0.8, 0.99), f"{text}.")


# -- shortcuts ------------------------------------------------------------------------------------------------------


def shortcut_check(shortcuts: Sequence[Shortcut]) -> QualityCheck:
    """Whether half of a query finds more targets than a random order, and as many as both halves.

    Where both halves find no more than a random order, the target's description tells a hard set, in which it finds
    more, from one that nobody can answer with this encoder.
    """
    found = {one.way: one.by_query[K] for one in shortcuts}
    if RANDOM not in found or len(found[RANDOM]) < 2:  # of one query no interval is known
        return QualityCheck("Shortcuts", "red", "There are too few queries to try them on.")
    baseline, both, parts = found.pop(RANDOM), found.pop("both"), list[str]()
    described = Estimate.of(np.subtract(found.pop(DESCRIBED, baseline), baseline).tolist())
    level: Level = "green"
    for way, values in found.items():
        over = Estimate.of(np.subtract(values, baseline).tolist())
        short = Estimate.of(np.subtract(both, values).tolist())
        parts.append(f"{way} {100 * over.mean:+.1f} points ({100 * over.low:+.1f} to {100 * over.high:+.1f})")
        if over.low > 0:
            level = "red" if short.low <= 0 else "amber" if level == "green" else level
    parts.append(f"{DESCRIBED} {100 * described.mean:+.1f} points")
    text = f"R@{K} beside that of a random order, {np.mean(baseline):.1%}: {', '.join(parts)}."
    if np.mean(baseline) > 0.5:
        level = "red"
        text += " The pool is so small that a random order finds most: nothing follows from this."
    elif Estimate.of(np.subtract(both, baseline).tolist()).low <= 0:
        if described.low > 0:
            text += " Both together find no more than that, and the description does: the set is hard."
        else:
            text += " Neither both together nor the description find more: this encoder cannot answer the set."
            level = "red" if level == "red" else "amber"
    return QualityCheck("Shortcuts", level, text)


# -- judges ---------------------------------------------------------------------------------------------------------


def panel_checks(
    triplets: Sequence[Record], seats: Sequence[str], controls: Sequence[Record] = ()
) -> Iterator[QualityCheck]:
    """How many judges there are in effect, and whether they agree beyond chance."""
    votes, on_controls = (
        [{vote["judge"]: vote["verdict"] for vote in one["votes"]} for one in some] for some in (triplets, controls)
    )
    count = effective_judges(votes, seats, on_controls)
    text = f"{count:.1f} of {len(seats)} differ in what they doubt and in errors on controls (at least {JUDGES[1]:g})."
    yield QualityCheck("Effective number of judges", level_of(round(count, 1), *JUDGES), text)
    ratings = Ratings.of((one["id"], vote["judge"], vote["verdict"]) for one in triplets for vote in one["votes"])
    alpha = krippendorff_alpha(ratings.without(ABSTAIN)) if len(seats) > 1 and triplets else None
    if alpha is None or math.isnan(alpha.value):
        yield QualityCheck("Agreement of the judges", "red", "It cannot be computed from these votes.")
        return
    text = f"Krippendorff's alpha {alpha.value:.2f} ({alpha.low:.2f} to {alpha.high:.2f}); 0 is chance."
    yield QualityCheck("Agreement of the judges", level_of(alpha.low, *ALPHA), text)


def effective_judges(
    votes: Sequence[Mapping[str, str]], seats: Sequence[str], controls: Sequence[Mapping[str, str]] = ()
) -> float:
    """Judges that differ: Σ 1 / Σⱼ Zᵢⱼ, with Z the correlation of their dissent from the majority, at least 0.

    Two judges of the same dissent count as one (Leinster and Cobbold 2012, order 0); only triplets count on which all
    answered and not all said the same. Judges that accept the same of the `controls`, none of which answers, are alike
    in their errors: Z is the greater of both.
    """
    rows = []
    for given in votes:
        verdicts = [given[seat] for seat in seats if seat in given]
        if len(verdicts) == len(seats) and len(set(verdicts)) > 1:
            usual = max(sorted(set(verdicts)), key=verdicts.count)
            rows.append([verdict != usual for verdict in verdicts])
    dissent = np.array(rows, bool).reshape(len(rows), len(seats)).T  # (judges, triplets)
    errors = np.array([[given.get(seat) == TRUE for given in controls] for seat in seats], bool)  # (judges, controls)
    alike = np.eye(len(seats))
    for i, j in combinations(range(len(seats)), 2):
        common = _likeness(errors[i], errors[j]) if errors[i].any() else 0.0
        alike[i, j] = alike[j, i] = max(_likeness(dissent[i], dissent[j]), common)
    return float((1 / alike.sum(axis=1)).sum())


def _likeness(one: Mask, other: Mask) -> float:
    """The correlation of two judges, each (cases,), at least 0; 1 where they are the same."""
    if (one == other).all():
        return 1.0
    return max(0.0, float(np.corrcoef(one, other)[0, 1])) if one.std() and other.std() else 0.0


def control_check(controls: Sequence[Record], triplets: Sequence[Record], judges: int) -> QualityCheck:
    """Which share of the targets is wrong at least, if judges err on candidates as often as on controls.

    Of n judged candidates a panel that accepts a share f of what cannot answer accepts f · (n - right ones) wrongly:
    of a targets about f · (n - a) / (1 - f). Candidates are harder than controls, so it may be more.
    """
    what = "Control triplets"
    cases = [one for one in controls if len(one["votes"]) == judges]
    wrong = sum(settle_votes(one, judges) == (True, 1.0) for one in cases)
    accepted = sum(settle_votes(one, judges) == (True, 1.0) for one in triplets)
    if not cases or not accepted:
        return QualityCheck(what, "amber", "There are none: nobody knows what all judges accept that cannot answer.")
    low, high = wilson(wrong, len(cases))
    rest = (len(triplets) - accepted) / accepted
    share, least, most = (min(1.0, f * rest / max(1 - f, 1e-9)) for f in (wrong / len(cases), low, high))
    level: Level = "red" if least > 1 - PRECISION else "green" if most <= 1 - PRECISION else "amber"
    text = (
        f"All judges accept {wrong:,} of {len(cases):,} photos that cannot answer ({low:.1%} to {high:.1%}); if they"
        f" err as often on others, {share:.0%} of the targets are wrong ({least:.0%} to {most:.0%})."
    )
    return QualityCheck(what, level, text)


# -- a person -------------------------------------------------------------------------------------------------------


def audit_check(made: FinishedSteps, audit: Path | None) -> QualityCheck:
    """How many targets are right by a person's audit, and which share of the answers the panel missed."""
    nobody = "No person has read any of its judgements; eyespot build review reads the audit."
    if audit is None or not (audit / VERDICTS).exists():
        return QualityCheck(AUDIT, "red", nobody)
    test = {query["id"] for query in made.in_split(TEST)}
    sizes = Counter(bool(triplet["answers"]) for triplet in made.sure if triplet["query"] in test)
    counts, found = Queue(audit / VERDICTS).counts(), agreed(read_panel(audit), said_in(audit / VERDICTS))
    read = counts["cases"] - counts["open"]
    few = f"A person has read {read:,} of {counts['cases']:,} cases and no target; how many are right is unknown."
    return validity_check(found, sizes, counts) or QualityCheck(AUDIT, "red", few if read else nobody)


def validity_check(
    shares: Iterable[AuditAgreement], sizes: Mapping[bool, int], counts: Mapping[str, int]
) -> QualityCheck | None:
    """The same from the shares that are right, the judgements in all, by verdict, and the `counts` of the queue.

    None while nobody decided on a judgement that was accepted.
    """
    found = {one.verdict: one for one in shares if one.kind == ALL}
    if ACCEPTED not in found:
        return None
    one = found[ACCEPTED]
    wrong = f"about {one.cases - one.agreed} of {one.cases} targets are wrong"
    texts = [f"{wrong} ({1 - one.high:.0%} to {1 - one.low:.0%})"]
    levels: list[Level] = ["green" if one.low >= PRECISION else "red" if one.high < PRECISION else "amber"]
    if REFUSED in found:
        value, low, high = missed_share(one, found[REFUSED], sizes[True], sizes[False])
        texts.append(f"about {value:.0%} of the answers among judged photos are missed ({low:.0%} to {high:.0%})")
        levels.append("red" if low > MISSED else "amber" if value > MISSED else "green")
    if 2 * counts["open"] > counts["cases"] or REFUSED not in found:
        levels.append("amber")
    text = f"{'; '.join(texts)}; {counts['open']:,} of {quantity(counts['cases'], 'case')} are open."
    return QualityCheck(AUDIT, max(levels, key=LEVELS.index), text[:1].upper() + text[1:])


def missed_share(right: AuditAgreement, refused: AuditAgreement, accepted: int, others: int) -> tuple[float, ...]:
    """The share of answers that were refused, and its interval; of `accepted` and `others` the audit is a sample.

    Each stratum counts by its size (Cochran, Sampling Techniques, section 5.3). The interval is that of the refused
    answers, the larger source of doubt.
    """
    targets = accepted * right.share
    misses = [others * share for share in (1 - refused.share, 1 - refused.high, 1 - refused.low)]
    return tuple(missed / (missed + targets) if missed + targets else 0.0 for missed in misses)


def audit_tables(audit: Path | None) -> Iterator[CardTable]:
    """A person's decisions beside the panel's (appendix B.1 of the paper), and the test of reliability (B.2)."""
    if audit is None or not (audit / VERDICTS).exists() or not (audit / LAST).exists():
        return
    panel = read_panel(audit)
    rows = [
        [one.verdict, one.kind, one.agreed, one.cases, f"{one.share:.1%}", f"{one.low:.1%} to {one.high:.1%}"]
        for one in agreed(panel, said_in(audit / VERDICTS))
    ]
    note = (
        "Wilson's interval, 95%. The share of what was accepted is the precision of targets; the rest of what was "
        "refused are answers that were missed. The paper, both together: 81% of 200."
    )
    columns = ["verdict of the panel", "kind", "right", "cases", "share", "interval"]
    yield CardTable("A person's audit: is the panel right?", columns, rows, note)
    people = Queue(audit / VERDICTS).agreement()
    if people["cases"]:
        values = ["–" if people[name] is None else f"{people[name]:.3f}" for name in ("kappa", "alpha")]
        columns = ["people", "cases that several decided", "still disputed", "Cohen's kappa", "Krippendorff's alpha"]
        counts = [len(people["people"]), people["cases"], people["disputed"], *values]
        yield CardTable("A person's audit: how far do people agree?", columns, [counts], people["why"])
    groups = compared(panel, said_in(audit / LAST))
    if groups is not None:
        values = [f"{number:.3g}" for number in (groups.difference, groups.t, groups.p, groups.effect)]
        note = (
            "Reliability from the hits before the last one, mean where a person rejected the last hit less mean where "
            "they accepted it; Welch's t-test. The paper: 0.27, p = 2.4e-11."
        )
        columns = ["rejected", "accepted", "difference", "t", "p", "Cohen's d"]
        title = "A person's audit: is reliability lower where a target comes last?"
        yield CardTable(title, columns, [[groups.rejected, groups.accepted, *values]], note)
