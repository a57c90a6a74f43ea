"""A dry run: what running would do, to how many records at most, and what it would cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.pipelines.budget_limits import Spent
from eyespot.pipelines.outcomes import Records
from eyespot.pipelines.runner import RunOptions, check, digest_here, mark_of
from eyespot.pipelines.step import MapStep, Step
from eyespot.pipelines.step_folder import cached_result, place_of
from eyespot.pipelines.work_db import FILE, WorkDB


class PlannedStep(NamedTuple):
    """A step to come: at most `records` would be worked on (None: unknown yet), of which `known` are done already.

    `spent` is the most calls of the step, and what these are likely to cost: a model that thinks costs more. Answers
    that are on the disk cost nothing.
    """

    name: str
    finished: bool
    records: int | None
    known: int
    spent: Spent


def plan(steps: Sequence[Step], work: Path, how: RunOptions = RunOptions()) -> list[PlannedStep]:
    """What `run` would do; nothing is asked and nothing is written."""
    check(steps)
    if not (work / FILE).exists():
        return _planned(steps, work, how, None)
    with WorkDB(work) as memory:
        return _planned(steps, work, how, memory)


def _planned(steps: Sequence[Step], work: Path, how: RunOptions, memory: WorkDB | None) -> list[PlannedStep]:
    planned: list[PlannedStep] = []
    outputs: dict[str, Records] = {}  # by finished steps; what the others will keep is unknown
    before, most = Records(), how.limit
    for number, step in enumerate(steps, 1):
        mark = mark_of(step, how, outputs) if set(step.needs) <= set(outputs) else None
        reached = len(outputs) == number - 1  # all before it are finished
        result = cached_result(place_of(work, number, step)) if mark and reached and not step.always else None
        retried = result is not None and how.retry_failed and result.counts.failed > 0
        if mark and result and result.digest == digest_here(mark, before, how) and not retried:
            before, most = result.records, len(result.records)
            outputs[step.name] = before
            planned.append(PlannedStep(step.name, True, most, result.counts.came, Spent()))
            continue
        most = len(before) if reached and number > 1 else most
        known = memory.known(mark) if memory and mark and isinstance(step.work, MapStep) else 0
        known = min(known, most or 0)
        planned.append(PlannedStep(step.name, False, most, known, step.expects.times((most or 0) - known)))
    return planned
