"""What a set would cost at most, before anything is asked: all wanted pictures are found, and no caption falls.

A picture has five captions, and each may be written again in every round. Drawn pictures ask no model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eyespot.curate.recos.captioning import CAPTIONS
from eyespot.curate.recos.drawn import DrawnCounts
from eyespot.curate.recos.expanding import Expanding
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.recos.subtasks import subtask
from eyespot.pipelines import PlannedStep, RunOptions, plan


class PictureEstimate(NamedTuple):
    """Pictures that are drawn, those of v0, the photos among these, and how many each brings along in v2."""

    drawn: int
    pictures: int
    photos: int
    similar: int


def foretold(pipe: RecosPipeline, how: RunOptions) -> list[PlannedStep]:
    """What running would do; each step that is not finished with the most records that can come to it."""
    kinds, of = {one.name: one.step for one in pipe.recipe.steps}, wanted(pipe)
    found, came = list[PlannedStep](), 0
    for step, one in zip(pipe.steps, plan(pipe.steps, pipe.work, how), strict=True):
        kind = kinds.get(step.name, "")
        if one.finished:
            most = one
        else:
            most_kind, most_came = (kind, came)
            asked = min(_ASKS.get(most_kind, 0) * of.photos, most_came - one.known)
            most = one._replace(records=most_came, spent=step.expects.times(max(0, asked)))
        found.append(most)
        came = one.records if one.finished and one.records is not None else _GROWS.get(kind, _stays)(came, of)
    return found


def wanted(pipe: RecosPipeline) -> PictureEstimate:
    """The numbers that a recipe names."""
    declared = {one.step: one for one in pipe.recipe.steps}
    drawing: DrawnCounts = declared["draw"].fitted(DrawnCounts)
    drawn = {name: count for name, count in drawing.subtasks.items() if count}
    counts = {name: one.count for name, one in pipe.collecting.wanted().items()}
    pictures = {name: subtask(name).count if count is None else count for name, count in counts.items()}
    photos = sum(count for name, count in pictures.items() if name not in drawn)
    similar = declared["expand"].fitted(Expanding).similar if "expand" in declared else 0
    return PictureEstimate(sum(drawn.values()), sum(pictures.values()), photos, similar)


def _stays(came: int, _of: PictureEstimate) -> int:
    return came


_GROWS: Mapping[str, Callable[[int, PictureEstimate], int]] = {
    "draw": lambda _came, of: of.drawn,
    "collect": lambda _came, of: of.pictures,
    "caption": lambda came, _of: came * CAPTIONS,
    "pair": lambda came, of: came + of.pictures,
    "confuse": lambda came, of: came + of.pictures * (CAPTIONS - 1),
    "expand": lambda came, of: came + 2 * of.pictures * of.similar,  # pictures of v0 and of v1
}
_ASKS = {"caption": 1, "discriminate": CAPTIONS, "confuse": 1}  # records that ask a model, of each photo of v0
