"""`eyespot build rmir` and `recos`: sets that a pipeline makes from one's own photos, with a bar while it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import (
    escaped,
    exit_if_failed,
    print_line,
    print_result,
    print_summary,
    progress_bar,
    warn,
    warn_all,
)
from eyespot.cli.settings import json_option
from eyespot.settings.build import RecipeSettings, RecosSettings, RmirSettings
from eyespot.types import UsageError, quantity

if TYPE_CHECKING:
    from eyespot.curate.recos.pipeline import RecosPipeline
    from eyespot.curate.rmir.pipeline import RmirPipeline
    from eyespot.curate.set_folder import SetFolder
    from eyespot.pipelines import CostLimits, Recipe, RunOptions, Step, StepResult


def rmir(settings: RmirSettings, json: bool = json_option()) -> None:
    """Make an RMIR set: questions about your photos that need reasoning, and the photos that answer them."""
    from eyespot.curate.rmir.files import MAIN
    from eyespot.curate.rmir.making import AUDIT, in_rounds, notes, summary, write_set
    from eyespot.curate.rmir.pipeline import RmirPipeline
    from eyespot.curate.rmir.questions import DOMAINS
    from eyespot.curate.set_folder import SetFolder
    from eyespot.formats.pictures import as_it_is, without_position

    if (given := _recipe(settings, DOMAINS)) is None:
        return
    pipe = RmirPipeline(*given, settings.gallery, settings.preview or settings.limit)
    how = pipe.running(_limits(pipe.recipe.limits, settings), settings.retry_failed, warn, batch=settings.batch)
    if settings.dry_run:
        _tell_planned(pipe, how, json)
        return
    pipe.check(how.limits)
    made = in_rounds(pipe, lambda one: _carry_out(one.steps, one.work, how))
    if settings.preview:
        _tell_preview(pipe.work, settings, json)
        return
    share = (as_it_is if settings.positions else without_position) if settings.pictures else None
    target = SetFolder.of(pipe.out, MAIN, len(made.queries), made.done, replace=settings.replace)
    cases = write_set(made, pipe.out, share=share, verdicts=settings.audit, target=target)
    _tell_set(target, notes(made), (pipe.out / AUDIT / name for name in cases))
    _tell_done(made.done, json, out=str(target.place), audit=cases, **summary(made))


def recos(settings: RecosSettings, json: bool = json_option()) -> None:
    """Make a ReCoS set: captioned pictures (v0), a similar one for each (v1), and many more like them (v2)."""
    from eyespot.curate.recos.captions import DOMAINS
    from eyespot.curate.recos.files import MAIN
    from eyespot.curate.recos.making import RecosSteps, in_rounds, notes, shortfalls, write
    from eyespot.curate.recos.pipeline import RecosPipeline, galleries_of
    from eyespot.curate.set_folder import SetFolder
    from eyespot.formats.pictures import as_it_is, without_position

    if (given := _recipe(settings, DOMAINS)) is None:
        return
    share = as_it_is if settings.positions else without_position
    pipe = RecosPipeline(*given, galleries_of(settings.gallery), settings.preview or settings.limit)
    how = pipe.running(_limits(pipe.recipe.limits, settings), settings.retry_failed, warn, batch=settings.batch)
    if settings.dry_run:
        _tell_planned(pipe, how, json)
        return
    pipe.check(how.limits)
    pipe, done = in_rounds(pipe, lambda steps: _carry_out(steps, pipe.work, how))
    if settings.preview:
        _tell_preview(pipe.work, settings, json)
        return
    target = SetFolder.of(pipe.out, MAIN, len(RecosSteps(pipe, done).captions()), done, replace=settings.replace)
    made, counts = write(pipe, done, share=share, target=target)
    _tell_set(target, notes(made), pipe.queues())
    missing = [one._asdict() for one in shortfalls(made)]
    _tell_done(done, json, out=str(target.place), versions=counts, missing=missing)


def transcript(
    run: Path = typer.Argument(help="The folder that eyespot build wrote."),
    record: str | None = typer.Argument(None, help="A photo, question, triplet or caption, by its id."),
    html: Path | None = typer.Option(None, help="Write a page with the pictures, too."),
    json: bool = json_option(),
) -> None:
    """Print what models were asked about a record, what came and what was decided, from its seed to the end."""
    from eyespot.curate.transcript import first_record

    _tell_transcripts(run, [record or first_record(run)], html, json)


def compare(
    runs: list[Path] = typer.Argument(help="The folders of two runs or more of the same photos."),
    json: bool = json_option(),
) -> None:
    """Set runs of the same photos side by side, as with two prompts: what stays, errors on controls, cost."""
    from eyespot.curate.transcript import beside, compared

    print_result(found := compared(runs), beside(found), json)


def _tell_transcripts(run: Path, records: Sequence[str], html: Path | None, json: bool, **more: Any) -> None:
    from eyespot.curate.transcript import as_lines, as_page, transcript
    from eyespot.storage.atomic import write_whole

    found = {record: transcript(run, record) for record in records}
    if html is not None:
        title = f"Preview of {run.parent.name}" if "spent" in more else f"Transcript of {run.name}"
        write_whole(html, lambda file: file.write(as_page(title, found).encode("utf-8", "replace")))
    lines = [escaped(line) for record, steps in found.items() for line in (f"# {record}", *as_lines(steps))]
    print_result({"run": str(run), "records": found, **more}, lines, json)


def _tell_preview(work: Path, settings: RecipeSettings, json: bool) -> None:
    """What models were asked and answered about the first photos, and the cost, which counts as any other."""
    from eyespot.curate.transcript import compared, first_prompted, first_record

    (spent,) = (one["spent"] for one in compared([work]).values())
    page = work.parent / "preview.html"
    _tell_transcripts(work, first_prompted(work)[: settings.preview] or [first_record(work)], page, json, spent=spent)
    cost = "an unknown price" if spent["money"] is None else f"${spent['money']:.2f}"
    warn(f"{quantity(spent['calls'], 'call')} and {cost} so far count against the budget; a run here repeats none")
    print_summary(f"the page is {page}")


# -- running a pipeline ---------------------------------------------------------------------------------------------


def _recipe(settings: RecipeSettings, domains: Path) -> tuple[Recipe, Path] | None:
    """The recipe, or the domain of its name, and the set's folder; None if it was only to be printed."""
    from eyespot.pipelines import read_recipe
    from eyespot.storage.text_files import text_of

    shipped = domains / f"{settings.recipe}.toml"
    place = shipped if shipped.exists() and not settings.recipe.exists() else settings.recipe
    if settings.show:
        print_line(text_of(place).rstrip())
        return None
    if settings.out is None:
        raise UsageError("the set needs a folder; name one with --out")
    return read_recipe(place), settings.out


def _limits(recipe: CostLimits, settings: RecipeSettings) -> CostLimits:
    """Those of the recipe, and those of the command line in their place."""
    given: dict[str, Any] = {"calls": settings.budget_calls, "money": settings.budget_money}
    return dataclasses.replace(recipe, **{name: value for name, value in given.items() if value is not None})


def _carry_out(steps: Sequence[Step], work: Path, options: RunOptions) -> list[StepResult]:
    """Run the steps with a bar on a terminal; ends with exit code 3 once the budget is spent."""
    from eyespot.pipelines import run

    with progress_bar("records") as tell:
        return run(steps, work, dataclasses.replace(options, tell=tell))


def _tell_planned(pipe: RmirPipeline | RecosPipeline, options: RunOptions, json: bool) -> None:
    from eyespot.pipelines import plan

    lines, planned = [], plan(pipe.steps, pipe.work, options)
    for step in planned:
        if step.finished:
            outlook = f"finished, {quantity(step.records or 0, 'record')}"
        elif not step.records:
            outlook = "to run on records that are not known yet"
        else:
            spent = step.spent
            likely = f"likely {spent.dollars}" if spent.money else "free"
            likely = f"no price is known for {', '.join(step.unpriced)}" if step.unpriced else likely
            likely += f", {quantity(step.waiting, 'request')} at work in batches" if step.waiting else ""
            price = f"; at most {quantity(spent.calls, 'call')}, {likely}" if spent.calls else ""
            outlook = f"to run on at most {quantity(step.records, 'record')}, {step.known:,} of them done{price}"
        lines.append(f"{step.name:<16} {outlook}")
    costs = [{**step.spent._asdict()} | ({"money": None} if step.unpriced else {}) for step in planned]
    steps = [{**step._asdict(), "spent": cost} for step, cost in zip(planned, costs, strict=True)]
    print_result({"steps": steps}, lines, json)


def _tell_set(target: SetFolder, notes: Iterable[str], queues: Iterable[Path]) -> None:
    warn_all(filter(None, [*notes, target.note]))
    tell_lapsed(queues)
    print_summary(f"the set is in {target.place}; look at {target.place / 'card.html'}")


def _tell_done(done: Sequence[StepResult], json: bool, **more: Any) -> None:
    """What each step did, as lines or as JSON with `more`; exit code 3 if records failed in the last run of a step."""
    steps, lines = [], []
    for result in done:
        counts = result.counts
        cost = {"seconds": round(result.cost.seconds, 3), **result.step.cost(result.cost.spent)}
        fields = {"name": result.step.name, "ran": result.ran, "folder": str(result.folder), **counts._asdict()}
        steps.append({**fields, **cost, "answers": [origin.as_json() for origin in result.origins]})
        dropped = "".join(f"; {count:,} {reason}" for reason, count in counts.dropped.items())
        line = f"{counts.came:,} in, {counts.added:,} added, {counts.kept:,} kept{dropped}"
        lines.append(f"{result.step.name:<16} {line}")
    print_result({"steps": steps, **more}, lines, json)
    if failed := sum(result.counts.failed for result in done):
        warn(f"{quantity(failed, 'record')} failed; what was dropped says why, --retry-failed tries them again")
    exit_if_failed(failed)


def tell_lapsed(queues: Iterable[Path]) -> None:
    """Note how many decisions of each queue are out of date."""
    from eyespot.pipelines.human_review import Queue

    for queue in queues:
        if count := len(Queue(queue).lapsed()):
            lapsed = quantity(count, f"decision on {queue} no longer stands", f"decisions on {queue} no longer stand")
            warn(f"{lapsed}, because what was seen has changed; decide again")
