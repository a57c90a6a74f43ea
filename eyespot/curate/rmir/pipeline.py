"""The steps of RMIR's pipeline as a recipe declares them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, ClassVar

from eyespot.curate._world import NoSettings, PhotoWorld, SetPipeline, one_model
from eyespot.curate.rmir import candidates, panel, questions
from eyespot.curate.rmir.demonstration import NAME, teacher
from eyespot.curate.rmir.questions import listed, shipped_prompt
from eyespot.pipelines import BatchStep, Client, Declared, MapStep, SqlStep, Step
from eyespot.pipelines.prompts import PROMPT, expected, template
from eyespot.storage.text_files import json_of
from eyespot.types import Spent, UsageError


@dataclass(frozen=True)
class PanelSettings:
    """How many records are judged at once, and how often a judge votes where that is not once."""

    workers: int = 8
    votes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class RmirPipeline(SetPipeline):
    """A recipe's steps, whose work lies under `out`; `gallery` goes before the recipe's.

    `limit` is the most photos that are asked about, for a trial; the seed set stays whole.
    """

    clients: ClassVar[Mapping[str, Client]] = {NAME: teacher}

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
        steps = []
        for name in self._of:
            make = STEPS[name][1]
            step = make(self, self._of[name], self.settings(name))
            steps.append(step if step.about else replace(step, about=str(make.__doc__)))
            steps += [self._judging_pool(step)] if name == POOLED else []
        return steps

    def _judging_pool(self, pooled: Step) -> Step:
        """The step after `pooled`: the same panel, asked the same way, votes on what is new."""
        least, judged = self.settings("confident").least, self._of["judged"]
        text = template(judged, shipped_prompt("judged"))
        work = partial(panel.judge_pooled, panel=self.seats, template=text, least=least)
        settings = {"votes": self.settings("judged").votes, "least": least}
        parts: dict[str, Any] = {"prompts": {PROMPT: text}, "models": judged.models, "settings": settings}
        parts["expects"] = self.panel_price(text)
        about = "The panel votes on photos of the pool that no index found for their query."
        return Step(f"{POOLED}-judged", MapStep(work, self.settings(POOLED).workers), about=about, **parts)

    def panel_price(self, text: str) -> Spent:
        """What the votes of the panel on a triplet are likely to cost."""
        return reduce(Spent.plus, (expected(seat.model, 2, text) for seat in self.seats), Spent())

    def count(self, how: questions.Inputs) -> int | None:
        """How many photos are asked about: the last round of an earlier run counts where queries are wanted."""
        count = how.count
        if how.want:
            asked = int(json_of(self.work / ASKED)) if (self.work / ASKED).exists() else 0
            count = max(how.count or FIRST * max(how.want.values()), asked)
        return min((one for one in (count, self.limit) if one is not None), default=None)

    def settings(self, name: str) -> Any:
        """The settings of a step."""
        return self._of[name].fitted(STEPS[name][0])

    @cached_property
    def seats(self) -> list[panel.PanelJudge]:
        """The panel."""
        return panel.seats(self._of["judged"].models, self.settings("judged").votes)

    @cached_property
    def lists(self) -> panel.Lists:
        """What reliability is told by."""
        found: candidates.CandidateSettings = self.settings("candidates")
        return panel.Lists(found.space_names(self.world)[0], found.images, len(self.seats))

    @cached_property
    def _of(self) -> dict[str, Declared]:
        found = [one.step for one in self.recipe.steps]
        if found not in (list(STEPS), [name for name in STEPS if name != POOLED]):
            text = ", ".join(found) or "none"
            raise UsageError(f"an RMIR recipe has the steps {', '.join(STEPS)}, in this order; this one: {text}")
        renamed = next((one for one in self.recipe.steps if one.name != one.step), None)
        if renamed is not None:
            raise UsageError(f"the step {renamed.step} keeps its name, for others need it; leave out name = …")
        return {one.step: one for one in self.recipe.steps}


# -- one maker a step, whose docstring is what the card says of it ----------------------------------------------------


def seeds_step(pipe: RmirPipeline, declared: Declared, settings: candidates.SeedSettings) -> Step:
    """Draws photos from clusters of alike ones."""
    bare, photos = replace(declared, inputs={}), int(pipe.world.view(settings.space).live.sum())
    drawn = photos if settings.clusters is None else settings.clusters * settings.each
    return bare.made(
        SqlStep(lambda _records, folder, context: candidates.draw(pipe.world, settings, folder, context)),
        inputs={"gallery": pipe.world.digest},
        grows=lambda _count: min(photos, drawn),
    )


def inputs_step(pipe: RmirPipeline, declared: Declared, settings: questions.Inputs) -> Step:
    """Draws the photos that questions are asked about."""
    count = pipe.count(settings)
    work = BatchStep(lambda records, context: questions.inputs(records, context, count))
    named = {} if count is None else {"count": count}
    return declared.made(work, settings=named, grows=lambda came: min(came, came if count is None else count))


def questions_step(_pipe: RmirPipeline, declared: Declared, settings: questions.Asking) -> Step:
    """A model asks a question of each kind about each photo, or abstains."""
    model, text, fields = one_model(declared, shipped_prompt("questions"), kinds=listed(settings.kinds))
    work = partial(questions.propose, model=model, template=text, how=settings)
    return declared.made(MapStep(work, settings.workers), grows=lambda came: came * len(settings.kinds), **fields)


def checked_step(_pipe: RmirPipeline, declared: Declared, settings: questions.Checking) -> Step:
    """A model looks again and throws out questions that break a rule."""
    model, text, fields = one_model(declared, shipped_prompt("checked"), rules=listed(settings.rules))
    work = partial(questions.check, model=model, template=text, how=settings)
    return declared.made(MapStep(work, settings.workers), **fields)


def candidates_step(pipe: RmirPipeline, declared: Declared, settings: candidates.CandidateSettings) -> Step:
    """Finds photos that may answer, by what they look like and by what is said of them; records become triplets."""
    named = {**declared.settings, "spaces": settings.space_names(pipe.world)}
    work = BatchStep(lambda records, context: candidates.retrieve(pipe.world, settings, records, context))
    each = settings.most(len(named["spaces"]))
    more: dict[str, Any] = {"needs": ("seeds",), "grows": lambda came: came * each}
    return declared.made(work, 2, settings=named, inputs={"gallery": pipe.world.digest}, **more)


def judged_step(pipe: RmirPipeline, declared: Declared, settings: PanelSettings) -> Step:
    """A panel votes on each triplet."""
    text = template(declared, shipped_prompt("judged"))
    each = MapStep(partial(panel.vote, panel=pipe.seats, template=text), settings.workers)
    votes = {"votes": settings.votes} if settings.votes else {}
    return declared.made(each, 2, prompts={PROMPT: text}, settings=votes, expects=pipe.panel_price(text))


def confident_step(pipe: RmirPipeline, declared: Declared, settings: panel.ConfidentSettings) -> Step:
    """Keeps triplets on which the panel is of one mind; `doubt` says what becomes of the photos of others."""
    judges = len(pipe.seats)
    work = BatchStep(lambda records, context: panel.confident(records, context, judges, settings))
    return declared.made(work, settings={**declared.settings, "judges": judges}, needs=("candidates",))


def pooled_step(pipe: RmirPipeline, declared: Declared, settings: candidates.PoolSettings) -> Step:
    """Looks in the pool, by several encoders, for photos that may answer and were not found before."""
    how: candidates.CandidateSettings = pipe.settings("candidates")
    work = BatchStep(lambda records, context: candidates.pooled(pipe.world, settings, how, records, context))
    spaces = settings.spaces or pipe.world.view().gallery.encoders
    most = settings.depth * (len(spaces) + (how.text_encoder is not None))
    each = how.most(len(how.space_names(pipe.world)))
    needs = ("seeds", "checked", "candidates")
    more: dict[str, Any] = {"needs": needs, "grows": lambda came: came + came // each * most}
    named = {name: value for name, value in declared.settings.items() if name != "workers"}
    return declared.made(work, settings=named, inputs={"gallery": pipe.world.digest}, **more)


def queries_step(_pipe: RmirPipeline, declared: Declared, _settings: NoSettings) -> Step:
    """Gathers triplets into queries; those without a target go."""
    return declared.made(BatchStep(panel.gathered), needs=("checked",))


def split_step(pipe: RmirPipeline, declared: Declared, settings: panel.SplitSettings) -> Step:
    """Tells by the reliability of its judged list which query tests; the others train."""
    want = dict(pipe.settings("inputs").want)
    work = BatchStep(lambda records, context: panel.split(records, context, settings, pipe.lists, want))
    lists = {
        **declared.settings,
        "want": want,
        "space": pipe.lists.space,
        "depth": pipe.lists.depth,
        "judges": pipe.lists.judges,
    }
    needs = {"needs": ("judged", "confident"), "needs_drops": ("judged",)}
    return declared.made(work, 2, settings=lists, **needs)


ASKED, FIRST = "asked.json", 2  # how many photos a round asks about; at first for each query that is wanted
POOLED = "pooled"  # the one step that a recipe may leave out
STEPS: dict[str, tuple[type[Any], Callable[[RmirPipeline, Declared, Any], Step]]] = {
    "seeds": (candidates.SeedSettings, seeds_step),
    "inputs": (questions.Inputs, inputs_step),
    "questions": (questions.Asking, questions_step),
    "checked": (questions.Checking, checked_step),
    "candidates": (candidates.CandidateSettings, candidates_step),
    "judged": (PanelSettings, judged_step),
    "confident": (panel.ConfidentSettings, confident_step),
    POOLED: (candidates.PoolSettings, pooled_step),
    "queries": (NoSettings, queries_step),
    "split": (panel.SplitSettings, split_step),
}
"""The steps in their order: their settings, and what makes them."""
