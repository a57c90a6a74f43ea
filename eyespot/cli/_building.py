"""Running a pipeline from the command line: what it would cost, a bar while it runs, and what became of the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import note, print_json, print_line, progress_bar

if TYPE_CHECKING:
    from eyespot.pipelines import Origin, PlannedStep, RunOptions, Step, StepResult


def carry_out(steps: Sequence[Step], work: Path, how: RunOptions) -> list[StepResult]:
    """Run the steps with a bar on a terminal; ends with exit code 3 once the budget is spent."""
    from eyespot.pipelines import run
    from eyespot.pipelines.prompts import Models

    client = replace(how.client, note=note) if isinstance(how.client, Models) else how.client
    with progress_bar("records") as tell:
        return run(steps, work, replace(how, tell=tell, client=client))


def foretell(steps: Sequence[Step], work: Path, how: RunOptions, json: bool) -> None:
    """What running would do at most and is likely to cost, a line each step or as JSON; nothing is asked."""
    from eyespot.pipelines import plan

    tell_planned(plan(steps, work, how), json)


def tell_planned(planned: Sequence[PlannedStep], json: bool) -> None:
    """What is planned, a line each step or as JSON."""
    if json:
        print_json({"steps": [{**one._asdict(), "spent": one.spent._asdict()} for one in planned]})
        return
    for one in planned:
        if one.finished:
            outlook = f"finished, {one.records:,} records"
        elif one.records is None:
            outlook = "to run on records nobody knows yet"
        else:
            spent = one.spent
            price = f"; at most {spent.calls:,} calls, likely ${spent.money:,.2f}" if spent.calls else ""
            outlook = f"to run on at most {one.records:,} records, {one.known:,} of them done{price}"
        print_line(f"{one.name:<16} {outlook}")


def tell_done(done: Sequence[StepResult], json: bool, **more: Any) -> None:
    """What each step did, as lines or as JSON with `more`; exit code 3 if records failed in the last run of a step."""
    told = [_step_fields(one) for one in done]
    if json:
        print_json({"steps": told, **more})
    else:
        for one in told:
            dropped = "".join(f"; {count:,} {reason}" for reason, count in one["dropped"].items())
            print_line(f"{one['name']:<16} {one['came']:,} in, {one['added']:,} added, {one['kept']:,} kept{dropped}")
    failed = sum(one.counts.failed for one in done)
    if failed:
        note(f"{failed:,} records failed; what was dropped says why, --retry-failed tries them again")
        raise typer.Exit(3)


def tell_lapsed(queues: Iterable[Path]) -> None:
    """Note how many decisions no longer stand, queue by queue."""
    from eyespot.pipelines.human_review import Queue

    for queue in queues:
        if count := len(Queue(queue).lapsed()):
            note(f"{count:,} decisions on {queue} no longer stand, for what was seen has changed; decide them again")


def _step_fields(one: StepResult) -> dict[str, Any]:
    cost = {"seconds": round(one.cost.seconds, 3), **one.cost.spent._asdict()}
    told = {"name": one.step.name, "ran": one.ran, "folder": str(one.folder), **one.counts._asdict(), **cost}
    return {**told, "answers": [_origin(origin) for origin in one.origins]}


def _origin(origin: Origin) -> dict[str, Any]:
    """How answers came about, as JSON; null where that is not recorded."""
    known = origin.provenance
    served, changes = (None, None) if known is None else (known.served, [one._asdict() for one in known.changes])
    return {"model": origin.model, "count": origin.answers, "served": served, "changes": changes}
