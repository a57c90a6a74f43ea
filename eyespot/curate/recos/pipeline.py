"""The steps of a ReCoS recipe: v0 from `draw` to `complete`, v1 by `pair` and `confuse`, v2 by `expand`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from eyespot.curate.recos import captioning, checking, collecting, confusing, drawn, expanding, grammar, rewriting
from eyespot.curate.recos.sources import Sources
from eyespot.pipelines import BatchStep, Declared, MapStep, Recipe, Spent, Step
from eyespot.pipelines.human_review import decisions_digest
from eyespot.pipelines.prompts import PROMPT, expected, template
from eyespot.types import UsageError

WORK, REVIEW = "work", "review"
APART = "-apart"  # what the step after `confuse` is called besides
FIRST = ("draw", "render", "collect")


@dataclass(frozen=True)
class RecosStepSettings:
    """A step without settings."""


@dataclass(frozen=True)
class RecosWorkers:
    """How many records a model is asked about at once."""

    workers: int = 4


@dataclass(frozen=True)
class RecosPipeline:
    """A recipe's steps, whose work lies under `out`.

    `galleries` take the place of those that the recipe names. `limit` is a trial's number of pictures in v0.
    """

    recipe: Recipe
    out: Path
    galleries: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None

    @property
    def work(self) -> Path:
        """Where the steps lie."""
        return self.out / WORK

    @cached_property
    def steps(self) -> list[Step]:
        """All of them; `UsageError` for a recipe that does not begin as it must, or has a step that there is not."""
        named = [one.step for one in self.recipe.steps]
        if tuple(named[:3]) != FIRST or any(one.name != one.step for one in self.recipe.steps[:3]):
            raise UsageError(f"a ReCoS recipe begins with the steps {', '.join(FIRST)}, under these names")
        made = self.recipe.made({name: partial(make, self) for name, make in MAKERS.items()})
        return list(chain.from_iterable(map(_with_apart, made, self.recipe.steps)))

    @cached_property
    def collecting(self) -> collecting.Collecting:
        """What is to be collected."""
        declared = next((one for one in self.recipe.steps if one.step == "collect"), None)
        how: collecting.Collecting = declared.fitted(collecting.Collecting) if declared else collecting.Collecting()
        return how.shared(self.limit) if self.limit is not None else how

    @cached_property
    def sources(self) -> Sources:
        """The galleries; `UsageError` for one that is not there."""
        named = {name: self.recipe.folder / path for name, path in self.collecting.galleries.items()}
        return Sources(self.work, dict(self.galleries) or named, self.collecting.encoder)

    def queues(self) -> list[Path]:
        """The review queues that have been written."""
        return sorted(path for path in (self.out / REVIEW).glob("*.jsonl") if not path.stem.endswith(".decisions"))


def _draw(_pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(drawn.DrawnCounts)
    for name in how.subtasks:
        drawn.generator_of(name)
    work = BatchStep(lambda _records, context: drawn.invented(context, how))
    return declared.made(work, about="Invents sums, programs and signs with answers that differ.")


def _render(pipe: RecosPipeline, declared: Declared) -> Step:
    declared.fitted(RecosStepSettings)
    work = MapStep(lambda record, context: drawn.rendered(record, context, pipe.sources), workers=2)
    return declared.made(work, about="Works each answer out anew from what is written, and paints the picture.")


def _collect(pipe: RecosPipeline, declared: Declared) -> Step:
    how = pipe.collecting
    how.wanted()
    work = BatchStep(lambda records, context: collecting.collected(records, context, pipe.sources, how))
    told = {key: value for key, value in declared.settings.items() if key != "galleries"}
    told |= {} if pipe.limit is None else {"trial": pipe.limit}
    about = "Chooses the pictures of v0, by sub-task."
    return declared.made(work, 2, settings=told, inputs=pipe.sources.digests, about=about)


def _caption(pipe: RecosPipeline, declared: Declared) -> Step:
    how, writer, told = declared.fitted(RecosWorkers), *_writer(pipe, declared, "caption")
    work = MapStep(lambda record, context: captioning.captioned(record, context, writer), how.workers)
    return declared.made(work, about="Writes five captions of each picture.", **told)


def _discriminate(pipe: RecosPipeline, declared: Declared) -> Step:
    how: rewriting.Rewriting = declared.fitted(rewriting.Rewriting)
    writer, told = _writer(pipe, declared, "rewrite")
    told["expects"] = told["expects"].times(how.rounds)
    pool = rewriting.CaptionPool(pipe.sources, how)
    assert how.measure
    work = MapStep(lambda record, context: rewriting.discriminated(record, context, pool, writer), how.workers)
    told["inputs"] = {"space": pipe.sources.digests["space"]}
    about = "Measures dis(t) of each caption and has those that say too much or too little written again."
    return declared.made(work, 2, needs=("render", "collect"), about=about, **told)


def _grammar(_pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(grammar.Grammar)
    checker = grammar.Checker(how)
    work = MapStep(lambda record, context: grammar.checked(record, context, checker, how))
    return declared.made(work, 2, about=f"Looks for faults of grammar in the captions of {how.version}.")


def _review(pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(checking.Reviewing)
    queue, told = pipe.out / REVIEW / f"{declared.name}.jsonl", (pipe.sources, how)
    work = BatchStep(lambda records, context: checking.looked_at(records, context, queue, told))
    about = f"Puts captions of {how.version} to a person: {how.share:.0%} of them, and all that are in doubt."
    return declared.made(work, 3, inputs={"decisions": decisions_digest(queue)}, about=about)


def _complete(_pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(checking.Completing)
    work = BatchStep(lambda records, context: checking.completed(records, context, how))
    about = f"Keeps pictures of {how.version} with {how.least} caption{'s' * (how.least != 1)} of their own or more."
    return declared.made(work, 3, needs=("render",), about=about)


def _pair(pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(confusing.Pairing)
    work = BatchStep(lambda records, context: confusing.paired(records, context, pipe.sources, how))
    about = "Finds for each picture the one of its source that looks most like it."
    return declared.made(work, 3, inputs=pipe.sources.digests, needs=("render",), about=about)


def _confuse(pipe: RecosPipeline, declared: Declared) -> Step:
    how: confusing.Confusing = declared.fitted(confusing.Confusing)
    writer, told = _writer(pipe, declared, "confuse")
    work = MapStep(lambda record, context: confusing.confused(record, context, writer, how), how.workers)
    about = "Makes captions of these out of the first ones with the fewest words changed."
    return declared.made(work, 2, about=about, **told)


def _with_apart(step: Step, declared: Declared) -> list[Step]:
    """After `confuse`, which knows one picture at a time, what it wrote is held against the captions of all."""
    if declared.step != "confuse":
        return [step]
    about = "Takes captions out that two pictures share."
    return [step, Step(f"{step.name}{APART}", BatchStep(checking.apart), 2, needs=("render",), about=about)]


def _expand(pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(expanding.Expanding)
    work = BatchStep(lambda records, context: expanding.expanded(records, context, pipe.sources, how))
    about = f"Adds the {how.similar} pictures most like each, without captions."
    return declared.made(work, 2, inputs=pipe.sources.digests, needs=("render",), about=about)


def _hash(pipe: RecosPipeline, declared: Declared) -> Step:
    declared.fitted(RecosStepSettings)
    work = MapStep(lambda record, context: expanding.hashed(record, context, pipe.sources), workers=2)
    return declared.made(work, about="Takes perceptual hashes of the pictures without captions.")


def _distinct(pipe: RecosPipeline, declared: Declared) -> Step:
    how = declared.fitted(expanding.Distinct)
    work = BatchStep(lambda records, context: expanding.distinct(records, context, pipe.sources, how))
    return declared.made(work, 2, about="Takes near-duplicates out of the pictures without captions.")


MAKERS: dict[str, Callable[[RecosPipeline, Declared], Step]] = {
    "draw": _draw,
    "render": _render,
    "collect": _collect,
    "caption": _caption,
    "discriminate": _discriminate,
    "grammar": _grammar,
    "review": _review,
    "complete": _complete,
    "pair": _pair,
    "confuse": _confuse,
    "expand": _expand,
    "hash": _hash,
    "distinct": _distinct,
}


def _writer(pipe: RecosPipeline, declared: Declared, prompt: str) -> tuple[captioning.CaptionWriter, dict[str, Any]]:
    """Who writes in a step, and what the step says of that."""
    if len(declared.models) != 1:
        raise UsageError(f'the step {declared.name} asks one model; write model = "NAME" of one under [models]')
    (model,) = declared.models.values()
    text = template(declared, captioning.template(prompt))
    price: Spent = expected(model, 1, text)
    # Settings that results hang on: how many are asked at once changes none
    without_workers = {key: value for key, value in declared.settings.items() if key != "workers"}
    told = {"prompts": {PROMPT: text}, "settings": without_workers, "expects": price}
    return captioning.CaptionWriter(model, text, pipe.sources), told
