"""`eyespot export FORMAT`: a command for each file in `formats/exports/`, with the options that it follows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
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
from eyespot.cli.console import note, print_json, print_summary, progress_bar
from eyespot.cli.settings import gallery_option, json_option, searched_here
from eyespot.types import Qrels, UsageError

if TYPE_CHECKING:
    from eyespot.formats.exporting import ExportReport, LabelTask
    from eyespot.gallery.view import View
    from eyespot.runs.judged import JudgedQueries

ROOM = "formats.exports"
SOME_FAILED = 3
SHOWN = 20  # failures that are named on stderr; --json has all


def out_argument() -> Any:
    """The folder that an export makes."""
    return typer.Argument(..., help="A new folder.")


def space_option() -> Any:
    """The option `-e` of exports."""
    text = "The encoder whose vectors to write; default: the one used for search."
    return typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help=text)


def half_option() -> Any:
    """The option `--float16`."""
    return typer.Option(False, "--float16", help="Write half-precision vectors.")


def all_columns_option() -> Any:
    """The option `--all-columns`."""
    text = "Also write columns and metadata that reveal where a picture was taken and who owns it."
    return typer.Option(False, "--all-columns", help=text)


_OWN: dict[str, tuple[Any, Any]] = {  # what some formats follow: type and option
    "float16": (bool, half_option()),
    "pictures": (bool, typer.Option(False, "--pictures", help="Put the pictures themselves into the tables.")),
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
_JUDGED = ("qrels", "queries", "by")  # of formats that hold judgements


def add_commands(group: typer.Typer) -> None:
    """A command for each format of the room."""
    for name in rooms.names(ROOM):
        module = rooms.module(ROOM, name)
        group.command(name.replace("_", "-"), help=module.ABOUT)(_command(module))


def _command(module: Any) -> Callable[..., None]:
    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in _options(module)}
        _run(module, own, **given)

    shared: dict[str, tuple[Any, Any]] = {
        "out": (Path, out_argument()),
        "gallery": (Path, gallery_option("The gallery to write.")),
        "encoder": (str, space_option()),
        "where": (str, where_option()),
        "after": (str, after_option()),
        "before": (str, before_option()),
        "near": (str, near_option()),
        "label": (list[str], label_option()),
        "ids": (Path, ids_option()),
        **{name: _OWN[name] for name in _options(module)},
        "all_columns": (bool, all_columns_option()),
        "json": (bool, json_option()),
    }
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, keyword, default=option) for name, (_, option) in shared.items()]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {name: kind for name, (kind, _) in shared.items()}
    return run


def _options(module: Any) -> list[str]:
    return [
        name for option in module.OPTIONS for name in (_JUDGED if option == "judged" else (option,)) if name in _OWN
    ]


def _run(module: Any, own: dict[str, Any], out: Path, gallery: Path | None, encoder: str | None, **rest: Any) -> None:
    from eyespot.formats.exporting import ExportOptions, export

    json, all_columns = rest.pop("json"), rest.pop("all_columns")
    view = open_view(gallery, encoder)
    if "judged" in module.OPTIONS:
        own = {"judged": _judged(view, *(own.pop(name) for name in _JUDGED)), **own}
    if "tasks" in module.OPTIONS:
        own |= {"tasks": _tasks(view)}
    labels, ids = rest.pop("label") or (), rest.pop("ids")
    chosen = Selection(**rest, labels=labels, ids=ids).mask(view)
    with progress_bar() as progress:
        options = ExportOptions(all_columns=all_columns, chosen=chosen, progress=progress, **own)
        done = export(view, module.write, out, options)
    left_out(view, done.left_out)
    report(done, out, json)


def _judged(view: View, qrels: str | None, queries: Path | None, by: list[str] | None) -> JudgedQueries:
    """Judgements of a file, or else the verdicts in the gallery, with the texts of their queries."""
    from eyespot.cli.judges import judged_queries
    from eyespot.runs import read_judged
    from eyespot.runs.judged import JudgedQueries, read_queries

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


def open_view(gallery: Path | None, encoder: str | None) -> View:
    """The space that is exported."""
    from eyespot.gallery.view import Gallery

    opened = Gallery(searched_here(gallery, encoder))
    return opened.view(opened.stem(encoder))


def left_out(view: View, columns: list[str]) -> None:
    """Say which columns and rows are not in an export."""
    if columns:
        note(f"left out: {', '.join(columns)} (where and whose; --all-columns writes them)")
    if view.pending:
        note(f"{view.pending} rows have no {view.space.encoder} vectors and are not in it")


def report(done: ExportReport, out: Path, json: bool) -> None:
    """Say what was written; exit code 3 if some pictures were not."""
    if done.converted:
        note(f"{done.converted} pictures of formats that few programs read are JPEG now")
    for sentence in done.notes:
        note(sentence)
    for failure in done.failed[:SHOWN]:
        note(f"not exported: {failure.path or failure.id} ({failure.reason})")
    if len(done.failed) > SHOWN:
        note(f"and {len(done.failed) - SHOWN} more; --json lists them all")
    if json:
        failed = [failure._asdict() for failure in done.failed]
        payload = {"rows": done.rows, "left_out": done.left_out, "converted": done.converted, "failed": failed}
        print_json({"out": str(out), **payload})
    print_summary(f"{done.rows} pictures written to {out}")
    if done.failed:
        raise typer.Exit(SOME_FAILED)
