"""The papers' own tables as they were printed, and which of their numbers may stand beside measured ones.

The one rule for all benchmarks: numbers of the same queries, split and images. A benchmark says what its papers
measured (`Benchmark.official`, and of single rows `Printed.split` and `Printed.images`); whatever is known to differ
keeps a row away, with the reasons. Of the rows that stand beside, some are printed without a difference.

The codes of reasons: `set`, `split`, `queries`, `judgements` and `images` keep a row away; `cell`, `wording`, `view`,
`first-stage`, `ties` and `cut` take the difference from it.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from eyespot.benchmarks._benchmark import Printed
from eyespot.benchmarks._evaluating import Evaluation, Result
from eyespot.types import Note, quantity

CLOSE = 0.02  # of the images: some cannot be fetched any more, or are one file under several names


class Beside(NamedTuple):
    """The rows that stand beside a result, and why the others do not, by their source.

    `reasons` are those of rows that are not compared, `grounds` what is known to agree, by source.
    """

    rows: list[Printed]
    without: dict[str, list[Note]]
    reasons: dict[Printed, list[Note]]
    grounds: dict[str, list[Note]]


def beside(evaluation: Evaluation, result: Result) -> Beside:
    """What papers print of this task and these measures; two-stage numbers at the depth that was measured."""
    labels: dict[str, str] = {}  # the benchmark's own measures come first; one that is asked for may share a name
    for label, measure in result.scores.measures.items():
        labels.setdefault(str(measure), label)
    every = [one._replace(measure=labels.get(one.measure, "")) for one in evaluation.benchmark.printed()]
    here = (one for one in every if one.task == result.task.name and one.measure)
    about = [one for one in here if one.depth in (None, evaluation.depth)]
    whys = [list(_differences(evaluation, result, one, about)) for one in about]
    rows = [one for one, why in zip(about, whys, strict=True) if not why]
    sources = dict.fromkeys(one.source for one in rows)  # in their order: the same bytes each time
    without = {one.source: why for one, why in zip(about, whys, strict=True) if one.source not in sources}
    reasons = reasons_of(evaluation, result, rows, impossible(every))
    official = bool(evaluation.benchmark.official)
    grounds = {}
    for source in sources:
        if compared := [row for row in rows if row.source == source and row not in reasons]:
            grounds[source] = grounds_of(result, compared, official)
    return Beside(rows, without, reasons, grounds)


def _differences(evaluation: Evaluation, result: Result, row: Printed, about: list[Printed]) -> Iterator[Note]:
    """What is known to differ between a result and what a row was measured on."""
    split = row.split or evaluation.benchmark.splits[0]
    yield from result.task.unofficial
    if any(why.code == "set" for why in result.task.unofficial):
        return
    if evaluation.split != split:
        text = f"the paper's numbers are of {split}, these of {evaluation.split}; evaluate those with --split {split}"
        yield Note("split", text)
        return
    if lacking := len(result.scores.missing):
        yield Note("queries", f"{lacking:,} of {quantity(len(result.task.judged.qrels), 'query')} without a ranking")
    official = evaluation.benchmark.official.get((split, result.task.name))
    if official is None:
        return
    queries = len(result.scores.queries)
    if queries != official.queries:
        yield Note("queries", f"{_part(queries, official.queries)} queries")
    if missing := result.run.header.get("missing"):
        yield Note("images", f"missing: {quantity(missing, 'image')} of the benchmark")
        return
    if unlisted := result.run.header.get("unlisted"):
        yield Note("images", f"{unlisted:,} ranked images are not in the list of the benchmark")
        return
    several = len({one.images for one in about}) > 1
    yield from _other_images(result, row.images or official.images, several)


def _other_images(result: Result, wanted: int | None, several: bool) -> Iterator[Note]:
    """`several`: there are rows of more than one collection, so that a run that does not say which fits none."""
    if (candidates := result.task.judged.candidates) is not None:
        ranked: int | None = int(np.diff(candidates.only(set(result.scores.queries)).offsets).min())
    else:  # how many images each query ranked at least; None where nobody says
        ranked = result.ranked or len(result.task.pool) or None
    if wanted is None:
        return
    if ranked is not None and abs(ranked - wanted) > CLOSE * wanted:
        yield Note("images", f"{_part(ranked, wanted)} images were ranked")
    elif ranked is None and several:
        yield Note("images", "how many images were ranked is not known; say so with --pool")


def _part(here: int, there: int) -> str:
    return f"{here:,} of the paper's {there:,}" if here < there else f"{here:,} and not the paper's {there:,}"


TELLING = 0.001  # a difference that shows in percent with one digit
PROMPTED = ("anthropic", "openai", "transformers")  # judges that answer a prompt


def reasons_of(
    evaluation: Evaluation, result: Result, rows: Sequence[Printed], odd: Mapping[Printed, str]
) -> dict[Printed, list[Note]]:
    """Rows that are not compared, each with why: `odd` cell, prompt, view of pictures, first stage, ties, or cut."""
    judge = str(result.run.header.get("judge", ""))
    used = str(evaluation.made.get("arguments", {}).get("wording") or "")
    of_measure = {label: list(_ties_and_cut(result, label)) for label in {row.measure for row in rows}}
    first_stages = {source: _first_stage(result, rows, source) for source in {row.source for row in rows}}
    found: dict[Printed, list[Note]] = {}
    for row in rows:
        found[row] = [Note("cell", odd[row])] if row in odd else []
        # A model that answers another prompt is another system than the same model in the paper
        if row.wording and judge.partition(":")[0] in PROMPTED and not used.startswith(f"{row.wording}:"):
            text = f"the paper's models answer its own prompts, {judge} another"
            found[row].append(Note("wording", f"{text}; --wording {row.wording}:CLONE asks theirs"))
        if row.view and (view := result.run.header.get("view")) and view != row.view:
            found[row].append(Note("view", f"the paper's encoder saw pictures otherwise ({row.view}, here {view})"))
        found[row] += [*(first_stages[row.source] if row.first_stage else ()), *of_measure[row.measure]]
    return {row: reasons for row, reasons in found.items() if reasons}


def grounds_of(result: Result, rows: Sequence[Printed], official: bool) -> list[Note]:
    """In what a result is known to agree with these rows: queries, images, ties and cut; and how pictures were seen."""
    queries = f"{quantity(len(result.scores.queries), 'query')}"
    if result.task.verified:
        queries += f" (SHA-256 of {', '.join(result.task.verified)})"
    elif official:
        queries += " (by their number; no SHA-256 of the official files is known)"
    whole = "" if result.ranked or result.task.pool else " (of the full set; the run does not say)"
    kind = "captions" if result.task.way == "i2t" else "images"
    images = f"{kind} not counted" if result.pool is None else f"{result.pool:,} {kind}{whole}"
    images = "all candidates" if result.task.judged.candidates is not None else images
    measures = {row.measure for row in rows} & result.scores.measures.keys()
    averaged = all(result.scores.measures[label].definition["ties"] == "average" for label in measures)
    ties = "equal scores averaged" if averaged else "no equal scores that count"
    notes = [Note("queries", queries), Note("images", images), Note("ties", ties), Note("cut", "rankings to the cut")]
    if view := result.run.header.get("view"):
        known = "" if all(row.view for row in rows) else " (how the paper's were seen is not known)"
        notes.append(Note("view", f"pictures: {view}{known}"))
    return notes


def _first_stage(result: Result, rows: Sequence[Printed], source: str) -> list[Note]:
    """Whether the ranking that is re-ranked scores what the paper prints of its own."""
    of_source = [row for row in rows if row.source == source]
    name = next((row.first_stage for row in of_source if row.first_stage), None)
    first_stage = {row.measure: row for row in of_source if row.method == name and row.column is None}
    if not result.stages:
        return []
    for label, row in first_stage.items():
        measured = result.stages[0].scores.mean(label)
        if abs(measured - row.value) > (0.00051 if row.percent else 0.0051):  # half a digit as printed
            scale = 100 if row.percent else 1
            text = f"{name} has {label} {scale * row.value:.4g}, the first stage here {scale * measured:.4g}"
            return [Note("first-stage", f"another ranking is re-ranked: {text}")]
    return []


def _ties_and_cut(result: Result, label: str) -> Iterator[Note]:
    """Where the order of equal scores moves a paper's last digit, and where rankings end before the cut.

    What is not ranked is scored as if nothing relevant came after.
    """
    low, high = result.scores.ranges.get(label, (0.0, 0.0))
    spread, cut = high - low, result.scores.measures[label].cutoff
    if spread > TELLING:
        text = f"the order of equal scores moves {label} by up to {100 * spread:.1f} %; give scores with more digits"
        yield Note("ties", text)
    if cut is not None and (result.pool or math.inf) > cut:
        short = int((np.diff(result.run.offsets) < cut).sum())
        if short:
            yield Note("cut", f"{label} looks at {cut} ranks; {short:,} of {len(result.run):,} rankings are shorter")


def column(
    task: str,
    measure: str,
    by: str | None = None,
    group: str | None = None,
    *,
    percent: bool = True,
    images: int | None = None,
) -> Printed:
    """Which task and measure a column of a printed table is about: a number that has no value yet."""
    return Printed("", "", task, measure, math.nan, percent, by, group, images=images)


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a printed table, as text."""
    with resources.files("eyespot.benchmarks").joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(
    name: str, source: str, method: tuple[str, ...], columns: Mapping[str, Printed], first_stage: str | None = None
) -> Iterator[Printed]:
    """A table with a row for each method: what is printed, empty cells left out.

    `first_stage` is the method whose ranking the others re-rank.
    """
    for row in rows(name):
        whose = " ".join(row[part] for part in method if row[part])
        for column, about in columns.items():
            if row[column]:
                value = printed(source, whose, about, float(row[column]))
                yield value._replace(first_stage=None if whose == first_stage else first_stage)


def printed(source: str, method: str, about: Printed, value: float, split: str | None = None) -> Printed:
    """One number; a percentage becomes a fraction."""
    fraction = value / 100 if about.percent else value
    return about._replace(source=source, method=method, value=fraction, split=split)


def prompted(rows: Iterable[Printed], models: Collection[str]) -> Iterator[Printed]:
    """The numbers with those of `models` marked: they answer the prompts that INQUIRE released."""
    return (row._replace(wording="inquire") if row.method in models else row for row in rows)


# -- cells that cannot be as printed ------------------------------------------------------------------------------

REPEATED = {("ReCoS, table 2 (Flickr30K)", "ALBEF"): "five of its six figures are those of MSCOCO"}  # by reading
GROWING = re.compile(r"(Hit|R)@(\d+)")  # measures that cannot fall with the cut


def impossible(every: Sequence[Printed]) -> dict[Printed, str]:
    """Cells that contradict others of their table, with the reason; which of two is wrong is not known."""
    found = {row: REPEATED[row.source, row.method] for row in every if (row.source, row.method) in REPEATED}
    curves: dict[tuple[object, ...], dict[int, Printed]] = defaultdict(dict)
    for row in every:
        if cut := GROWING.fullmatch(row.measure):
            whose = (row.source, row.method, row.task, row.column, row.group, row.depth, row.split, cut[1])
            curves[whose][int(cut[2])] = row
    for (*_, name), curve in curves.items():
        for (k, less), (deeper, more) in pairwise(sorted(curve.items())):
            if less.value > more.value:
                found |= dict.fromkeys((less, more), f"{name}@{deeper} cannot be below {name}@{k}")
    return found
