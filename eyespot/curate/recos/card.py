"""What the data card of a ReCoS set tells: its sub-tasks and versions, how captions were chosen, samples to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Any

from eyespot.curate.recos.captioning import DEMONSTRATION
from eyespot.curate.recos.checking import CONFIRMED, MENDED, NEVER, UNDECIDED, is_seen
from eyespot.curate.recos.choosing import choices, drawing
from eyespot.curate.recos.files import COLUMNS
from eyespot.curate.recos.pipeline import RecosPipeline
from eyespot.curate.recos.rewriting import Rewriting
from eyespot.curate.recos.subtasks import names, subtask
from eyespot.pipelines import Record, StepResult, drops
from eyespot.pipelines.data_card import CardFigure, CardTable, SampleRecord, Told, joined
from eyespot.runs.recos import VERSIONS

LIKE = 3  # pictures without captions that a sample shows
OWN = ("citation", "licence")  # of the recipe's [card], what is no part of the datasheet
CITATION = (
    "Chen, Lou, Huang, Wan, Zhang, Yang: ReCoS: A Novel Benchmark for Cross-Modal Image-Text Retrieval in Complex "
    "Real-Life Scenarios. ACM Multimedia 2024 (the method)"
)


@dataclass(frozen=True)
class RecosSteps:
    """A recipe's finished steps."""

    pipe: RecosPipeline
    done: Sequence[StepResult]

    @cached_property
    def records(self) -> list[Record]:
        """The set: captions with their pictures, and pictures without."""
        return list(self.done[-1].records)

    def captions(self, version: str) -> list[Record]:
        """The captions that a version adds."""
        return [one for one in self.records if "text" in one and one["version"] == version]

    def told(self) -> Told:
        """What its card cannot count from the steps."""
        recipe = self.pipe.recipe
        given = {name: part for name, part in recipe.card.items() if name not in OWN}
        return Told(
            recipe.name,
            recipe.about,
            recipe.seed,
            joined(answers(self), given),
            {f"captions of {version}": [one["text"] for one in self.captions(version)] for version in VERSIONS[:2]},
            list(_samples(self)),
            [table for table in (_subtasks(self), _looked(self), _changes(self), *_choices(self)) if table.rows],
            list(_drawings(self)),
            list(notes(self)),
            str(recipe.card.get("citation", "")) or CITATION,
            str(recipe.card.get("licence", "")),
        )


# -- notes ------------------------------------------------------------------------------------------------------


def notes(made: RecosSteps) -> Iterator[str]:
    """What should be known before the set is trusted."""
    models = [model for one in made.pipe.recipe.steps for model in one.models.values() if isinstance(model, dict)]
    if any(model.get("use") == DEMONSTRATION for model in models):
        yield "A demonstration: captions were written by rules out of labels. Measure nothing with this set."
    stand_ins = {one["subtask"]: one["stand_in"] for one in made.records if one.get("stand_in")}
    yield from (f"Sub-task {name}: {why}." for name, why in sorted(stand_ins.items()))
    # How many captions rest on a model's or a rule's word alone
    captions = [one for one in made.records if "text" in one]
    unseen = [one for one in captions if not is_seen(one)]
    if unseen:
        waiting = sum(one.get("review") == UNDECIDED for one in unseen)
        rest = f"{waiting:,} wait for one (eyespot build review), {len(unseen) - waiting:,} were put to nobody"
        yield f"No person has looked at {len(unseen):,} of {len(captions):,} captions: {rest}."
    found = Counter(record["subtask"] for record in _step(made, "collect").records)
    for name, wanted in made.pipe.collecting.wanted().items():
        count = subtask(name).count if wanted.count is None else wanted.count
        if found[name] < count:
            yield f"Sub-task {name}: {found[name]} of {count} pictures were found."
    # Pictures that are no longer there because every caption of theirs fell: the steps count captions
    for version, name in (("v0", "collect"), ("v1", "pair")):
        named = [declared.name for declared in made.pipe.recipe.steps if declared.step == name]
        pictures_came = (record for name in named for record in _step(made, name).records)
        came = {record["image"] for record in pictures_came if record.get("version", "v0") == version}
        lost = len(came - {one["image"] for one in made.captions(version)})
        if lost:
            yield f"{lost} of {len(came)} pictures of {version} lost all their captions and are left out with them."


# -- tables -----------------------------------------------------------------------------------------------------


def _subtasks(made: RecosSteps) -> CardTable:
    counts: Counter[tuple[str, str]] = Counter()
    for record in {one["image"]: one for one in reversed(made.records)}.values():
        counts[str(record["subtask"]), str(record["version"])] += 1
    texts = Counter(one["subtask"] for one in made.records if "text" in one)
    present = {name for name, _ in counts}
    rows: list[list[str | int]] = [
        [name, *(counts[name, version] for version in VERSIONS), texts[name]] for name in names() if name in present
    ]
    rows.append(["together", *(sum(counts[name, version] for name in names()) for version in VERSIONS), texts.total()])
    columns = ["sub-task", "images of v0", "added in v1", "added in v2", "captions"]
    return CardTable("Sub-tasks", columns, rows, "A version holds its own images and those of the versions before it.")


def _looked(made: RecosSteps) -> CardTable:
    rows = []
    for version in VERSIONS[:2]:
        told = Counter(one.get("review") or NEVER for one in made.captions(version))
        rows.append([version, told.total(), *(told[name] for name in (CONFIRMED, MENDED, UNDECIDED, NEVER))])
    columns = ["version", "captions added", "confirmed by a person", "mended by one", "put to one, undecided"]
    return CardTable(
        "Who looked at the captions", [*columns, "never put to one"], rows, "Column review of the captions."
    )


def _changes(made: RecosSteps) -> CardTable:
    swapped = made.captions("v1")
    by_attribute: dict[str, list[int]] = {}
    for one in swapped:
        by_attribute.setdefault(one["attribute"], []).append(one["edits"])
    ordered = sorted(by_attribute.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [[name, len(edits), f"{fmean(edits):.1f}", max(edits)] for name, edits in ordered]
    columns = ["attribute", "captions", "words changed, mean", "most"]
    return CardTable("What confusing captions changed", columns, rows, "Words put in, taken out or replaced.")


def _choices(made: RecosSteps) -> Iterator[CardTable]:
    for done, how in _measured(made):
        yield choices([one["nearest"] for one in _first_wordings(done)], how.k)


def _drawings(made: RecosSteps) -> Iterator[CardFigure]:
    for done, how in _measured(made):
        first = [one["first_dis"] for one in _first_wordings(done)]
        settings = f"k {how.k}, temperature {how.temperature:g}, η {how.eta:g}"
        yield CardFigure(
            f"{done.step.name}-first", f"dis(t) of captions as first written ({settings})", drawing(first, how.measure)
        )
        last = [one["dis"] for one in done.records]
        yield CardFigure(f"{done.step.name}-kept", "dis(t) of those that were kept", drawing(last, how.measure))


def _measured(made: RecosSteps) -> Iterator[tuple[StepResult, Rewriting]]:
    for declared in made.pipe.recipe.steps:
        if declared.step == "discriminate":
            yield _step(made, declared.name), declared.fitted(Rewriting)


def _first_wordings(done: StepResult) -> list[Mapping[str, Any]]:
    """Captions as they came to the step, whether they were kept or dropped then."""
    every = chain(done.records, (one.record for one in drops(done.folder)))
    return [one for one in every if "nearest" in one]


def _step(made: RecosSteps, name: str) -> StepResult:
    return next(one for one in made.done if one.step.name == name)


# -- samples ----------------------------------------------------------------------------------------------------


def _samples(made: RecosSteps) -> Iterator[SampleRecord]:
    """One picture of each sub-task with what it is confused with."""
    for name in names():
        firsts = [one for one in made.captions("v0") if one["subtask"] == name]
        twins = {one["of"]: one for one in made.captions("v1") if one["subtask"] == name}
        chosen = next((one for one in firsts if one["image"] in twins), firsts[0] if firsts else None)
        if chosen is not None:
            twin = twins.get(chosen["image"])
            place = made.pipe.sources.place
            pictures = [(f"v0: {twin['original'] if twin else chosen['text']}", place(chosen))]
            lines = []
            if twin is not None:
                pictures.append((f"v1: {twin['text']}", place(twin)))
                words = f"{twin['edits']} word{'s' * (twin['edits'] != 1)}"
                lines.append(f"v1 changes {words} ({twin['attribute']}).")
            like = [one for one in made.records if one["version"] == "v2" and one["of"] == chosen["image"]]
            pictures += [("v2, without captions", place(one)) for one in like[:LIKE]]
            yield SampleRecord(chosen["subtask"], pictures, lines)


# -- datasheet --------------------------------------------------------------------------------------------------


def answers(made: RecosSteps) -> dict[str, dict[str, str]]:
    """What the pipeline itself can answer of a datasheet, by section and question; a recipe's answers go before it."""
    first, second, third = VERSIONS
    pictures: dict[str, str] = {}
    for one in made.records:
        pictures.setdefault(one["image"], one["version"])
    sizes = []
    for at, version in enumerate(VERSIONS):
        images = sum(VERSIONS.index(one) <= at for one in pictures.values())
        captions = sum(len(made.captions(one)) for one in VERSIONS[: at + 1])
        sizes.append(f"{version}: {images:,} pictures, {captions:,} captions")
    composition = {
        "items": "A record is a caption with its picture, or, in the largest version, a picture without captions. Each "
        "picture serves one sub-task.",
        "count": "; ".join(sizes) + ".",
        "fields": " ".join(f"{name}: {', '.join(columns)}." for name, columns in COLUMNS.items()),
        "labels": f"A caption is said to be true of its picture, and of no other, by {_writers(made)}; of a drawn "
        "picture by the rules that drew it.",
        "missing": f"The pictures that {third} adds bear no captions. Nobody looked at every caption beside every "
        "other picture: one may fit two.",
        "relations": f"A picture that {second} adds is like one of {first}, and its captions are those with words "
        f'changed; one that {third} adds is like either. The column "of" names which.',
        "splits": f"There is nothing to train on: {first}, {second} and {third} are one test in three sizes.",
        "elsewhere": "Nothing; the pictures lie in images/.",
    }
    return {"composition": composition, "collection": _collection(made), "uses": _uses()}


def _collection(made: RecosSteps) -> dict[str, str]:
    how = made.pipe.collecting
    places = ", ".join(made.pipe.sources.galleries) or "none"
    return {
        "means": f"Photos were searched for, or chosen by their labels, in these galleries: {places}. Captions by "
        f"{_writers(made)}. Drawn pictures by rules, each answer worked out anew from what is written.",
        "sampling": f"So many pictures of each of {len(how.wanted())} sub-tasks as the recipe says, a photo for one "
        "sub-task alone; then what is most like them, of the same source.",
    }


def _uses() -> dict[str, str]:
    return {
        "caution": "Captions are a model's unless a person confirmed or mended them; the column review says which.",
        "unfit": "To tell who people are, or what is true of those who can be seen in the pictures.",
    }


def _writers(made: RecosSteps) -> str:
    models = {name: model for step in made.pipe.recipe.steps for name, model in step.models.items()}
    found = [f"{name} ({model.get('use')})" for name, model in models.items() if isinstance(model, Mapping)]
    return ", ".join(found) or "nobody"
