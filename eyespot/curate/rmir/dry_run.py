"""What a set would cost at most, before anything is asked: every photo gets a question of each kind, all are good."""

from __future__ import annotations

from collections.abc import Callable

from eyespot.curate.rmir.forms import KINDS
from eyespot.curate.rmir.pipeline import ORDER, RmirPipeline
from eyespot.pipelines import PlannedStep, RunOptions, plan


def plan_steps(pipe: RmirPipeline, how: RunOptions) -> list[PlannedStep]:
    """What running would do; each step that is not finished with the most records that can come to it."""
    planned = plan(pipe.steps, pipe.work, how)
    most = most_records(pipe, {one.name: one.records for one in planned if one.finished})
    return [
        one
        if one.finished
        else one._replace(records=most[one.name], spent=step.expects.times(max(0, most[one.name] - one.known)))
        for one, step in zip(planned, pipe.steps, strict=True)
    ]


def most_records(pipe: RmirPipeline, counts: dict[str, int | None]) -> dict[str, int]:
    """How many records come to each step at most; `counts` of those that are finished is what comes to the next."""
    candidates, seeds = pipe.settings("candidates"), pipe.settings("seeds")
    photos = int(pipe.world.view(seeds.space).live.sum())
    drawn = photos if seeds.clusters is None else seeds.clusters * seeds.each
    limits = [count for count in (pipe.settings("inputs").count, pipe.limit) if count is not None]
    by_text = candidates.texts if candidates.text_encoder is not None else 0
    each = candidates.images * len(candidates.space_names(pipe.world)) + by_text
    grows: dict[str, Callable[[int], int]] = {
        "seeds": lambda coming: min(coming, drawn),
        "inputs": lambda coming: min((coming, *limits)),
        "questions": lambda coming: coming * len(KINDS),
        "candidates": lambda coming: coming * each,
    }
    came, most = photos, {}
    for name in ORDER:
        most[name], known = came, counts.get(name)
        came = grows.get(name, int)(came) if known is None else known
    return most
