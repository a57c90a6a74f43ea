"""A search from a terminal, once its settings are read: what is found, and how it is shown."""

from __future__ import annotations

import gc
import json as json_format
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.cli._ask_server import FLAGS, VALUES
from eyespot.cli._rerank_view import RerankView, SearchOutput
from eyespot.cli.console import (
    conclude,
    escaped,
    exit_if_failed,
    print_json,
    print_line,
    print_raw,
    progress_bar,
    warn,
    warn_all,
)
from eyespot.search import parts
from eyespot.settings import DEPTH, FEW, option
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.cli._hits_out import HitsOut
    from eyespot.search.collection import Collection
    from eyespot.settings.search import SearchSettings
    from eyespot.types import Note, Query, Run

# Of a server that runs this search: what gives the collection that it has open
OPENER: ContextVar[Callable[[Path, str | None, str], Collection] | None] = ContextVar("OPENER", default=None)
# Codes of reasons: in no line, and in a line of their own
UNSAID, SHARES = ("look", "taught", "moved"), ("sum", "term", "word")
_RANK = re.compile("[1-9][0-9]{0,5}")


def open_collection(gallery: Path, encoder: str | None, index: str) -> Collection:
    """The collection to search: of a server that runs this search, the one that it has open; else a new one."""
    opener = OPENER.get()
    if opener is not None:
        return opener(gallery, encoder, index)
    import eyespot

    return eyespot.open(gallery, encoder, index)


def search(
    opened: Callable[[], Collection],
    settings: SearchSettings,
    output: HitsOut,
    words: str | None,
    *,
    image: Path | None = None,
    json: bool = False,
) -> None:
    """Find pictures in a collection, and print them; what cannot be searched is refused before it is opened."""
    from eyespot.search.query_language import refuse_halves

    refuse_halves([words or "", settings.where or "", *settings.label])
    without_query = words is None and image is None
    if without_query:
        _refuse_without_words(settings, output.why)
    accuracy = None if settings.calibrate is None else parts.accuracy_named(settings.accuracy)
    few, grouped = settings.k or FEW, accuracy is None if settings.grouped is None else settings.grouped
    if settings.rerank is not None:  # an unknown judge is refused before a search that takes long
        parts.judge_options(settings)
        # A calibration covers all hits that are shown; a judge that re-ranks costs more the deeper it goes.
        usual = DEPTH if settings.calibrate is None else max(few, DEPTH)
        settings = settings.model_copy(update={"depth": settings.depth or usual})
    started, collection = time.perf_counter(), opened()
    if without_query and settings.filters:
        listed = collection.by_date(_allowed(collection, settings), few, grouped, settings)
        return _show(collection, SearchOutput(listed, listed, column="taken"), started, output, json, settings.dry_run)
    wanted = collection.query(words, image)
    if minus_words(words or ""):
        from eyespot.search.query_language import format_query

        warn(f"searched as: {format_query(wanted)}; quotes around a word keep its minus")
    run, rewriting = _ranked(collection, wanted, settings, grouped)
    shown = SearchOutput(run, run)
    if settings.rerank is not None:
        view = RerankView(settings, accuracy, collection.gallery.path)
        if settings.dry_run:
            return view.tell_plan(run, wanted, json)
        shown = view.output(run, wanted)
    reasons = _shares(collection, wanted, shown.run, rewriting) if output.why else _why(collection, wanted, shown.run)
    _show(collection, replace(shown, why=reasons), started, output, json, settings.dry_run)
    if (result := shown.result) is not None:
        # Pictures without a verdict, or with one that their ranking cannot use
        exit_if_failed(result.stats.failed or result.unscored or result.stopped)


def _allowed(collection: Collection, settings: SearchSettings) -> Any:
    """The rows that the filter lets through, (rows,), with a progress bar for one that takes long."""
    columns: list[str] = []
    if settings.filters:
        from eyespot.gallery.filters import columns_of

        columns = list(columns_of(collection.view.tables))
    with progress_bar("%", delay=1.0) as progress:
        return collection.allowed(parts.condition_of(settings, columns), progress)


def _ranked(
    collection: Collection, wanted: Query, settings: SearchSettings, grouped: bool
) -> tuple[Run, Callable[[Query], Query] | None]:
    """The first stage as deep as a judge goes, and what rewrote its query."""
    mask, place = _allowed(collection, settings), collection.gallery.path
    if settings.yes or settings.no:
        named = {name: without_ranks(place, getattr(settings, name)) for name in ("yes", "no")}
        settings = settings.model_copy(update=named)
    mask = parts.without_no(collection, settings, mask, grouped)  # or it would get the keyword of --xmp, and be copied
    ledger = parts.ledger_of(settings.ledger, collection.gallery.path)
    rewriting = parts.rewriter(settings.expand, ledger) if settings.expand else None
    if settings.ledger is not None and settings.feedback and not ledger.exists():
        warn(f"there is no ledger {ledger} yet; without --ledger the gallery's own is read")
    moves, deep = parts.moves_of(collection, wanted, settings), max(settings.k or FEW, settings.depth or 0)
    stage = collection.stage(settings, k=deep, mask=mask, feedback=moves, rewriting=rewriting, grouped=grouped)
    run = collection.answers([wanted], stage, settings)[0]
    if run.header.get("by") == "words" and not any(run.values()):  # before anybody judges none
        raise NothingFound("no label, title or name holds a word of the query; search by look with --by look")
    if settings.expand is not None:  # people see the further wordings, because the results depend on them
        known = {term.text for term in wanted.terms}
        more = "; ".join(text for text in run.header["wordings"][wanted.id] if text not in known)
        warn(f"searched as well: {more}" if more else f"{settings.expand} has no other wording of this query")
    return run, rewriting


def _why(collection: Collection, query: Query, run: Run) -> dict[str, list[Note]]:
    """For each hit by its image, what put it there."""
    from eyespot.search.by_words import reasons

    images = [hit.image for hit in run[query.id]]
    if (run.header.get("by", "look") == "look" and "moved" not in run.header) or not images:
        return {}
    found = reasons(collection, query, run.header, collection.view.rows_of(images))
    return dict(zip(images, found, strict=True))


def _shares(
    collection: Collection, query: Query, run: Run, rewriting: Callable[[Query], Query] | None
) -> dict[str, list[Note]]:
    """For each hit its reasons, what its score is made of, and what the parts of the query add to that of its look."""
    from eyespot.search.why import QueryParts, notes_of, searched_query

    images, reasons = [hit.image for hit in run[query.id]], _why(collection, query, run)
    query = searched_query(collection, query, run, rewriting)
    parts, vectors = QueryParts.of(query, collection.encoder), collection.view.vectors(collection.view.rows_of(images))
    others = ["words beside it"] if run.header.get("by") == "both" else []
    others += ["photos with the words"] if query.id in run.header.get("taught", {}) else []
    others += ["judged photos"] if "moved" in run.header else []
    rest = "" if run.header.keys() & {"adapted", "expanded", "rerank_local", "judge"} else " and ".join(others)
    notes = (notes_of(parts.explain(one), hit.score, rest) for hit, one in zip(run[query.id], vectors, strict=True))
    return {image: [*reasons.get(image, ()), *some] for image, some in zip(images, notes, strict=True)}


def minus_words(text: str) -> list[str]:
    """The words with a minus right before them, as in `dog -people`."""
    if " -" not in f" {text}":  # the language is not loaded for the others
        return []
    from eyespot.search.query_language import MINUS_WORD

    return [word for word in text.split() if MINUS_WORD.fullmatch(word)]


def _refuse_without_words(settings: SearchSettings, why: bool) -> None:
    """`UsageError` for what compares pictures with a query, or moves one, where there is none."""
    if why:
        raise UsageError('--why needs words or a picture, as in: eyespot search "2:heron - people" --why')
    for name in ("rerank", "adapt", "neighbours", "expand", "rerank_local"):
        if getattr(settings, name) is not None:
            named = option(name)
            raise UsageError(f'{named} needs words or a picture, as in: eyespot search "a heron" {named} …')
    if settings.moves:
        raise UsageError('feedback moves a query; give words or a picture, as in: eyespot search "heron" --yes ID')


def _show(
    collection: Collection, shown: SearchOutput, started: float, output: HitsOut, json: bool, dry_run: bool = False
) -> None:
    """The hits on stdout, as a contact sheet, and wherever else they go; exit code 3 if some could not go there."""
    from eyespot.photos.places import absent_notes
    from eyespot.search.by_words import as_fields

    took_ms = round((time.perf_counter() - started) * 1000, 1)
    if output.html and not dry_run:
        from eyespot.search.hits import Hits, write_html

        write_html(output.html, [Hits(shown.sheet)], captions=["taken"] * (shown.column == "taken"))
    for sentence in shown.run.notes:
        warn(f"{sentence}; --no-teach turns this off" if getattr(sentence, "code", "") == "taught" else sentence)
    items = _items(shown)
    absent = absent_notes([item["path"] for item in items], collection.gallery.path)
    warn_all(absent)
    remember_hits(collection.gallery.path, [item["id"] for item in items])
    if json:
        header, names = shown.run.header, ("query", "by", "moved", "exact", "recall", "likely_above")
        facts = {name: header[name] for name in names if name in header}
        facts |= {"notes": as_fields(absent)} if absent else {}
        print_json({**facts, **shown.header, "took_ms": took_ms, "items": items})
    elif output.paths or output.print0:
        paths = [item["path"] for item in items if item["path"]]
        if len(paths) < len(items):
            warn(f"{quantity(len(items) - len(paths), 'picture has', 'pictures have')} no path; --json shows their ids")
        for path in paths:
            print_raw(path, b"\n" if output.paths else b"\0")
    else:
        if output.pictures and sys.stdout.isatty():
            _show_pictures(items, output.open)
        _print(items, shown.column, None if shown.result else shown.run.header.get("likely_above"))
    exit_if_failed(output.write_all(items, shown.sheet, dry_run))


def _show_pictures(items: Sequence[dict[str, Any]], opened: bool) -> None:
    from eyespot.cli._terminal_pictures import show

    if not show(items) and not opened:
        conclude("to see the pictures, add --open")


def _print(items: Sequence[dict[str, Any]], column: str, end: float | None) -> None:
    """Lines for people; hits are listed by a score, a judge's probability or a date, and some lack the latter two."""
    for item in items:
        title = f"  {escaped(item['title'])}" if item.get("title") else ""
        title += f"  +{others}" if isinstance(others := item.get("others"), int) and others else ""
        reasons = given if isinstance(given := item.get("why"), list) else ()  # labels of these names are texts
        place = escaped(item["path"] or item["id"])
        why = ", ".join(reason["code"] for reason in reasons if reason["code"] not in (*UNSAID, *SHARES))
        value, width = item.get(column), 10 if column == "taken" else 5
        text = "–".rjust(width) if value is None else str(value)[:10] if column == "taken" else f"{value:.3f}"
        print_line(f"{item['rank']:>4}  {text}  {place}{title}{escaped(f'  [{why}]') if why else ''}")
        if shares := [reason["sentence"] for reason in reasons if reason["code"] in SHARES]:
            print_line(escaped(f"      {'; '.join(shares)}"))
    if end is not None and (items[0]["score"] or 0) >= end:
        conclude(f"below a score of {end:.3f} nothing is likely")


def _items(shown: SearchOutput) -> list[dict[str, Any]]:
    """What is printed of each hit; `NothingFound` without any."""
    from eyespot.search.by_words import as_fields

    ((_, hits),) = shown.run.items()
    if not hits:
        raise NothingFound("no picture was found; widen the filter or index more photos")
    items = []
    for rank, hit in enumerate(hits, 1):
        facts = shown.run.facts[hit.image]
        # The documented fields come first: a label of the same name never replaces them
        score = None if shown.column == "taken" else round(hit.score, 6)
        own = {"rank": rank, "id": facts["id"], "path": facts["path"], "score": score}
        own |= shown.verdicts.get(hit.image, {})
        own |= {"why": as_fields(shown.why[hit.image])} if hit.image in shown.why else {}
        items.append(own | {name: value for name, value in facts.items() if name not in own})
    return items


# -- the last search ----------------------------------------------------------------------------------------


def remember_hits(gallery: Path, ids: Sequence[str]) -> None:
    """Keep what this user's last search showed, so that a rank may name a photo; where nothing may be written, not."""
    with suppress(OSError, RuntimeError):
        place = _last_search()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.touch(0o600)  # what was searched is nobody else's
        place.write_text(json_format.dumps({"gallery": os.path.realpath(gallery), "ids": [*ids]}), "utf-8")


def without_ranks(gallery: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names of photos, with ids in the place of ranks of the last search; `UsageError` for a rank it did not show."""
    ids: list[str] = []
    with suppress(OSError, RuntimeError, ValueError):
        last = json_format.loads(_last_search().read_text("utf-8"))
        ids = last["ids"] if last["gallery"] == os.path.realpath(gallery) else []
    beyond = next((name for name in names if _RANK.fullmatch(name) and int(name) > len(ids)), None)
    if beyond is not None:
        shown = f"ends at rank {len(ids)}" if ids else "was not in this gallery"
        raise UsageError(f"the last search {shown}, so {beyond} is not a rank of it; give a file name, or search first")
    return tuple(ids[int(name) - 1] if _RANK.fullmatch(name) else name for name in names)


def _last_search() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "eyespot" / "last_search.json"


# -- a plain line -------------------------------------------------------------------------------------------


class PlainLine:
    """What a plain line says, for `SearchSettings` and `HitsOut`, whose validators take longer than a search."""

    label: tuple[str, ...] = ()
    yes = no = judge = ()
    dry_run = all_columns = batch = why = json = paths = print0 = open = writes = moves = False
    teach = reads_words = pictures = True

    def __getattr__(self, name: str) -> Any:
        """What a setting is that nothing gives."""
        return None

    @property
    def filters(self) -> bool:
        """Whether anything is filtered."""
        return any((self.where is not None, self.after, self.before, self.near, self.label))

    @property
    def way(self) -> str:
        """By what pictures are ranked."""
        return str(self.by or "both")

    def refuse_conflicts(self) -> None:
        """No two of these exclude each other."""

    def write_all(self, *_hits: object) -> int:
        """Nothing is written."""
        return 0


def plain_settings(words: Sequence[str]) -> tuple[PlainLine, list[str]] | None:
    """The settings and the query of such a line; None where a value needs a validator, or might be an option."""
    found, query, rest = PlainLine(), [], iter(words)
    for word in rest:
        name = word.lstrip("-")
        if word in FLAGS:
            setattr(found, name.removeprefix("no-").replace("ungrouped", "grouped"), not name.startswith(("no-", "un")))
        elif word in VALUES:
            value, name = next(rest), {"e": "encoder"}.get(name, name)
            number = int(value) if value.isdecimal() and len(value) < 10 else 0
            if not value or (value.startswith("-") and name != "near") or (name == "k" and not number):
                return None
            setattr(found, name, (*found.label, value) if name == "label" else number if name == "k" else value)
        elif word.startswith("-") and word[1:2].strip():
            return None
        else:
            query.append(word)
    known = found.by in (None, "look", "words", "both")
    return (found, query) if known and found.json + found.paths + found.print0 < 2 else None


def search_plainly(gallery: str, words: Sequence[str]) -> bool:
    """Search by a plain line; False, and nothing is done, where it is not plain enough."""
    read = plain_settings(words)
    if read is None or not os.path.isdir(gallery):
        return False
    plain: Any = read[0]
    if alone := "numpy" not in sys.modules:  # this process does nothing else
        gc.disable()
        # Threads of BLAS that wait for each other take longer than what they share, also over a million rows
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    query = " ".join(read[1]) if read[1] else None
    search(lambda: open_collection(Path(gallery), plain.encoder, "exact"), plain, plain, query, json=plain.json)
    if alone:
        gc.freeze()  # or the interpreter looks through all objects as it ends
    return True
