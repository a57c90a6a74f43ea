"""The steps of RMIR's pipeline as a recipe declares them, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from eyespot.curate._world import PhotoWorld
from eyespot.curate.rmir import candidates, confident, panel, questions, seeds, split
from eyespot.curate.rmir.forms import wording
from eyespot.pipelines import BatchStep, Declared, MapStep, Recipe, SqlStep, Step
from eyespot.pipelines.prompts import PROMPT, expected
from eyespot.types import UsageError

ORDER = ("seeds", "inputs", "questions", "checked", "candidates", "judged", "confident", "queries", "split")


@dataclass(frozen=True)
class RmirWorkers:
    """How many records are asked about at once."""

    workers: int = 8


@dataclass(frozen=True)
class PanelSettings:
    """How many records are judged at once, and how often a judge votes where that is not once."""

    workers: int = 8
    votes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RmirStepSettings:
    """A step without settings."""


@dataclass(frozen=True)
class RmirPipeline:
    """A recipe's steps. `limit` is the most photos that are asked about, for a trial; the seed set stays whole."""

    recipe: Recipe
    work: Path
    gallery: Path | None = None
    limit: int | None = None

    @cached_property
    def world(self) -> PhotoWorld:
        """The photos, encoders and vectors that the steps share."""
        named = self._of["seeds"].inputs.get("gallery")
        if self.gallery is None and named is None:
            raise UsageError('no gallery is named; write inputs = { gallery = "FOLDER" } in the step seeds, or give -g')
        return PhotoWorld(self.gallery or named or Path(), self.work)

    @cached_property
    def steps(self) -> list[Step]:
        """All of them; `UsageError` for a recipe that lacks one, has another, or puts them in another order."""
        return [_MAKERS[name](self, self._of[name]) for name in ORDER]

    def settings(self, name: str) -> Any:
        """The settings of a step."""
        return self._of[name].fitted(_FORMS[name])

    @cached_property
    def seats(self) -> list[panel.PanelJudge]:
        """The panel."""
        return panel.seats(self._of["judged"].models, self.settings("judged").votes)

    @cached_property
    def lists(self) -> split.Lists:
        """What reliability is told by."""
        found: candidates.CandidateSettings = self.settings("candidates")
        return split.Lists(found.space_names(self.world)[0], found.images, len(self.seats))

    @property
    def models(self) -> dict[str, Any]:
        """The models that are asked, by their names."""
        return {name: model for one in self.recipe.steps for name, model in one.models.items()}

    @cached_property
    def _of(self) -> dict[str, Declared]:
        found = [one.step for one in self.recipe.steps]
        if found != list(ORDER):
            text = ", ".join(found) or "none"
            raise UsageError(f"an RMIR recipe has the steps {', '.join(ORDER)}, in this order; this one: {text}")
        renamed = next((one for one in self.recipe.steps if one.name != one.step), None)
        if renamed is not None:
            raise UsageError(f"the step {renamed.step} keeps its name, for others need it; leave out name = …")
        return {one.step: one for one in self.recipe.steps}


# -- one maker a step -------------------------------------------------------------------------------------------


def _seeds(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: seeds.SeedSettings = declared.fitted(seeds.SeedSettings)
    about = "Draws photos from clusters of alike ones."
    bare = replace(declared, inputs={})
    return bare.made(SqlStep(seeds.work(pipe.world, settings)), inputs={"gallery": pipe.world.digest}, about=about)


def _inputs(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: questions.Inputs = declared.fitted(questions.Inputs)
    count = min((one for one in (settings.count, pipe.limit) if one is not None), default=None)
    work = BatchStep(lambda records, context: questions.inputs(records, context, count))
    about = "Draws the photos that questions are asked about."
    return declared.made(work, settings={} if count is None else {"count": count}, about=about)


def _asking(work: Callable[..., Any], prompt: str, about: str, _pipe: RmirPipeline, declared: Declared) -> Step:
    settings = declared.fitted(RmirWorkers)
    if len(declared.models) != 1:
        raise UsageError(f'the step {declared.name} asks one model; write model = "NAME" of one under [models]')
    ((name, model),) = declared.models.items()
    text = wording(declared, prompt)
    each = MapStep(partial(work, model=model, template=text), settings.workers)
    price, texts = expected(model, 1, text), {PROMPT: text}
    # Settings are left out: how many are asked at once changes nothing.
    return declared.made(each, prompts=texts, models={name: model}, settings={}, about=about, expects=price)


def _candidates(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: candidates.CandidateSettings = declared.fitted(candidates.CandidateSettings)
    about = "Finds photos that may answer, by what they look like and by what is said of them; records become triplets."
    named = {**declared.settings, "spaces": settings.space_names(pipe.world)}
    work = BatchStep(candidates.work(pipe.world, settings))
    return declared.made(work, settings=named, inputs={"gallery": pipe.world.digest}, needs=("seeds",), about=about)


def _judged(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: PanelSettings = declared.fitted(PanelSettings)
    text = wording(declared, "judge")
    each = MapStep(partial(panel.vote, panel=pipe.seats, template=text), settings.workers)
    price = expected({}, 0, "")
    for seat in pipe.seats:
        price = price.plus(expected(seat.model, 2, text))
    votes, about = {"votes": settings.votes} if settings.votes else {}, "A panel votes on each triplet."
    return declared.made(each, 2, prompts={PROMPT: text}, settings=votes, about=about, expects=price)


def _confident(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: confident.ConfidentSettings = declared.fitted(confident.ConfidentSettings)
    judges = len(pipe.seats)
    work = BatchStep(lambda records, context: confident.confident(records, context, judges, settings))
    rest = ", and none whose photo is in doubt anywhere." if settings.doubt == "everywhere" else "."
    about = f"Keeps triplets on which the panel is of one mind{rest}"
    return declared.made(work, settings={**declared.settings, "judges": judges}, needs=("candidates",), about=about)


def _queries(pipe: RmirPipeline, declared: Declared) -> Step:
    declared.fitted(RmirStepSettings)
    about = "Gathers triplets into queries; those without a target go."
    return declared.made(BatchStep(confident.gathered), needs=("checked",), about=about)


def _split(pipe: RmirPipeline, declared: Declared) -> Step:
    settings: split.SplitSettings = declared.fitted(split.SplitSettings)
    work = BatchStep(lambda records, context: split.split(records, context, settings, pipe.lists))
    lists = {**declared.settings, "space": pipe.lists.space, "depth": pipe.lists.depth, "judges": pipe.lists.judges}
    about = "Tells by the reliability of its judged list which query tests; the others train."
    needs = {"needs": ("judged", "confident"), "needs_drops": ("judged",)}
    return declared.made(work, 2, settings=lists, about=about, **needs)


_MAKERS: dict[str, Callable[[RmirPipeline, Declared], Step]] = {
    "seeds": _seeds,
    "inputs": _inputs,
    "questions": partial(
        _asking,
        questions.propose,
        "question",
        "A model asks a question of each of three kinds about each photo, or abstains.",
    ),
    "checked": partial(
        _asking, questions.check, "check", "A model looks again and throws out questions that break one of four rules."
    ),
    "candidates": _candidates,
    "judged": _judged,
    "confident": _confident,
    "queries": _queries,
    "split": _split,
}
_FORMS: dict[str, Any] = {
    "seeds": seeds.SeedSettings,
    "inputs": questions.Inputs,
    "questions": RmirWorkers,
    "checked": RmirWorkers,
    "candidates": candidates.CandidateSettings,
    "judged": PanelSettings,
    "confident": confident.ConfidentSettings,
    "queries": RmirStepSettings,
    "split": split.SplitSettings,
}
