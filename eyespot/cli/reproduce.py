"""`eyespot reproduce`: a table of a paper, from what it needs to our numbers beside the printed ones."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, note, print_json, print_line
from eyespot.cli.settings import json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.reproduce import TableRecipe
    from eyespot.reproduce.hours import TableHours
    from eyespot.reproduce.presence import Presence

LIST = "list"


def run(
    table: str = typer.Argument(metavar="TABLE", help="The table, such as inquire-2, or `list`."),
    work: Path = typer.Option(None, "--work", metavar="DIR", help="The work folder.", show_default="reproduce/TABLE"),
    check: bool = typer.Option(False, "--check", help="Only say what is needed and what of it is here."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only print the commands, in order."),
    sample: bool = typer.Option(
        False, "--sample", help="A miniature of the table, with made-up queries over sample photos; needs no download."
    ),
    json: bool = json_option(),
) -> None:
    """Reproduce a table of a paper: needs, downloads, commands, and the result beside what is printed; resumes."""
    from eyespot import reproduce
    from eyespot.reproduce.presence import presences
    from eyespot.reproduce.sample_world import refuse_sample

    if table == LIST:
        _list(json)
        return
    recipe = reproduce.recipe(table)
    if check and sample:
        raise UsageError("--check is about the table itself, --sample needs nothing; give one of them")
    folder = work or Path("reproduce") / (f"{table}-sample" if sample else table)
    if dry_run:
        _commands(recipe, folder, sample, json)
        return
    if not sample:
        refuse_sample(folder)
    needs = [] if sample else presences(recipe, folder)
    if check:
        _check(recipe, needs, json)
        return
    if lacking := [need for need in needs if need.stops]:
        first = lacking[0]
        raise NothingFound(f"{recipe.title} needs {first.what} ({first.about}); {first.way}; all: --check")
    _run(recipe, folder, sample)
    _table(recipe, folder, sample, json)


def _list(json: bool) -> None:
    from eyespot import reproduce

    recipes = [reproduce.recipe(name) for name in reproduce.names()]
    if json:
        print_json([{"name": one.name, "title": one.title, "needs": one.needs} for one in recipes])
        return
    for one in recipes:
        print_line(f"{one.name:<12} {one.title}")


def _check(recipe: TableRecipe, needs: list[Presence], json: bool) -> None:
    """What is needed, here or not; exit code 4 if something stops the run that no step fetches."""
    from eyespot.reproduce.hours import hours, measured_rate

    estimate = hours(recipe, measured_rate())
    if json:
        parts = [need._asdict() for need in needs]
        print_json({"table": recipe.name, "needs": recipe.needs, "hours": estimate.as_dict(), "parts": parts})
    else:
        print_line(recipe.title)
        for name, text in recipe.needs.items():
            print_line(f"{name:<8} {text}")
            if name == "hours" and estimate.steps:
                _hours(estimate)
        for need in needs:
            print_line(
                f"{'here' if need.here else 'missing':<8} {need.kind}: {escaped(need.what)} ({escaped(need.about)})"
            )
            if not need.here and need.way:
                print_line(f"{'':<8} {escaped(need.way)}")
    if lacking := sum(need.stops for need in needs):
        raise NothingFound(f"{lacking} of {len(needs)} needs have to be met by hand first; see above")


def _hours(estimate: TableHours) -> None:
    """The steps that embed or judge, with their time on this machine."""
    from eyespot.reproduce.hours import duration
    from eyespot.search.plan.arithmetic import HOUR

    for step in estimate.steps:
        time = "not known" if step.hours is None else duration(step.hours)
        each = "" if step.operations is None else f" x {step.operations:.1e} operations"
        print_line(f"{'':<8} {escaped(step.command)}: {time} ({step.pictures:,} pictures{each}, {escaped(step.model)})")
    if estimate.operations:
        print_line(
            f"{'':<8} together {duration(estimate.total)} on {escaped(estimate.machine)}, which multiplies matrices at"
            f" {estimate.rate:.1e} operations a second; {estimate.operations:.1e} operations, which take"
            f" {duration(estimate.operations / 1e14 / HOUR)} at 1e14 a second"
        )


def _commands(recipe: TableRecipe, folder: Path, sample: bool, json: bool) -> None:
    commands = recipe.commands(sample)
    if json:
        print_json({"work": str(folder), "commands": [command._asdict() for command in commands]})
        return
    place = shlex.quote(str(folder))
    print_line(f"mkdir -p {place} && cd {place}")
    for command in commands:
        print_line(command.line)


def _run(recipe: TableRecipe, folder: Path, sample: bool) -> None:
    from eyespot.reproduce.running import run_commands
    from eyespot.reproduce.sample_world import make_world

    if sample:
        make_world(recipe.world, folder)
    run_commands(recipe.commands(sample), folder, note)


def _table(recipe: TableRecipe, folder: Path, sample: bool, json: bool) -> None:
    """The table on stdout, and as table.md in the work folder."""
    from eyespot.reports.tables import as_markdown, as_text
    from eyespot.reproduce.comparison import as_table, cells, sample_cells
    from eyespot.storage.atomic import write_whole

    found = list(sample_cells(recipe, folder)) if sample else cells(recipe, folder)
    table = as_table(recipe, found, sample)
    text = as_markdown([table])
    write_whole(folder / "table.md", lambda file: file.write(text.encode()))
    if json:
        rows: list[dict[str, Any]] = [cell._asdict() for cell in found]
        print_json({"table": recipe.name, "sample": sample, "note": table.note, "cells": rows})
    else:
        print_line(as_text(table))
