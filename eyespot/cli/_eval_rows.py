"""`eyespot eval --row`: the rows of a table, each a system with its own options, evaluated one after the other."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._eval_inputs import EvalOptions, known
from eyespot.cli._eval_made import arguments_of, evaluation_of, inputs_of, ranked_by, some_failed
from eyespot.cli._judge_options import SOME_FAILED
from eyespot.cli.console import note, print_json, print_line, progress_bar
from eyespot.types import EyespotError, NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.gallery.view import View

OF_A_ROW = (
    *("run", "run_format", "gallery", "encoder", "index", "adapt", "adapt_depth", "neighbours", "alpha", "by"),
    *("rerank_local", "expand", "rerank", "depth", "blend", "wording", "match", "pool"),
)
OF_ONE_SYSTEM = {"system": "--name", "map": "--map", "beside": "--beside", "images": "--images"}
SIGNATURE = "row.json"


def row_option() -> Any:
    """The option `--row`."""
    help = "A row of a table: a system's name, and what makes it, as in 'QE-1 = --neighbours 1'; repeatable."
    return typer.Option(None, "--row", metavar="NAME=OPTIONS", help=help)


def rows_in(context: typer.Context, options: EvalOptions, rows: Sequence[str]) -> list[EvalOptions]:
    """The options of each row: those of the command, and its own in their place.

    `UsageError` for a row without a name, two of one name, and options that all rows share.
    """
    if rows and (alone := [option for name, option in OF_ONE_SYSTEM.items() if vars(options)[name]]):
        raise UsageError(f"{alone[0]} is about one system; leave it out, or leave out --row")
    if rows and (context.params["dry_run"] or context.params["again"]):
        raise UsageError("--dry-run and --from are about one system; leave them out, or leave out --row")
    found = [_row(context, options, row) for row in rows]
    names = Counter(folder_name(str(one.system)) for one in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise UsageError(f"--row has {twice[0]!r} twice; give each row a name of its own")
    return found


def _row(context: typer.Context, options: EvalOptions, row: str) -> EvalOptions:
    name, _, rest = row.partition("=")
    if not name.strip() or name.strip().startswith("-"):
        raise UsageError(f"--row {row!r} has no name; write it first, as in: --row 'QE-1 = --neighbours 1'")
    given = _given(context, row, rest)
    if strange := [option for option in given if option not in OF_A_ROW]:
        option = strange[0].replace("_", "-")
        raise UsageError(f"--row {row!r}: {option} is the same for all rows; give it to eyespot eval itself")
    return replace(options, **given, system=name.strip())


def _given(context: typer.Context, row: str, rest: str) -> dict[str, Any]:
    """The parameters that a row names, read as the command line reads them."""
    try:
        words = shlex.split(rest)
        inner = context.command.make_context(context.info_name, words, parent=context.parent)
    except ValueError as error:
        raise UsageError(f"--row {row!r} cannot be read ({error}); check its quotes") from None
    except Exception as error:  # of click, whose copy in typer has no public name
        if not hasattr(error, "format_message"):
            raise
        raise UsageError(f"--row {row!r}: {error.format_message()}; see eyespot eval --help") from None
    sources = {name: inner.get_parameter_source(name) for name in inner.params}
    return {name: inner.params[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def folder_name(name: str) -> str:
    """The folder of a row's report below --out."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "row"


# -- evaluation ---------------------------------------------------------------------------------------------------


def evaluate_rows(rows: Sequence[EvalOptions], json: bool) -> None:
    """The table of all rows; a row that fails is reported, and the others go on (exit code 3)."""
    from eyespot.reports.rows import row_tables
    from eyespot.reports.tables import as_text

    benchmark, _, split = known(rows[0])
    summaries, failed, lacking = [], {}, False
    with progress_bar("rows") as progress:
        for number, row in enumerate(rows):
            progress(str(row.system), number, len(rows))
            try:
                summary, incomplete = _summary(row)
            except EyespotError as error:
                failed[str(row.system)] = str(error)
                note(f"{row.system} is left out: {error}")
                continue
            summaries.append(summary)
            lacking |= incomplete
    if not summaries:
        raise NothingFound(f"no row could be evaluated; the first: {next(iter(failed.values()))}")
    if rows[0].out is not None:
        _write_tables(rows[0].out.expanduser(), summaries)
    if json:
        print_json({"benchmark": benchmark.name, "split": split, "rows": summaries, "failed": failed})
    else:
        print_line("\n\n".join(as_text(table) for table in row_tables(summaries)))
    if failed or lacking:
        raise typer.Exit(SOME_FAILED)


def _summary(row: EvalOptions) -> tuple[dict[str, Any], bool]:
    """The summary of a row, and whether a judge left some of it undone; read where an earlier command wrote it."""
    from eyespot.reports.folder import write
    from eyespot.reports.summary import read_summary, summary_of

    folder = None if row.out is None else row.out.expanduser() / folder_name(str(row.system))
    signature = _signature(row) if folder is not None else {}
    if folder is not None and _signed(folder) == signature:
        note(f"{row.system} is in {folder} already, from the same options and files; remove it to evaluate it again")
        return read_summary(folder), False
    ranked = ranked_by(row)
    if not ranked.judged:
        raise NothingFound("no image of this split is judged relevant; evaluate it without --row to get its rankings")
    evaluation = evaluation_of(row, ranked)
    for sentence in evaluation.notes:
        note(f"{row.system}: {sentence}")
    if folder is not None:
        (folder / SIGNATURE).unlink(missing_ok=True)  # of other options: a kill while writing must not leave it
        write(evaluation, folder)
        if not some_failed(evaluation):
            _write(folder / SIGNATURE, json.dumps(signature, indent=2) + "\n")
    return summary_of(evaluation), some_failed(evaluation)


def _signature(row: EvalOptions) -> dict[str, Any]:
    """What a row's numbers depend on: its options, its files, and what its gallery holds."""
    from eyespot.benchmarks import made_by
    from eyespot.cli.settings import searched_here
    from eyespot.search.collection import Collection

    paths = [Path(run.partition("=")[2] if not Path(run).exists() else run) for run in row.run or ()]
    arguments = {name: value for name, value in arguments_of(row, {}).items() if name != "out"}
    made = made_by(arguments, inputs_of(row, paths))
    signature = {name: made[name] for name in ("eyespot", "arguments", "inputs")}
    place = searched_here(row.gallery, row.encoder)
    if (place / "gallery.toml").is_file():
        view = Collection(place, row.encoder, row.index or "exact").view
        signature |= {"space": view.space.digest, "pictures": int(view.live.sum()), "shards": _shards(view)}
    found: dict[str, Any] = json.loads(json.dumps(signature, default=str))
    return found


def _shards(view: View) -> list[list[Any]]:
    """Of each shard the name, and when its list of pictures and its vectors were last written."""
    from eyespot.gallery import disk

    named = [(shard, [shard / disk.ITEMS, shard / f"{view.stem}.npy"]) for shard in view.shards]
    return [[shard.name, *(path.stat().st_mtime_ns for path in paths)] for shard, paths in named]


def _signed(folder: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((folder / SIGNATURE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _write_tables(out: Path, summaries: Sequence[Mapping[str, Any]]) -> None:
    """tables.md and tables.tex of all rows."""
    from eyespot.reports.rows import row_tables
    from eyespot.reports.tables import as_latex, as_markdown

    tables = row_tables(summaries)
    _write(out / "tables.md", as_markdown(tables))
    _write(out / "tables.tex", as_latex(tables))
    note(f"{len(summaries)} reports and their tables are in {out}; look at {out / 'tables.md'}")


def _write(path: Path, text: str) -> None:
    from eyespot.storage.atomic import write_whole

    write_whole(path, lambda file: file.write(text.encode()))
