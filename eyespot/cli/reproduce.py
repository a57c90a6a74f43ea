"""`eyespot reproduce`: a table of a paper, from what it needs to our numbers; `eyespot download` of what it needs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import conclude, escaped, exit_if_failed, print_result, progress_bar, warn
from eyespot.cli.settings import flag, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.reproduce import TableRecipe
    from eyespot.reproduce.recipes import Presence

LIST = "list"


def run(
    table: str = typer.Argument(metavar="TABLE", help="The table, such as inquire-2, or `list`."),
    work: Path = typer.Option(None, "--work", metavar="DIR", help="The work folder.", show_default="reproduce/TABLE"),
    check: bool = flag("--check", "Only say what is needed and what of it is here."),
    dry_run: bool = flag("--dry-run", "Only print the commands, in order."),
    sample: bool = flag("--sample", "A miniature of the table: made-up queries over sample photos; needs no download."),
    only: list[str] = typer.Option(
        [], "--only", metavar="SYSTEM", help="Only this row, by its name or method; repeatable.", show_default=False
    ),
    skip: list[str] = typer.Option([], "--skip", metavar="SYSTEM", help="Leave out; repeatable.", show_default=False),
    json: bool = json_option(),
) -> None:
    """Reproduce a table of a paper: needs, downloads, commands, and the result beside what is printed; resumes."""
    from eyespot import reproduce
    from eyespot.reproduce.recipes import presences
    from eyespot.reproduce.running import make_world, refuse_sample, run_commands

    if table == LIST:
        recipes = [reproduce.recipe(name) for name in reproduce.names()]
        fields = [{"name": one.name, "title": one.title, "needs": one.needs} for one in recipes]
        print_result(fields, (f"{one.name:<12} {one.title}" for one in recipes), json)
        return
    recipe = reproduce.recipe(table)
    if check and sample:
        raise UsageError("--check is about the table itself, --sample needs nothing; give one of them")
    folder = work or Path("reproduce") / (f"{table}-sample" if sample else table)
    commands = recipe.commands(sample, only, skip)
    if dry_run:
        place = shlex.quote(str(folder))
        lines = [f"mkdir -p {place} && cd {place}", *(command.line for command in commands)]
        print_result({"work": str(folder), "commands": [command._asdict() for command in commands]}, lines, json)
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
    if sample:
        make_world(recipe.world, folder)
    _table(recipe, folder, sample, failed=run_commands(commands, folder, warn), json=json)


def _check(recipe: TableRecipe, needs: list[Presence], json: bool) -> None:
    """What is needed, here or not; exit code 4 if something stops the run that no step fetches."""
    lines = [recipe.title, *(f"{name:<8} {text}" for name, text in recipe.needs.items())]
    for need in needs:
        here = "here" if need.here else "missing"
        lines.append(f"{here:<8} {need.kind}: {escaped(need.what)} ({escaped(need.about)})")
        if not need.here and need.way:
            lines.append(f"{'':<8} {escaped(need.way)}")
    by_hand = {row.name: row.by_hand for row in recipe.systems if row.by_hand}
    lines += [f"by hand  row: --only {name} ({text})" for name, text in by_hand.items()]
    parts = [asdict(need) for need in needs]
    print_result({"table": recipe.name, "needs": recipe.needs, "parts": parts, "by_hand": by_hand}, lines, json)
    if lacking := sum(need.stops for need in needs):
        raise NothingFound(f"{lacking} of {len(needs)} needs have to be met by hand first; see above")


def _table(recipe: TableRecipe, folder: Path, sample: bool, *, failed: Mapping[str, str], json: bool) -> None:
    """The table on stdout, and as table.md in the work folder."""
    from eyespot.reports.tables import as_markdown, as_text
    from eyespot.reproduce.comparison import as_table, cells, sample_cells
    from eyespot.storage.atomic import write_whole

    found = list(sample_cells(recipe, folder)) if sample else cells(recipe, folder, failed)
    table = as_table(recipe, found, sample)
    text = as_markdown([table])
    write_whole(folder / "table.md", lambda file: file.write(text.encode()))
    rows = [cell._asdict() for cell in found]
    fields = {"table": recipe.name, "sample": sample, "note": table.note, "cells": rows, "failed": failed}
    print_result(fields, [as_text(table)], json)
    conclude(f"written to {folder / 'table.md'}")
    for system, why in failed.items():
        warn(f"{system} is not in the table: {why}; run the same line again to go on from there")
    exit_if_failed(failed)


def download(
    source: str = typer.Argument(
        metavar="SOURCE", help="https://…/FILE, hub:OWNER/NAME or hub:datasets/OWNER/NAME, with @REVISION if you like."
    ),
    out: Path = typer.Option(..., "--out", help="The folder to put it into."),
    files: list[str] = typer.Option(None, "--files", metavar="PATTERN", help="Of a repository only these; repeatable."),
    sha256: str = typer.Option(None, "--sha256", help="Of a single file: the digest that it must have."),
    json: bool = json_option(),
) -> None:
    """Download a repository of the hub, or one file; run it again to go on where it was cut."""
    from eyespot.models.downloads import HUB, download as fetched

    if sha256 and HUB.fullmatch(source):
        raise UsageError("--sha256 is of a single file; those of a repository are checked with the hub's own digests")
    with progress_bar("bytes") as progress:
        done = fetched(source, out, files, progress, sha256=sha256)
    made = {"place": str(done.place), "revision": done.revision, "bytes": done.bytes, "sha256": done.sha256}
    print_result(made, [str(done.place)], json)
