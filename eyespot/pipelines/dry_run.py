"""A dry run: what running would do, to how many records at most, and what it would cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from eyespot.pipelines.budget_limits import Spent
from eyespot.pipelines.outcomes import Records
from eyespot.pipelines.runner import RunOptions, check, digest_here, mark_of
from eyespot.pipelines.step import MapStep, Step
from eyespot.pipelines.step_folder import CachedResult, cached_result, place_of
from eyespot.pipelines.work_db import FILE, WorkDB


class PlannedStep(NamedTuple):
    """A step that is to come: `records` would be worked on at most (None: nobody knows yet), `known` are done already.

    `spent` is the most calls of the step, and what these are likely to cost: a model that thinks costs more. What the
    disk already answers costs nothing.
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
    stands: dict[str, Records] = {}  # what finished steps kept; what the others will is not known
    before, most = Records(), how.limit
    for number, step in enumerate(steps, 1):
        mark = mark_of(step, how, stands) if set(step.needs) <= set(stands) else None
        known = memory.known(mark) if memory and mark and isinstance(step.work, MapStep) else 0
        reached = len(stands) == number - 1  # all before it are finished
        found = (
            _finished(place_of(work, number, step), digest_here(mark, before, how), how)
            if mark and reached and not step.always
            else None
        )
        planned.append(_one(step, found, len(before) if reached and number > 1 else most, known))
        before, most = (found.records, len(found.records)) if found else (before, planned[-1].records)
        stands |= {step.name: before} if found else {}
    return planned


def _finished(folder: Path, digest: str, how: RunOptions) -> CachedResult | None:
    found = cached_result(folder)
    if found is None or found.digest != digest or (how.retry_failed and found.counts.failed):
        return None
    return found


def _one(step: Step, found: CachedResult | None, records: int | None, known: int) -> PlannedStep:
    if found is not None:
        return PlannedStep(step.name, True, len(found.records), found.counts.came, Spent())
    known = min(known, records or 0)
    return PlannedStep(step.name, False, records, known, step.expects.times((records or 0) - known))
