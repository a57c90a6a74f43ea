"""`eyespot export FORMAT`: a command for each file in `formats/exports/`, with the options that it follows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import create_model

from eyespot import rooms
from eyespot.cli.console import exit_if_failed, print_result, print_summary, progress_bar, warn, warn_all, warn_first
from eyespot.cli.settings import gallery_here, json_option
from eyespot.search.parts import condition_of, filter_notes
from eyespot.settings.fields import ENCODER, GALLERY, Settings, Texts, setting
from eyespot.settings.search import FilterSettings
from eyespot.types import NothingFound, Qrels, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.gallery.view import View
    from eyespot.runs.judged import JudgedQueries
    from eyespot.types import Mask

ROOM = "formats.exports"


class ExportSettings(FilterSettings):
    """What is written of a gallery."""

    out: Path = setting("A new folder.", default=..., argument=True)
    gallery: Path | None = setting("The gallery to write.", **GALLERY)
    encoder: str | None = setting("The encoder whose vectors to write; default: the one used for search.", **ENCODER)
    ids: Path | None = setting("Only these pictures, an id, path or file name a line; - for stdin.", metavar="FILE")
    all_columns: bool = setting("Also write columns and metadata of where and whose a picture is.", default=False)


class FormatSettings(Settings):
    """What some formats follow; each names those that it does."""

    float16: bool = setting("Write half-precision vectors.", default=False)
    pictures: bool = setting("Put the pictures themselves into the tables.", default=False)
    category: str | None = setting("The column that names the category.", metavar="COLUMN")
    split: str | None = setting("The column that names the split.", metavar="COLUMN")
    images_at: str | None = setting("The address below which the pictures are served.", metavar="ADDRESS")
    qrels: str | None = setting("Judgements in any format; default: verdicts.", metavar="FILE")
    queries: Path | None = setting("A table: only these queries, with their ids and texts.")
    by: Texts = setting("Only verdicts of this judge; several judges vote; `all` for every judge.", default=())
    shard_rows: int = setting("The number of pictures in a shard.", default=10_000, ge=1)


_JUDGED = ("qrels", "queries", "by")  # of formats that hold judgements


def add_commands(group: typer.Typer) -> None:
    """A command for each format of the room."""
    for name in rooms.names(ROOM):
        module = rooms.module(ROOM, name)
        wanted = [one for option in module.OPTIONS for one in (_JUDGED if option == "judged" else (option,))]
        fields = {one: FormatSettings.model_fields[one] for one in wanted if one in FormatSettings.model_fields}
        own: dict[str, Any] = {one: (field.annotation, field) for one, field in fields.items()}
        verb = _verb(module, create_model("Followed", __base__=Settings, **own))
        group.command(name.replace("_", "-"), help=module.ABOUT)(verb)


def _verb(module: Any, follows: type[Settings]) -> Callable[..., None]:
    def run(settings: ExportSettings, followed: Any, json: bool = json_option()) -> None:
        _run(module, settings, followed.model_dump(), json)

    run.__annotations__["followed"] = follows
    return run


def _run(module: Any, settings: ExportSettings, own: dict[str, Any], json: bool) -> None:
    """Write one format with what it follows; exit code 3 if some pictures were not written."""
    import eyespot
    from eyespot.formats.exporting import ExportOptions, export

    out, place = settings.out, gallery_here(settings.gallery)
    view = eyespot.open(place, settings.encoder).view
    if "judged" in module.OPTIONS:
        own = {"judged": _judged(view, *(own.pop(name) for name in _JUDGED)), **own}
    if "tasks" in module.OPTIONS:
        from eyespot.curate.annotate.annotation_store import AnnotationStore
        from eyespot.curate.annotate.label_studio import tasks_of

        ledger = view.gallery.path / "ledger.sqlite"
        with AnnotationStore(ledger) if ledger.is_file() else nullcontext() as store:
            own["tasks"] = [] if store is None else tasks_of(store)  # nothing where nobody labels
    chosen = chosen_rows(view, settings, settings.ids)
    with progress_bar() as progress:
        options = ExportOptions(all_columns=settings.all_columns, chosen=chosen, progress=progress, **own)
        done = export(view, module.write, out, options)
    if done.left_out:
        warn(f"left out: {', '.join(done.left_out)} (where and whose; --all-columns writes them)")
    if view.pending:
        warn(f"left out: {quantity(view.pending, 'row')} without {view.space.encoder} vectors")
    if done.converted:
        warn(f"JPEG now: {quantity(done.converted, 'picture')} of formats that few programs read")
    warn_all(done.notes)
    lost = [f"not exported: {failure.path or failure.id} ({failure.reason})" for failure in done.failed]
    warn_first(lost, lambda count: f"and {count} more; --json lists them all")
    failed = [vars(failure) for failure in done.failed]
    payload = {"rows": done.rows, "left_out": done.left_out, "converted": done.converted, "failed": failed}
    print_result({"out": str(out), **payload}, (), json)
    print_summary(f"{quantity(done.rows, 'picture')} written to {out}")
    exit_if_failed(done.failed)


def chosen_rows(view: View, settings: FilterSettings, ids: Path | None = None) -> Mask | None:
    """True for the rows that are wanted, (rows,); None: all. `NothingFound` if there are none.

    Warns of pictures that the filter leaves out because they have no date or no position.
    """
    import numpy as np

    from eyespot.gallery import filters
    from eyespot.storage.text_files import text_of

    condition = condition_of(settings, list(filters.columns_of(view.tables)) if settings.filters else [])
    if condition is None and ids is None:
        return None
    chosen: Mask = np.ones(int(view.starts[-1]), np.bool_)
    if condition is not None:
        chosen = filters.mask(view.tables, condition)
    if ids is not None:
        listed = np.zeros(len(chosen), np.bool_)
        text = sys.stdin.read() if str(ids) == "-" else text_of(ids)
        names = list(dict.fromkeys(filter(None, map(str.strip, text.split("\n")))))
        if not names:
            raise UsageError(f"{ids} holds no ids; write one on each line, or paths or names of files")
        rows, respelled = view.rows_named(names)
        listed[rows] = True
        spelled = [f"{name} is {path}" for name, path in respelled]
        warn_first(spelled, lambda count: f"and {count} more match by another spelling")
        chosen = chosen & listed
    notes = filter_notes(settings, lambda other: filters.mask(view.tables, other) & view.live)
    if not (chosen & view.live).any():
        raise NothingFound("; ".join(["no picture fits the filter; widen it, or leave it out to export all", *notes]))
    warn_all(notes)
    return chosen


def _judged(view: View, qrels: str | None, queries: Path | None, by: tuple[str, ...]) -> JudgedQueries:
    """Judgements of a file, or else the verdicts in the gallery, with the texts of their queries."""
    from eyespot.cli.judges import names_in, text_of
    from eyespot.ledger.export import Reading, qrels as qrels_of, voters
    from eyespot.ledger.judgements import Judgements
    from eyespot.runs import read_judged, read_queries
    from eyespot.runs.judged import JudgedQueries

    if qrels is not None:
        if by:
            raise UsageError("--by chooses among the gallery's verdicts, and --qrels names a file; drop one of them")
        read = read_judged(Path(qrels))
        if queries is None:
            return read
        given = read_queries(queries)
        return JudgedQueries(given, Qrels({query: read.qrels[query] for query in read.qrels if query in given}))
    ledger = view.gallery.path / "ledger.sqlite"
    if not ledger.is_file():
        raise NothingFound(f"there is no ledger {ledger}; name the gallery with -g, or judgements with --qrels")
    with Judgements(ledger) as judgements:
        names, by_digest = names_in(judgements, queries), judgements.queries()
        whose = voters(judgements.judges(), list(by))
        found = qrels_of((row for row in judgements.rows() if row.judgement.judge in whose), names, Reading())
    if not len(found):
        raise NothingFound(f"{ledger} has no verdict on these queries; judge first, or name judgements with --qrels")
    texts = {names[one]: {"text": text_of(query)} for one, query in by_digest.items() if query and one in names}
    return JudgedQueries({query: texts.get(query, {}) for query in found}, found)
