"""The most that a set can cost, before any request: all wanted pictures are found, and no caption is dropped.

A picture has five captions, and each may be rewritten in every round. Drawn pictures cost nothing.
"""

from __future__ import annotations

from eyespot.curate.recos.captioning import CAPTIONS
from eyespot.curate.recos.drawn import DrawnCounts
from eyespot.curate.recos.expanding import Expanding
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.pipelines import PlannedStep, RunOptions, plan

REQUESTS = {"caption": 1, "discriminate": CAPTIONS, "confuse": 1}  # for each photo of v0


def plan_steps(pipe: RecosPipeline, how: RunOptions) -> list[PlannedStep]:
    """What a run would do; each step that is not finished with the most records that can reach it."""
    declared = {step.step: step for step in pipe.recipe.steps}
    kinds = {step.name: step.step for step in pipe.recipe.steps}
    drawing: DrawnCounts = declared["draw"].fitted(DrawnCounts)
    drawn = {name: count for name, count in drawing.subtasks.items() if count}
    spare = {name: it.spare for name, it in pipe.collecting.wanted().items()}
    wanted = {name: count + spare[name] for name, count in pipe.collecting.counts().items()}
    pictures, photos = sum(wanted.values()), sum(count for name, count in wanted.items() if name not in drawn)
    similar = declared["expand"].fitted(Expanding).similar if "expand" in declared else 0
    added = {
        "draw": sum(drawn.values()),
        "pair": pictures,
        "confuse": pictures * (CAPTIONS - 1),
        "expand": 2 * pictures * similar,  # for the pictures of v0 and of v1
    }
    planned, records = list[PlannedStep](), 0
    for step, known in zip(pipe.steps, plan(pipe.steps, pipe.work, how), strict=True):
        kind = kinds.get(step.name, "")
        requests = max(0, min(REQUESTS.get(kind, 0) * photos, records - known.known))
        most = known._replace(records=records, spent=step.expects.times(requests))
        planned.append(known if known.finished else most)
        if known.finished and known.records is not None:
            records = known.records
        else:
            records = pictures if kind == "collect" else records * (CAPTIONS if kind == "caption" else 1)
            records += added.get(kind, 0)
    return planned
