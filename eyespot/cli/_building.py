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


def replace_option() -> Any:
    """`--replace` of a builder."""
    return typer.Option(False, "--replace", help="Overwrite an earlier set even if this run lost records that it has.")


def carry_out(steps: Sequence[Step], work: Path, options: RunOptions) -> list[StepResult]:
    """Run the steps with a bar on a terminal; ends with exit code 3 once the budget is spent."""
    from eyespot.pipelines import run
    from eyespot.pipelines.prompts import Models

    client = options.client
    if isinstance(client, Models):
        client = replace(client, note=note)
    with progress_bar("records") as tell:
        return run(steps, work, replace(options, tell=tell, client=client))


def foretell(steps: Sequence[Step], work: Path, options: RunOptions, json: bool) -> None:
    """What running would do at most and is likely to cost, a line each step or as JSON; sends no request."""
    from eyespot.pipelines import plan

    tell_planned(plan(steps, work, options), json)


def tell_planned(planned: Sequence[PlannedStep], json: bool, **more: Any) -> None:
    """What is planned, a line each step or as JSON with `more`."""
    if json:
        print_json({"steps": [{**step._asdict(), "spent": step.spent._asdict()} for step in planned], **more})
        return
    for step in planned:
        if step.finished:
            outlook = f"finished, {step.records:,} records"
        elif step.records is None:
            outlook = "to run on records nobody knows yet"
        else:
            spent = step.spent
            price = f"; at most {spent.calls:,} calls, likely ${spent.money:,.2f}" if spent.calls else ""
            outlook = f"to run on at most {step.records:,} records, {step.known:,} of them done{price}"
        print_line(f"{step.name:<16} {outlook}")


def tell_done(done: Sequence[StepResult], json: bool, **more: Any) -> None:
    """What each step did, as lines or as JSON with `more`; exit code 3 if records failed in the last run of a step."""
    if json:
        steps = []
        for result in done:
            cost = {"seconds": round(result.cost.seconds, 3), **result.cost.spent._asdict()}
            fields = {"name": result.step.name, "ran": result.ran, "folder": str(result.folder)}
            answers = [_origin_fields(origin) for origin in result.origins]
            steps.append({**fields, **result.counts._asdict(), **cost, "answers": answers})
        print_json({"steps": steps, **more})
    else:
        for result in done:
            counts = result.counts
            dropped = "".join(f"; {count:,} {reason}" for reason, count in counts.dropped.items())
            line = f"{counts.came:,} in, {counts.added:,} added, {counts.kept:,} kept{dropped}"
            print_line(f"{result.step.name:<16} {line}")
    failed = sum(result.counts.failed for result in done)
    if failed:
        note(f"{failed:,} records failed; what was dropped says why, --retry-failed tries them again")
        raise typer.Exit(3)


def tell_lapsed(queues: Iterable[Path]) -> None:
    """Note how many decisions of each queue are out of date."""
    from eyespot.pipelines.human_review import Queue

    for queue in queues:
        if count := len(Queue(queue).lapsed()):
            note(
                f"{count:,} decisions on {queue} no longer stand, because what was seen has changed; decide them again"
            )


def _origin_fields(origin: Origin) -> dict[str, Any]:
    """The provenance of answers as JSON; null where none is recorded."""
    known = origin.provenance
    served, changes = (None, None) if known is None else (known.served, [change._asdict() for change in known.changes])
    return {"model": origin.model, "count": origin.answers, "served": served, "changes": changes}
