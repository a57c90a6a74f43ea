"""Stage 4: a panel votes on every candidate, true, false or abstain; any mix of models, one of them several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eyespot.curate.rmir.forms import Vote
from eyespot.pipelines import Context, Failed, Keep, NoAnswer, Outcome, Record, Records, drops
from eyespot.pipelines.prompts import PromptPicture, ask_model, filled, prompt_of
from eyespot.types import UsageError

UNANSWERED = "a judge gives no answer"
DECLINES = "declines: "  # how the reason of a judge begins whose guard would not look


class PanelJudge(NamedTuple):
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
            words = filled(template, kind=triplet["kind"], question=triplet["question"])
            shown = [
                PromptPicture(triplet["image"], triplet["path"]),
                PromptPicture(triplet["candidate"], triplet["candidate_path"]),
            ]
            # Two judges may be one model behind two addresses, and an answer is kept under what was asked, not where.
            more = {"judge": seat.judge, "draw": seat.draw, "_task": "judge", "_about": triplet}
            reply = ask_model(context, prompt_of(seat.model, words, Vote, shown, **more), Vote)
            if (
                reply.answer is None
            ):  # its guard does not want to look at what may be delicate, which is what to abstain means
                texts = {"judge": seat.name, "verdict": "abstain", "reasoning": f"{DECLINES}{reply.declined}"}
            else:
                texts = {"judge": seat.name, "verdict": reply.answer.verdict, "reasoning": reply.answer.reasoning}
            votes.append(texts)
        except NoAnswer as why:
            silent.append(f"{seat.name}: {why}")
    record = {**triplet, "votes": votes}
    return Failed(record, UNANSWERED, "; ".join(silent)) if silent else Keep(record)


def voted_on(judged: Records) -> Iterator[Record]:
    """Every triplet that has votes: what the step `judged` kept, then those on which a judge failed."""
    assert judged.path is not None
    yield from judged
    yield from (one.record for one in drops(judged.path.parent))
