"""From a recipe to a set in a folder with its card, as `eyespot eval recos` reads it.

OUT/work has the steps, OUT/review what a person checks, OUT/set the set, replaced as a whole unless records were lost.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from operator import methodcaller
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from eyespot.curate.recos.captions import (
    CAPTIONS,
    DEMONSTRATION,
    OVER_DETAILED,
    UNDER_DETAILED,
    Rewriting,
    choices,
    histogram,
)
from eyespot.curate.recos.checking import CHANGED, CONFIRMED, SURPLUS, TOO_FEW, UNDECIDED, UNSEEN, UNTRUE, is_seen
from eyespot.curate.recos.files import COLUMNS, MAIN, TABLES, write_set
from eyespot.curate.recos.pictures import DRAWN
from eyespot.curate.recos.pipeline import ROUND, RecosPipeline, Round
from eyespot.curate.recos.subtasks import names
from eyespot.curate.set_folder import SetFolder, SharePicture, datasheet, write_cards
from eyespot.formats.pictures import without_position
from eyespot.pipelines import Record, Step, StepResult, drops
from eyespot.pipelines.data_card import (
    CardContent,
    CardTable,
    QualityCheck,
    SampleRecord,
    card_of,
    content_of,
    level_of,
    licence_check,
    wilson,
)
from eyespot.pipelines.data_card.content import words
from eyespot.pipelines.human_review import AWAITS, DROPPED
from eyespot.runs.recos import VERSIONS
from eyespot.storage.atomic import write_whole
from eyespot.types import NothingFound, quantity

# -- the set --------------------------------------------------------------------------------------------------------


def write(
    pipe: RecosPipeline,
    done: Sequence[StepResult],
    *,
    share: SharePicture = without_position,
    target: SetFolder | None = None,
) -> tuple[RecosSteps, dict[str, dict[str, int]]]:
    """Write the set and its card; the finished steps, and the size of each version.

    `share` decides what of a picture's metadata stays. `NothingFound` if there is no caption; the card, which says why,
    is written all the same.
    """
    made = RecosSteps(pipe, done)
    folder = target or SetFolder.of(pipe.out, MAIN, len(made.captions()), done)
    counts = write_set(made.records, pipe.sources, folder.place, share)
    write_cards(card_of(done, made.card_content()), folder.place, TABLES)
    folder.settle()
    if not made.captions("v0"):
        raise NothingFound(f"no caption came through all steps; {folder.place / 'card.html'} says where they went")
    return made, counts


# -- rounds ---------------------------------------------------------------------------------------------------------


TURNS, MOST = 3, 8  # further requests about a picture; and drawn pictures, of which there is no end, for each wanted


def in_rounds(
    pipe: RecosPipeline, carry_out: Callable[[Sequence[Step]], Sequence[StepResult]]
) -> tuple[RecosPipeline, Sequence[StepResult]]:
    """The finished steps once each sub-task has the pictures that it wants, or nothing is left to try.

    A round replaces captions that were lost and takes further pictures; no request is sent twice.
    Rounds make v0; the other versions follow once.
    """
    last = next((at for at, one in enumerate(pipe.recipe.steps) if one.step == "pair"), None)
    while pipe.limit is None and any(it.want is not None for it in pipe.collecting.wanted().values()):
        further = next_round(RecosSteps(pipe, carry_out(pipe.steps[:last])))
        if further == pipe.round:
            break
        write_whole(pipe.work / ROUND, methodcaller("write", json.dumps(asdict(further)).encode()))
        pipe = replace(pipe)
    return pipe, carry_out(pipe.steps)


def next_round(made: RecosSteps) -> Round:
    """What to try next for sub-tasks with fewer pictures than they want; the same round where nothing is left.

    Nothing is tried while captions wait for a person.
    """
    lost = [(one.step.name, drop) for one in made.done for drop in drops(one.folder)]
    if any(drop.reason == AWAITS for _, drop in lost):
        return made.pipe.round
    finished = Counter(record["image"] for record in made.captions("v0"))
    there = finished + Counter(drop.record["image"] for _, drop in lost if drop.reason == TOO_FEW)
    # An unsuitable picture gets no further request
    barred = {drop.record["image"] for name, drop in lost if name == "caption" and "number" not in drop.record}
    taken = [one for one in made.result("collect").records if one["source"] != DRAWN]
    counts, turns = dict(made.pipe.round.counts), {image: [*of] for image, of in made.pipe.round.captions.items()}
    for name, wanted, found, left, _ in shortfalls(made):
        if made.pipe.collecting.wanted()[name].want is None:
            continue
        images = {one["image"] for one in taken if one["subtask"] == name} - barred - finished.keys()
        weak = sorted(image for image in images if len(turns.get(image, ())) < TURNS)
        for image in weak:
            turns.setdefault(image, []).append(CAPTIONS - there[image])
        more = math.ceil((wanted - left - len(weak)) / max(0.25, left / max(1, found)))
        endless = name in made.pipe.drawing.subtasks and found >= MOST * wanted
        if more > 0 and found == made.pipe.collecting.counts()[name] and not endless:
            counts[name] = found + more
    return Round(counts, turns)


# -- the card -------------------------------------------------------------------------------------------------------


K = 10  # the last of Recall@1, 5 and 10
LIKE, NEAREST = 3, 5  # pictures without captions in a sample, and those most like one in each pool
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

    def captions(self, version: str | None = None) -> list[Record]:
        """The captions that a version adds, or all."""
        return [r for r in self.records if "text" in r and version in (r["version"], None)]

    def result(self, name: str) -> StepResult:
        """The step of this name."""
        return next(result for result in self.done if result.step.name == name)

    def card_content(self) -> CardContent:
        """The parts of its card that cannot be counted from the steps."""
        tables = (_subtasks(self), _reviews(self), _changes(self), *_measurements(self))
        goals = self.pipe.collecting.goals()
        return content_of(
            self.pipe.recipe,
            answers(self),
            CITATION,
            texts={f"captions, {name}": [r["text"] for r in self.captions() if r["subtask"] == name] for name in goals},
            samples=[*_samples(self), *_most_alike(self)],
            tables=[table for table in tables if table.rows],
            notes=list(notes(self)),
            checks=list(quality_checks(self)),
        )


def notes(made: RecosSteps) -> Iterator[str]:
    """What readers should know before they trust the set."""
    models = [model for step in made.pipe.recipe.steps for model in step.models.values() if isinstance(model, dict)]
    if any(model.get("use") == DEMONSTRATION for model in models):
        yield "A demonstration: captions were written by rules from labels. Measure nothing with this set."
    stand_ins = {record["subtask"]: record["stand_in"] for record in made.records if record.get("stand_in")}
    yield from (f"Sub-task {name}: {why}." for name, why in sorted(stand_ins.items()))
    # The program that read the writing in photos misreads at times
    first = (one for one in made.records if one["version"] == VERSIONS[0] and one.get("writing"))
    read = {(one["subtask"], one["read_by"], one["image"]) for one in first}
    for (name, reader), count in sorted(Counter(it[:2] for it in read).items()):
        if made.pipe.sources.subtask(name).of_writing:
            yield f"Sub-task {name}: the text of {count:,} photos was read by OCR ({reader}), which misreads some."
    # Captions that only a model or a rule has checked
    captions = made.captions()
    if unseen := [record for record in captions if not is_seen(record)]:
        waiting = sum(record.get("review") == UNDECIDED for record in unseen)
        rest = f"{waiting:,} wait for one (eyespot build review), {len(unseen) - waiting:,} were shown to nobody"
        yield f"No person has looked at {len(unseen):,} of {quantity(len(captions), 'caption')}: {rest}."
    for name, wanted, found, left, cause in shortfalls(made):
        yield f"Sub-task {name}: {left} of {wanted} pictures have captions, and {found} were found; {cause}."
    # Pictures whose captions were all dropped, and not because enough were there: the steps count captions only
    surplus = {drop.record["image"] for one in made.done for drop in drops(one.folder) if drop.reason == SURPLUS}
    for version, kind in (("v0", "collect"), ("v1", "pair")):
        steps = [made.result(declared.name) for declared in made.pipe.recipe.steps if declared.step == kind]
        came = {one["image"] for step in steps for one in step.records if one.get("version", "v0") == version}
        if lost := len(came - surplus - {record["image"] for record in made.captions(version)}):
            yield f"{lost} of {len(came)} pictures of {version} lost all their captions and are left out with them."


class MissingPictures(NamedTuple):
    """A sub-task with fewer pictures than wanted: how many were found and are left, and the setting it is owed to."""

    subtask: str
    wanted: int
    found: int
    left: int
    owed_to: str


def shortfalls(made: RecosSteps) -> Iterator[MissingPictures]:
    """What is missing of the pictures that are wanted."""
    found = Counter(record["subtask"] for record in made.result("collect").records)
    left = Counter({record["image"]: record["subtask"] for record in made.captions("v0")}.values())
    lost: dict[str, Counter[tuple[str, str]]] = {}
    for result in made.done:
        for one in drops(result.folder) if result.step.name != "collect" else ():
            if one.record.get("version") == VERSIONS[0] and one.reason != TOO_FEW:
                lost.setdefault(one.record["subtask"], Counter())[result.step.name, one.reason] += 1
    for name, wanted in made.pipe.collecting.goals().items():
        if left[name] < wanted:
            cause = "give the step collect other queries, words or photos"
            if name in lost and left[name] < found[name]:
                ((step, reason), count), *_ = lost[name].most_common(1)
                change = SETTINGS.get(reason, f"the step {step}")
                cause = f"most captions went in the step {step} ({count:,}, {reason}): change {change}"
            yield MissingPictures(name, wanted, found[name], left[name], cause)


SETTINGS = {
    **dict.fromkeys((OVER_DETAILED, UNDER_DETAILED), "eta, temperature or rounds of dis(t)"),
    UNTRUE: "the model that writes",
}


# -- tables -----------------------------------------------------------------------------------------------------


def _subtasks(made: RecosSteps) -> CardTable:
    first_records = {record["image"]: record for record in reversed(made.records)}.values()
    counts = Counter((str(record["subtask"]), str(record["version"])) for record in first_records)
    texts = Counter(record["subtask"] for record in made.captions())
    wanted = made.pipe.collecting.goals()
    words_of: dict[str, set[str]] = {}
    for record in made.captions():
        words_of.setdefault(record["subtask"], set()).update(words(record["text"].casefold()))
    rows: list[list[str | int]] = [
        [name, wanted.get(name, 0), *(counts[name, v] for v in VERSIONS), texts[name], len(words_of.get(name, ()))]
        for name in dict.fromkeys([*names(), *wanted])
        if name in wanted or texts[name]
    ]
    sums = [sum(column) for column in zip(*(row[1:6] for row in rows), strict=True)] or [0] * 5
    rows.append(["together", *sums, len(set().union(*words_of.values()))])
    columns = ["sub-task", "wanted", "images of v0", "added in v1", "added in v2", "captions", "different words"]
    note = "A version holds its own images and those of the versions before it."
    return CardTable("Sub-tasks", columns, rows, note, drawn=2)


def _reviews(made: RecosSteps) -> CardTable:
    rows = []
    steps = [made.result(step.name) for step in made.pipe.recipe.steps if step.step == "review"]
    dropped = [drop.record for step in steps for drop in drops(step.folder) if drop.reason == DROPPED]
    for version in VERSIONS[:2]:
        counts = Counter(record.get("review") or UNSEEN for record in made.captions(version))
        lost = sum(record.get("version") == version for record in dropped)
        decided = counts[CONFIRMED] + counts[CHANGED] + lost
        low, high = wilson(counts[CONFIRMED], decided)
        share = f"{counts[CONFIRMED] / decided:.0%} ({low:.0%} to {high:.0%})" if decided else "–"
        numbers = (counts[name] for name in (CONFIRMED, CHANGED, UNDECIDED, UNSEEN))
        rows.append([version, counts.total(), *numbers, lost, share])
    columns = [
        *("version", "captions added", "confirmed by a person", "changed by one", "put to one, undecided"),
        *("put to nobody", "dropped by one", "accepted as they were"),
    ]
    note = "Column review of the captions, in which the undecided are unseen as well. Wilson's interval, 95%."
    return CardTable("Who looked at the captions", columns, rows, note)


# -- checks -----------------------------------------------------------------------------------------------------


def quality_checks(made: RecosSteps) -> Iterator[QualityCheck]:
    """What somebody must know before they trust the set."""
    first = {record["image"] for record in made.records if record["version"] == VERSIONS[0]}
    every = list({record["image"]: record for record in made.records}.values())
    times = len(first) / K
    text = f"{quantity(len(first), 'picture')} of v0, {times:.1f} times K = {K} (at least 10)."
    yield QualityCheck("Size of the pool", level_of(times, 4, 10), text)
    of_subtask = Counter(dict.fromkeys(made.pipe.collecting.wanted(), 0))  # those that lost all of theirs, too
    of_subtask.update(record["subtask"] for record in made.captions(VERSIONS[0]))
    least = of_subtask.most_common()[-1:]
    text = f"{least[0][0]} has the fewest, {least[0][1]:,} (at least 100)." if least else "There is none."
    count = least[0][1] if least else 0
    yield QualityCheck("Captions of v0 in each sub-task", level_of(count, 30, 100), text)
    captions = made.captions()
    seen = sum(is_seen(record) for record in captions)
    share = seen / len(captions) if captions else 0.0
    text = f"{len(captions) - seen:,} of {quantity(len(captions), 'caption')} are unseen by a person, {1 - share:.0%}."
    yield QualityCheck("Captions that a person read", level_of(share, 0.2, 0.95), text)
    rights = made.pipe.sources.attributions(every)
    photos = [record["image"] for record in every if record["source"] != DRAWN]  # drawn ones are the set's own
    yield licence_check([rights.get(image, {}).get("licence") for image in photos])


def _changes(made: RecosSteps) -> CardTable:
    by_attribute: dict[str, list[int]] = {}
    for record in made.captions("v1"):
        by_attribute.setdefault(record["attribute"], []).append(record["edits"])
    ordered = sorted(by_attribute.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [[name, len(edits), f"{fmean(edits):.1f}", max(edits)] for name, edits in ordered]
    columns = ["attribute", "captions", "words changed, mean", "most"]
    return CardTable("What confusing captions changed", columns, rows, "Words inserted, deleted or replaced.")


def _measurements(made: RecosSteps) -> Iterator[CardTable]:
    """What other settings of dis(t) would accept, and its distribution before and after rewriting."""
    for declared in made.pipe.recipe.steps:
        if declared.step == "discriminate":
            how, step = declared.fitted(Rewriting), made.result(declared.name)
            how = replace(how, k=step.step.settings.get("k", how.k))  # a small trial has fewer to compare
            # Captions as first written, also those that were dropped then
            first = [r for r in chain(step.records, (drop.record for drop in drops(step.folder))) if "nearest" in r]
            yield choices([record["nearest"] for record in first], how.k)
            before, after = [r["first_dis"] for r in first], [r["dis"] for r in step.records]
            yield histogram(before, after, how)


def _samples(made: RecosSteps) -> Iterator[SampleRecord]:
    """A picture of each sub-task with the pictures that it is confused with."""
    place = made.pipe.sources.place
    for name in dict.fromkeys([*names(), *made.pipe.collecting.wanted()]):
        captions = [record for record in made.captions("v0") if record["subtask"] == name]
        twins = {record["of"]: record for record in made.captions("v1") if record["subtask"] == name}
        chosen = next((record for record in captions if record["image"] in twins), captions[0] if captions else None)
        if chosen is None:
            continue
        twin, lines = twins.get(chosen["image"]), []
        pictures = [(f"v0: {twin['original'] if twin else chosen['text']}", place(chosen))]
        if twin is not None:
            pictures.append((f"v1: {twin['text']}", place(twin)))
            lines.append(f"v1 changes {quantity(twin['edits'], 'word')} ({twin['attribute']}).")
        like = [record for record in made.records if record["version"] == "v2" and record["of"] == chosen["image"]]
        pictures += [("v2, without captions", place(record)) for record in like[:LIKE]]
        yield SampleRecord(chosen["subtask"], pictures, lines)


def _most_alike(made: RecosSteps) -> Iterator[SampleRecord]:
    """A picture of v0 with the five most like it, among those of v0 and of v2 (figure 1 of the paper)."""
    every, sources = list({record["image"]: record for record in made.records}.values()), made.pipe.sources
    first = [at for at, record in enumerate(every) if record["version"] == VERSIONS[0]]
    if len(first) <= NEAREST or len(first) == len(every):
        return
    chosen = next((at for at in first if every[at]["source"] != DRAWN), first[0])
    vectors = sources.vectors(every)
    cosines = vectors @ vectors[chosen]  # (pictures,)
    pictures, lines = [("v0", sources.place(every[chosen]))], []
    for name, pool in (("v0", first), ("v2", range(len(every)))):
        near = sorted((at for at in pool if at != chosen), key=lambda at: -cosines[at])[:NEAREST]
        pictures += [(f"{name}, {cosines[at]:.2f}", sources.place(every[at])) for at in near]
        lines.append(f"Cosines in {name}, {len(pool):,} pictures: {fmean(map(float, cosines[near])):.2f} on average.")
    yield SampleRecord(f"The {NEAREST} most similar in v0, and in v2", pictures, lines)


# -- datasheet --------------------------------------------------------------------------------------------------


def answers(made: RecosSteps) -> dict[str, dict[str, str]]:
    """The pipeline's own answers to a datasheet, by section and question; answers of a recipe replace them."""
    models = {name: model for step in made.pipe.recipe.steps for name, model in step.models.items()}
    writers = [f"{name} ({model.get('use')})" for name, model in models.items() if isinstance(model, Mapping)]
    sizes = []
    for number, version in enumerate(VERSIONS, 1):
        held = [record for record in made.records if record["version"] in VERSIONS[:number]]
        images, captions = {record["image"] for record in held}, sum("text" in record for record in held)
        sizes.append(f"{version}: {quantity(len(images), 'picture')}, {quantity(captions, 'caption')}")
    return datasheet(
        Path(__file__),
        **dict(zip(("first", "second", "third"), VERSIONS, strict=True)),
        sizes="; ".join(sizes),
        columns=" ".join(f"{name}: {', '.join(columns)}." for name, columns in COLUMNS.items()),
        writers=", ".join(writers) or "nobody",
        galleries=", ".join(made.pipe.sources.galleries) or "none",
        subtasks=len(made.pipe.collecting.wanted()),
    )
