"""Why a number of a paper beside a measured one is not compared with it, though both are of the same set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from eyespot.benchmarks._benchmark import Printed
from eyespot.benchmarks._evaluating import Evaluation, Result
from eyespot.benchmarks._published import impossible
from eyespot.types import Note

TELLING = 0.001  # a difference that shows in percent with one digit
PROMPTED = ("anthropic", "openai", "transformers")  # judges that answer a prompt


def reasons_of(evaluation: Evaluation, result: Result, rows: Sequence[Printed]) -> dict[Printed, list[Note]]:
    """The rows that are not compared, each with what keeps them apart: its cell, prompt, first stage, ties or cut."""
    odd = impossible(evaluation.benchmark.printed())
    of_measure = {label: [*_ties(result, label), *_cut(result, label)] for label in {row.measure for row in rows}}
    first_stages = {source: _first_stage(result, rows, source) for source in {row.source for row in rows}}
    found: dict[Printed, list[Note]] = {}
    for row in rows:
        cell = [Note("cell", odd[row])] if row in odd else []
        stage = first_stages[row.source] if row.first_stage else []
        found[row] = [*cell, *_wording(evaluation, result, row), *stage, *of_measure[row.measure]]
    return {row: reasons for row, reasons in found.items() if reasons}


def grounds_of(result: Result, rows: Iterable[Printed], official: bool) -> list[Note]:
    """In what a result is known to agree with these rows: queries, images, ties and cut."""
    queries = f"{len(result.scores.queries):,} queries"
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
    return [Note("queries", queries), Note("images", images), Note("ties", ties), Note("cut", "rankings to the cut")]


def _wording(evaluation: Evaluation, result: Result, row: Printed) -> Iterator[Note]:
    """A model that answers another prompt is another system than the same model in the paper."""
    judge = str(result.run.header.get("judge", ""))
    used = str(evaluation.made.get("arguments", {}).get("wording") or "")
    if row.wording and judge.partition(":")[0] in PROMPTED and not used.startswith(f"{row.wording}:"):
        text = f"the paper's models answer its own prompts, {judge} another; --wording {row.wording}:CLONE asks theirs"
        yield Note("wording", text)


def _first_stage(result: Result, rows: Sequence[Printed], source: str) -> list[Note]:
    """Whether the ranking that is re-ranked scores what the paper prints of its own."""
    mine = [row for row in rows if row.source == source]
    name = next((row.first_stage for row in mine if row.first_stage), None)
    theirs = {row.measure: row for row in mine if row.method == name and row.column is None}
    if not result.stages:
        return []
    for label, row in theirs.items():
        measured = result.stages[0].scores.mean(label)
        if abs(measured - row.value) > (0.00051 if row.percent else 0.0051):  # half a digit as printed
            scale = 100 if row.percent else 1
            text = f"{name} has {label} {scale * row.value:.4g}, the first stage here {scale * measured:.4g}"
            return [Note("first-stage", f"another ranking is re-ranked: {text}")]
    return []


def _ties(result: Result, label: str) -> Iterator[Note]:
    """Where the order of equal scores moves the mean by more than a paper's last digit."""
    spread = result.tie_spread[label]
    if spread > TELLING:
        text = f"the order of equal scores moves {label} by up to {100 * spread:.1f} %; give scores with more digits"
        yield Note("ties", text)


def _cut(result: Result, label: str) -> Iterator[Note]:
    """Rankings that end before the cut are scored as if nothing relevant came after."""
    cut = result.scores.measures[label].cutoff
    if cut is None or (result.pool or math.inf) <= cut:
        return
    short = int((np.diff(result.run.offsets) < cut).sum())
    if short:
        yield Note("cut", f"{label} looks at {cut} ranks; {short:,} of {len(result.run):,} rankings are shorter")
