"""Stages 4 to 7: a panel votes, only what it agrees on stays, and reliability tells which queries test.

The panel is any mix of models, one of them several times; each votes true, false or abstain on every candidate. A judge
that gave no vote still counts as a judge. (RMIR, sections 3.1.4 and 3.1.7.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from eyespot.curate.rmir.questions import Vote
from eyespot.llms.fences import filled
from eyespot.pipelines import Context, Drop, Failed, Keep, NoAnswer, Outcome, Record, Records, drops
from eyespot.pipelines.prompts import PromptPicture, ask_model, prompt_of
from eyespot.types import UsageError

TRUE, FALSE, ABSTAIN = "true", "false", "abstain"
SIDE = 512  # pixels of the longer side that a judge sees, unless its model says otherwise: one tile at most providers


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


UNANSWERED = "a judge gives no answer"
DECLINES = "declines: "  # how the reason of a judge begins whose guard would not look


@dataclass(frozen=True)
class PanelJudge:
    """A judge of the panel: who it is, whose votes these are, the model it asks, and which of its draws they are."""

    name: str
    judge: str  # the model's name in the recipe
    model: Mapping[str, Any]
    draw: int


def seats(models: Mapping[str, Any], votes: Mapping[str, int]) -> list[PanelJudge]:
    """The panel: each model sits once, or as often as `votes` says; `UsageError` for an empty one."""
    unknown = next((name for name in votes if name not in models), None)
    if unknown is not None:
        raise UsageError(f"votes are given to {unknown!r}, which is not a judge; there are: {', '.join(models)}")
    found = [
        PanelJudge(name if count == 1 else f"{name}/{draw}", name, model, draw)
        for name, model in models.items()
        for count in [votes.get(name, 1)]
        for draw in range(1, count + 1)
    ]
    if not found:
        raise UsageError('nobody judges; name models for the step judged, as in models = ["strong", "small"]')
    return found


def vote(triplet: Record, context: Context, panel: Sequence[PanelJudge], template: str) -> Outcome:
    """What the panel says of a candidate; it fails if a judge gives no answer, and keeps the answers of the others."""
    votes, silent = [], []
    for seat in panel:
        try:
            words = filled(template, {"question": triplet["question"]}, kind=triplet["kind"])
            shown = [
                PromptPicture(triplet["image"], triplet["path"]),
                PromptPicture(triplet["candidate"], triplet["candidate_path"]),
            ]
            # Two judges may be one model behind two addresses, and an answer is kept under what was asked, not where.
            more = {"judge": seat.judge, "draw": seat.draw, "_task": "judge", "_about": triplet}
            more["_draws"] = draws if len(draws := [one.draw for one in panel if one.judge == seat.judge]) > 1 else []
            reply = ask_model(context, prompt_of({"side": SIDE, **seat.model}, words, Vote, shown, **more), Vote)
            verdict, reason = ABSTAIN, f"{DECLINES}{reply.declined}"  # a guard that will not judge what may be delicate
            if reply.answer is not None:
                verdict, reason = reply.answer.verdict, reply.answer.reasoning
            votes.append({"judge": seat.name, "verdict": verdict, "reasoning": reason})
        except NoAnswer as why:
            silent.append(f"{seat.name}: {why}")
    record = {**triplet, "votes": votes}
    return Failed(record, UNANSWERED, "; ".join(silent)) if silent else Keep(record)


def voted_on(judged: Records) -> Iterator[Record]:
    """Every triplet that has votes: what the step `judged` kept, then those on which a judge failed."""
    assert judged.path is not None
    yield from judged
    yield from (one.record for one in drops(judged.path.parent))


CONTROL = "a control, which cannot answer"
DOUBTED, ABSTAINED, LEFT = "confidence below 1", "most judges abstain", "its photo left the seed set"
FURTHER, NEGATIVE, NO_TARGET = "a further target of its query", "a judged negative", "its query has no target"

Doubt: TypeAlias = Literal["everywhere", "query"]


def settle_votes(triplet: Record, judges: int) -> tuple[bool | None, float]:
    """What the votes of a triplet come to: whether its candidate answers, None where in doubt; and the confidence."""
    return confidence([vote["verdict"] for vote in triplet["votes"]], judges)


@dataclass(frozen=True)
class ConfidentSettings:
    """A triplet stays if the share of judges that say the same is at least `least`.

    `doubt` is where a photo leaves on which the panel is not of one mind: "everywhere" is the paper's rule, "query"
    leaves it out of the ranking of that query only.
    """

    least: float = 1.0
    doubt: Doubt = "everywhere"


def doubtful(judged: Records, found: Records, judges: int, least: float) -> Iterator[Record]:
    """Candidates that are in doubt, and those on which a judge gave no answer."""
    sure = {one["id"]: _is_sure(*settle_votes(one, judges), least) for one in judged}
    return (one for one in found if "control" not in one and not sure.get(one["id"], False))


def confident(judged: Records, context: Context, judges: int, settings: ConfidentSettings) -> Iterator[Outcome]:
    """Triplets of which the panel is sure, and whose photo did not leave the seed set."""
    least, leaving = settings.least, set[str]()
    if settings.doubt == "everywhere":
        leaving = {one["candidate"] for one in doubtful(judged, context.earlier["candidates"], judges, least)}
    for one in judged:
        answers, share = settle_votes(one, judges)
        record = {**one, "answers": answers, "confidence": share}
        if "control" in one:
            yield Drop(record, CONTROL, one["control"])
        elif not _is_sure(answers, share, least):
            yield Drop(record, DOUBTED if share else ABSTAINED, f"confidence {share:.2f}")
        elif one["candidate"] in leaving:
            yield Drop(record, LEFT)
        else:
            yield Keep(record)


def judge_pooled(
    triplet: Record, context: Context, panel: Sequence[PanelJudge], template: str, *, least: float
) -> Outcome:
    """A triplet of the pool once the panel voted on it; in doubt it concerns its query alone, and others stay as is."""
    if "votes" in triplet:
        return Keep(triplet)
    judged = vote(triplet, context, panel, template)
    if not isinstance(judged, Keep):
        return judged
    answers, share = settle_votes(judged.record, len(panel))
    record = {**judged.record, "answers": answers, "confidence": share}
    return Keep(record) if _is_sure(answers, share, least) else Drop(record, DOUBTED if share else ABSTAINED)


def _is_sure(answers: bool | None, share: float, least: float) -> bool:
    return answers is not None and share >= least


# -- triplets to queries ----------------------------------------------------------------------------------------


def gathered(triplets: Records, context: Context) -> Iterator[Outcome]:
    """Queries that have a target, each in the place of its first one; the other triplets become part of it or go."""
    questions = {one["id"]: one for one in context.earlier["checked"]}
    targets, negatives = _by_query(triplets, True), _by_query(triplets, False)
    begun: set[str] = set()
    for one in triplets:
        query = one["query"]
        if not one["answers"]:
            yield Drop(one, NEGATIVE if query in targets else NO_TARGET)
        elif query in begun:
            yield Drop(one, FURTHER)
        else:
            begun.add(query)
            answers = {"targets": targets[query], "negatives": negatives.get(query, [])}
            yield Keep({**questions[query], **answers}, of=one["id"])


def _by_query(triplets: Records, answers: bool) -> Mapping[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in triplets:
        if one["answers"] is answers:
            found.setdefault(one["query"], []).append(one["candidate"])
    return found


TEST, TRAIN = "test", "train"
SHARED, SHARED_TARGET = "its input asks in the test too", "a target of it is one in the test too"
SURPLUS = "more than are wanted"


@dataclass(frozen=True)
class SplitSettings:
    """A query over the `threshold` of reliability tests; the paper gives none: choose by the histogram.

    `votes` "retrieved" takes the list as it was found, with all its votes; "confident" only what stage 5 kept. `pool`:
    the targets of all queries, or all photos of the seed set that nobody doubts. `apart` drops queries for training
    whose input picture also asks in the test, `apart_targets` those of which a target is one in the test.
    """

    threshold: float = 0.5
    votes: Literal["retrieved", "confident"] = "retrieved"
    pool: Literal["targets", "seeds"] = "targets"
    apart: bool = True
    apart_targets: bool = False


@dataclass(frozen=True)
class Lists:
    """What reliability is told by: the space whose hits count, how many of them (K), and how many judges vote."""

    space: str
    depth: int
    judges: int


def split(
    queries: Records, context: Context, settings: SplitSettings, lists: Lists, want: Mapping[str, int] | None = None
) -> Iterator[Outcome]:
    """Each query with its `tsr` and `split`; of a kind no more than `want` names for the split, the first ones."""
    placed: Counter[tuple[str, str]] = Counter()

    def has_room(place: str, kind: str) -> bool:
        placed[place, kind] += 1
        return placed[place, kind] <= (want or {}).get(place, len(queries))

    hits = ranked(counted(context.earlier, settings), lists.space)
    scores = {one["id"]: tail_reliability(hits.get(one["id"], []), lists.judges, lists.depth) for one in queries}
    above = [one for one in queries if scores[one["id"]] > settings.threshold]
    tests = [one for one in above if has_room(TEST, one.get("kind", ""))]
    chosen, inputs = {one["id"] for one in tests}, {one["image"] for one in tests}
    targets = {target for one in tests for target in one.get("targets", ())} if settings.apart_targets else set()
    for one in queries:
        score = scores[one["id"]]
        record = {**one, "tsr": score, "split": TEST if score > settings.threshold else TRAIN}
        if settings.apart and record["split"] == TRAIN and one["image"] in inputs:
            yield Drop(record, SHARED, f"reliability {score:.3f}")
        elif settings.apart_targets and record["split"] == TRAIN and not targets.isdisjoint(one["targets"]):
            yield Drop(record, SHARED_TARGET, f"reliability {score:.3f}")
        elif one["id"] in chosen if record["split"] == TEST else has_room(TRAIN, one.get("kind", "")):
            yield Keep(record)
        else:
            yield Drop(record, SURPLUS)


def counted(earlier: Mapping[str, Records], settings: SplitSettings) -> Iterable[Record]:
    """The triplets whose votes count, those on which a judge failed among them."""
    return earlier["confident"] if settings.votes == "confident" else voted_on(earlier["judged"])


def ranked(triplets: Iterable[Record], space: str) -> dict[str, list[Record]]:
    """The hits of an image index for each query, in their order; queries without any are left out."""
    found: dict[str, list[Record]] = {}
    for one in triplets:
        if space in one["ranks"]:
            found.setdefault(one["query"], []).append(one)
    return {query: sorted(hits, key=lambda one: one["ranks"][space]) for query, hits in found.items()}


def tail_reliability(hits: Sequence[Record], judges: int, depth: int) -> float:
    """The reliability (TSR) that hits in their order tell, by the votes they have, over the first `depth` places."""
    return reliability([negativeness([vote["verdict"] for vote in one["votes"]], judges) for one in hits], depth)
