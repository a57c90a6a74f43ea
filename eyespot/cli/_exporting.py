"""`eyespot export FORMAT`: a command for each file in `formats/exports/`, with the options that it follows."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot import rooms
from eyespot.cli._filtering import (
    Selection,
    after_option,
    before_option,
    ids_option,
    label_option,
    near_option,
    where_option,
)
from eyespot.cli._options import flag
from eyespot.cli.console import (
    exit_if_failed,
    note,
    note_all,
    note_first,
    print_json,
    print_summary,
    progress_bar,
)
from eyespot.cli.settings import gallery_option, json_option, searched_here
from eyespot.types import Qrels, UsageError

if TYPE_CHECKING:
    from eyespot.formats.exporting import LabelTask
    from eyespot.gallery.view import View
    from eyespot.runs.judged import JudgedQueries

ROOM = "formats.exports"
_SHARED: dict[str, tuple[Any, Any]] = {  # type and option
    "out": (Path, typer.Argument(..., help="A new folder.")),
    "gallery": (Path, gallery_option("The gallery to write.")),
    "encoder": (
        str,
        typer.Option(
            None,
            "-e",
            "--encoder",
            envvar="EYESPOT_ENCODER",
            help="The encoder whose vectors to write; default: the one used for search.",
        ),
    ),
    "where": (str, where_option()),
    "after": (str, after_option()),
    "before": (str, before_option()),
    "near": (str, near_option()),
    "label": (list[str], label_option()),
    "ids": (Path, ids_option()),
}
_OWN: dict[str, tuple[Any, Any]] = {  # what some formats follow: type and option
    "float16": (bool, flag("--float16", "Write half-precision vectors.")),
    "pictures": (bool, flag("--pictures", "Put the pictures themselves into the tables.")),
    "category": (str, typer.Option(None, "--category", metavar="COLUMN", help="The column that names the category.")),
    "split": (str, typer.Option(None, "--split", metavar="COLUMN", help="The column that names the split.")),
    "images_at": (
        str,
        typer.Option(None, "--images-at", metavar="ADDRESS", help="The address below which the pictures are served."),
    ),
    "qrels": (str, typer.Option(None, "--qrels", metavar="FILE", help="Judgements in any format; default: verdicts.")),
    "queries": (
        Path,
        typer.Option(None, "--queries", help="A table: only these queries, with their ids and texts."),
    ),
    "by": (
        list[str],
        typer.Option(None, "--by", help="Only verdicts of this judge; several judges vote; `all` for every judge."),
    ),
    "shard_rows": (int, typer.Option(10_000, "--shard-rows", min=1, help="The number of pictures in a shard.")),
}
_LAST: dict[str, tuple[Any, Any]] = {
    "all_columns": (
        bool,
        flag("--all-columns", "Also write columns and metadata that reveal where a picture was taken and who owns it."),
    ),
    "json": (bool, json_option()),
}
_JUDGED = ("qrels", "queries", "by")  # of formats that hold judgements


def add_commands(group: typer.Typer) -> None:
    """A command for each format of the room."""
    for name in rooms.names(ROOM):
        module = rooms.module(ROOM, name)
        wanted = [one for option in module.OPTIONS for one in (_JUDGED if option == "judged" else (option,))]
        follows = {one: _OWN[one] for one in wanted if one in _OWN}
        run = partial(_run, module, list(follows))
        options = _SHARED | follows | _LAST
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(one, keyword, default=option) for one, (_, option) in options.items()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one: kind for one, (kind, _) in options.items()}
        group.command(name.replace("_", "-"), help=module.ABOUT)(run)


def _run(module: Any, names: list[str], out: Path, gallery: Path | None, encoder: str | None, **rest: Any) -> None:
    """Write one format, whose options of its own have these names; exit code 3 if some pictures were not written."""
    from eyespot.formats.exporting import ExportOptions, export
    from eyespot.gallery.view import Gallery

    json, all_columns, own = rest.pop("json"), rest.pop("all_columns"), {name: rest.pop(name) for name in names}
    opened = Gallery(searched_here(gallery, encoder))
    view = opened.view(opened.stem(encoder))
    if "judged" in module.OPTIONS:
        own = {"judged": _judged(view, *(own.pop(name) for name in _JUDGED)), **own}
    if "tasks" in module.OPTIONS:
        own |= {"tasks": _tasks(view)}
    labels, ids = rest.pop("label") or (), rest.pop("ids")
    chosen = Selection(**rest, labels=labels, ids=ids).mask(view)
    with progress_bar() as progress:
        options = ExportOptions(all_columns=all_columns, chosen=chosen, progress=progress, **own)
        done = export(view, module.write, out, options)
    if done.left_out:
        note(f"left out: {', '.join(done.left_out)} (where and whose; --all-columns writes them)")
    if view.pending:
        note(f"{view.pending} rows have no {view.space.encoder} vectors and are not in it")
    if done.converted:
        note(f"{done.converted} pictures of formats that few programs read are JPEG now")
    note_all(done.notes)
    lost = [f"not exported: {failure.path or failure.id} ({failure.reason})" for failure in done.failed]
    note_first(lost, lambda count: f"and {count} more; --json lists them all")
    if json:
        failed = [failure._asdict() for failure in done.failed]
        payload = {"rows": done.rows, "left_out": done.left_out, "converted": done.converted, "failed": failed}
        print_json({"out": str(out), **payload})
    print_summary(f"{done.rows} pictures written to {out}")
    exit_if_failed(done.failed)


def _judged(view: View, qrels: str | None, queries: Path | None, by: list[str] | None) -> JudgedQueries:
    """Judgements of a file, or else the verdicts in the gallery, with the texts of their queries."""
    from eyespot.cli.judges import judged_queries
    from eyespot.runs import read_judged, read_queries
    from eyespot.runs.judged import JudgedQueries

    if qrels is None:
        return judged_queries(view.gallery.path / "ledger.sqlite", by or [], queries)
    if by:
        raise UsageError("--by chooses among the gallery's verdicts, and --qrels names a file; drop one of them")
    read = read_judged(Path(qrels))
    if queries is None:
        return read
    texts = read_queries(queries)
    grades = {query: read.qrels[query] for query in read.qrels if query in texts}
    return JudgedQueries(texts, Qrels(grades))


def _tasks(view: View) -> list[LabelTask]:
    """What is labelled in the gallery; nothing where nobody labels."""
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.curate.annotate.label_studio import tasks_of

    ledger = view.gallery.path / "ledger.sqlite"
    if not ledger.is_file():
        return []
    with AnnotationStore(ledger) as desk:
        return tasks_of(desk)
