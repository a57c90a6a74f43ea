"""The steps of a ReCoS recipe: v0 from `draw` to `complete`, v1 by `pair` and `confuse`, v2 by `expand`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from eyespot.curate._world import NoSettings, SetPipeline, one_model
from eyespot.curate.recos import captions, checking, confusing, pictures
from eyespot.curate.recos.captions import CAPTIONS, DEMONSTRATION
from eyespot.curate.recos.confusing import Expanding
from eyespot.curate.recos.demonstration import writer
from eyespot.curate.recos.pictures import Sources
from eyespot.curate.recos.subtasks import Collecting
from eyespot.pipelines import BatchStep, Client, Declared, MapStep, Step
from eyespot.pipelines.human_review import decisions_digest
from eyespot.pipelines.prompts import expected
from eyespot.pipelines.step import digest_of_json
from eyespot.storage.text_files import json_of
from eyespot.types import UsageError, Vectors, quantity

REVIEW, ROUND = "review", "round.json"  # a folder, and how far the rounds have come for what is wanted
APART = "-apart"  # the end of the name of the step after `confuse`
FIRST = ("draw", "render", "collect")
SMALLEST_TRIAL = 3  # pictures: dis(t) compares each with two others or more


@dataclass(frozen=True)
class Round:
    """How many pictures of sub-tasks are taken, and how many further captions of a picture each request wants."""

    counts: Mapping[str, int] = field(default_factory=dict)
    captions: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class RecosPipeline(SetPipeline):
    """A recipe's steps, whose work lies under `out`.

    `galleries` take the place of those that the recipe names. `limit` is a trial's number of pictures in v0, at
    least SMALLEST_TRIAL.
    """

    clients: ClassVar[Mapping[str, Client]] = {DEMONSTRATION: writer}

    galleries: Mapping[str, Path] = field(default_factory=dict)
    limit: int | None = None
    captions: dict[str, Vectors] = field(default_factory=dict, repr=False, compare=False)  # vectors that rounds share

    @cached_property
    def steps(self) -> list[Step]:
        """All of them; `UsageError` for a recipe with other first steps, or with an unknown step."""
        declared = self.recipe.steps
        if tuple(step.step for step in declared[:3]) != FIRST or any(step.name != step.step for step in declared[:3]):
            raise UsageError(f"a ReCoS recipe begins with the steps {', '.join(FIRST)}, under these names")
        steps: list[Step] = []
        made = self.recipe.made({name: partial(make, self) for name, make in MAKERS.items()})
        for kind, step in zip((step.step for step in declared), made, strict=True):
            steps.append(step if step.about else replace(step, about=str(MAKERS[kind].__doc__)))
            if kind == "confuse":  # it sees one picture at a time, so its captions are compared with all others here
                compare, about = BatchStep(checking.apart), "Removes captions that two pictures share."
                steps.append(Step(f"{step.name}{APART}", compare, 2, needs=("render",), about=about))
        return steps

    @cached_property
    def collecting(self) -> Collecting:
        """Which pictures are collected."""
        declared = next((step for step in self.recipe.steps if step.step == "collect"), None)
        how: Collecting = declared.fitted(Collecting) if declared else Collecting()
        return how.shared(max(self.limit, SMALLEST_TRIAL)) if self.limit is not None else how.taking(self.round.counts)

    @cached_property
    def round(self) -> Round:
        """What is tried for the wanted pictures so far."""
        place = self.work / ROUND
        return Round(**json_of(place)) if place.exists() and self.limit is None else Round()

    @cached_property
    def sources(self) -> Sources:
        """The galleries; `UsageError` for one that is missing."""
        named = {name: self.recipe.folder / path for name, path in self.collecting.galleries.items()}
        described = {name: self.collecting.described(name) for name in self.collecting.subtasks}
        return Sources(self.work, dict(self.galleries) or named, self.collecting.encoder, described, self.captions)

    @cached_property
    def drawing(self) -> pictures.DrawnCounts:
        """How many pictures are drawn; of a sub-task with `want` at least as many as are taken."""
        how: pictures.DrawnCounts = self.recipe.steps[0].fitted(pictures.DrawnCounts)
        counts = {name: it.count or 0 for name, it in self.collecting.wanted().items() if it.want is not None}
        return replace(how, subtasks={name: max(count, counts.get(name, 0)) for name, count in how.subtasks.items()})

    @cached_property
    def wanted(self) -> tuple[int, int]:
        """How many pictures v0 has at most, and how many of them are photos."""
        counts = self.collecting.counts()
        return sum(counts.values()), sum(count for name, count in counts.items() if not self.drawing.subtasks.get(name))

    def queues(self) -> list[Path]:
        """The review queues that have been written."""
        return sorted(path for path in (self.out / REVIEW).glob("*.jsonl") if not path.stem.endswith(".decisions"))


def galleries_of(given: Sequence[str]) -> dict[str, Path]:
    """Galleries as they are named on a command line: `NAME=FOLDER`, or `FOLDER` with the folder's name."""
    galleries: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        place = Path(path if equals else text)
        name = name if equals else place.resolve().name
        if not name or name in galleries:
            raise UsageError(f"two galleries are called {name!r}; name them apart, as in -g birds=FOLDER")
        galleries[name] = place
    return galleries


# -- one function a step, whose docstring is what the card says of it -------------------------------------------------


def draw_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Chooses sums, programs and signs with answers that differ."""
    how = pipe.drawing
    for name in how.subtasks:
        pictures.generator_of(name)
    work = BatchStep(lambda _records, context: pictures.sample_facts(context, how))
    count = 2 * sum(how.subtasks.values())  # with their siblings
    settings = declared.settings if how == declared.fitted(pictures.DrawnCounts) else {"subtasks": how.subtasks}
    return declared.made(work, 2, settings=settings, grows=lambda _came: count)


def render_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Draws the pictures."""
    declared.fitted(NoSettings)
    work = MapStep(lambda record, context: pictures.rendered(record, context, pipe.sources), 2)
    return declared.made(work)


def collect_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Chooses the pictures of v0, by sub-task."""
    how = pipe.collecting
    how.wanted()
    work = BatchStep(lambda records, context: pictures.collected(records, context, pipe.sources, how))
    settings = {key: value for key, value in declared.settings.items() if key != "galleries"}
    if pipe.limit is not None:
        settings["trial"] = max(pipe.limit, SMALLEST_TRIAL)
    if pipe.round.counts:
        settings["taken"] = pipe.round.counts
    more = {"inputs": pipe.sources.digests, "grows": lambda _came: pipe.wanted[0]}
    return declared.made(work, 2, settings=settings, **more)


def caption_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Writes five captions of each picture."""
    how = declared.fitted(captions.Captioning)
    by, fields = _writer(pipe, declared)
    further = pipe.round.captions
    work = MapStep(lambda record, context: captions.captioned(record, context, by, how, further), how.workers)
    fields |= {"inputs": {"further": digest_of_json(further)}} if further else {}
    fields |= {"grows": lambda came: came * CAPTIONS, "asking": pipe.wanted[1]}
    return declared.made(work, **fields)


def complete_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Keeps pictures with enough captions of their own."""
    how = declared.fitted(checking.Completing)
    goals = {name: it.want for name, it in pipe.collecting.wanted().items() if it.want is not None}
    work = BatchStep(lambda records, context: checking.completed(records, context, how, goals))
    about = f"Keeps pictures of {how.version} with enough captions of their own (at least {how.least})."
    more = {"settings": {**declared.settings, "want": goals}} if goals else {}
    return declared.made(work, 3, needs=("render",), about=about, **more)


def discriminate_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Measures dis(t) of each caption, and rewrites those that say too much or too little."""
    how: captions.Rewriting = declared.fitted(captions.Rewriting)
    by, fields = _writer(pipe, declared)
    if pipe.limit is not None and pipe.limit <= how.k:  # a trial compares the pictures that it has
        how = replace(how, k=max(pipe.limit, SMALLEST_TRIAL) - 1)
        fields["settings"] |= {"k": how.k}
    fields["expects"] = fields["expects"].times(how.rounds)
    pool = captions.CaptionPool(pipe.sources, how)
    work = MapStep(lambda record, context: captions.discriminated(record, context, pool, by), how.workers)
    fields |= {"inputs": {"space": pipe.sources.digests["space"]}, "asking": pipe.wanted[1] * CAPTIONS}
    return declared.made(work, 3, needs=("collect",), **fields)


def verify_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Shows a model each caption of a photo with its picture, and drops what is not true of it."""
    how = declared.fitted(checking.Verifying)
    by, fields = _writer(pipe, declared)
    if str(by.model.get("use")).partition(":")[0] == DEMONSTRATION:
        raise UsageError("the step verify needs a model that sees pictures; the demonstration works from labels alone")
    pictures = 1 if how.version == "v0" else 2
    fields |= {"expects": expected(by.model, pictures, by.template), "asking": pipe.wanted[1] * CAPTIONS}
    about = f"Shows a model each caption of {how.version} of a photo, and drops what is not true of its picture alone."
    work = MapStep(lambda record, context: checking.verified(record, context, by, how), how.workers)
    return declared.made(work, about=about, **fields)


def grammar_step(_pipe: RecosPipeline, declared: Declared) -> Step:
    """Looks for grammar errors in captions."""
    how = declared.fitted(checking.Grammar)
    checker = checking.Checker(how)
    work = MapStep(lambda record, context: checking.checked(record, context, checker, how))
    return declared.made(work, 2, about=f"Looks for grammar errors in the captions of {how.version}.")


def review_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Shows captions to a person."""
    how = declared.fitted(checking.Reviewing)
    queue = pipe.out / REVIEW / f"{declared.name}.jsonl"
    work = BatchStep(lambda records, context: checking.review_captions(records, context, queue, pipe.sources, how))
    about = f"Shows captions of {how.version} to a person: {how.share:.0%} of them, and all in doubt."
    return declared.made(work, 4, inputs={"decisions": decisions_digest(queue)}, about=about)


def pair_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Finds for each picture the one of its source that looks most like it."""
    how = declared.fitted(confusing.Copies)
    work = BatchStep(lambda records, context: confusing.paired(records, context, pipe.sources, how))
    more = {"inputs": pipe.sources.digests, "grows": lambda came: came + pipe.wanted[0]}
    return declared.made(work, 3, needs=("render",), **more)


def confuse_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Makes captions of these from the first ones with the fewest words changed."""
    how = declared.fitted(confusing.Confusing)
    by, fields = _writer(pipe, declared)
    work = MapStep(lambda record, context: confusing.confused(record, context, by, how), how.workers)
    fields |= {"grows": lambda came: came + pipe.wanted[0] * (CAPTIONS - 1), "asking": pipe.wanted[1]}
    return declared.made(work, 2, **fields)


def expand_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Adds the pictures most like each, without captions."""
    how = declared.fitted(Expanding)
    work = BatchStep(lambda records, context: confusing.expanded(records, context, pipe.sources, how))
    about = f"Adds the {quantity(how.similar, 'picture')} most like each, without captions."
    # For the pictures of v0 and of v1
    more = {"inputs": pipe.sources.digests, "grows": lambda came: came + 2 * pipe.wanted[0] * how.similar}
    return declared.made(work, 2, needs=("render",), about=about, **more)


def hash_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Computes perceptual hashes of the pictures without captions."""
    declared.fitted(NoSettings)
    work = MapStep(lambda record, _context: confusing.hashed(record, pipe.sources), 2)
    return declared.made(work)


def distinct_step(pipe: RecosPipeline, declared: Declared) -> Step:
    """Removes near-duplicates from the pictures without captions."""
    how = declared.fitted(confusing.Copies)
    work = BatchStep(lambda records, _context: confusing.distinct(records, pipe.sources, how))
    return declared.made(work, 2)


MAKERS: dict[str, Callable[[RecosPipeline, Declared], Step]] = {
    name.removesuffix("_step"): make for name, make in list(globals().items()) if name.endswith("_step")
}


def _writer(pipe: RecosPipeline, declared: Declared) -> tuple[captions.CaptionWriter, dict[str, Any]]:
    """The model that writes in a step, and the fields of the step that depend on it."""
    model, text, fields = one_model(declared, captions.EVERYDAY[declared.step]["prompt"])
    tables = pipe.collecting.subtasks.items()
    if texts := {name: [it.about, it.attributes] for name, it in tables if it.about or it.attributes}:
        fields["settings"] = {**fields["settings"], "subtasks": texts}
    return captions.CaptionWriter(model, text, pipe.sources), fields
