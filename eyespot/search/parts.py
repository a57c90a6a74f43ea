"""What the settings of a search name, opened: its filter, its judge, what rewrites its query, and what moves it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.settings import DEPTH, EVERYBODY, SettingsConflict
from eyespot.types import Note, Progress, UsageError, no_progress, quantity

if TYPE_CHECKING:
    from eyespot.gallery.filters import Condition
    from eyespot.llms.prices import Prices
    from eyespot.search.calibration import Accuracy
    from eyespot.search.feedback import Feedback
    from eyespot.search.judge_rerank import JudgeRerank
    from eyespot.search.query_rewriting import Reworded
    from eyespot.search.searchable import Searchable
    from eyespot.settings.judge import JudgeOptions
    from eyespot.settings.search import FilterSettings, SearchSettings
    from eyespot.types import Mask, Query


def ledger_of(given: Path | str | None, gallery: Path) -> Path:
    """The ledger that is named, else the gallery's."""
    return Path(given).expanduser() if given is not None else gallery / "ledger.sqlite"


# -- a filter -----------------------------------------------------------------------------------------------


def condition_of(
    settings: FilterSettings, columns: Sequence[str], units: Mapping[str, str] | None = None
) -> Condition | None:
    """The filter over these columns; None if there is none. Raises `UsageError` for one that cannot be read.

    Labels of one column are alternatives, and so are those of columns that have the same name in `units`.
    """
    if settings.where is not None and not settings.where.strip():
        raise SettingsConflict('{where} is empty; write a condition, as in {where} "width > 300", or leave it out')
    if not settings.filters:
        return None
    from eyespot.gallery import filters

    given = [filters.checked(settings.where, columns)] if settings.where else []
    given += [filters.after(settings.after)] if settings.after else []
    given += [filters.before(settings.before)] if settings.before else []
    given += [filters.undated()] if settings.undated else []
    given += [_near(settings.near, columns)] if settings.near else []
    by_column: dict[str, list[Condition]] = {}
    for one in settings.label:
        column, sign, value = one.partition("=")
        if not sign or not column.strip():
            raise SettingsConflict("{label} takes COLUMN=VALUE, as in {label} category=fishes, not {one!r}", one=one)
        if column != column.strip():  # somebody wrote spaces around the sign
            column, value = column.strip(), value.strip()
        by_column.setdefault((units or {}).get(column, column), []).append(filters.label(column, value))
    for alternatives in by_column.values():
        names = dict.fromkeys(name for one in alternatives for name in one.columns)
        given.append(filters.Condition(" OR ".join(f"({one.sql})" for one in alternatives), tuple(names)))
    return filters.all_of(*given)


def filter_notes(settings: FilterSettings | Condition, mask_of: Callable[[Condition], Mask]) -> list[Note]:
    """What a filter leaves out because nothing is known of it. mask_of: the live rows that fit a condition, (rows,)."""
    from eyespot.gallery.filters import Condition, undated

    notes = []
    if isinstance(settings, Condition):
        dated = "taken" in settings.columns and undated().sql not in settings.sql
        placed = "latitude" in settings.columns
    else:
        dated, placed = bool(settings.after or settings.before), bool(settings.near)
    if dated and (count := int(mask_of(undated()).sum())):
        have = f"{quantity(count, 'photo has', 'photos have')} no date, which the filter by date needs"
        notes.append(Note("undated", f"{have}; undated photos have a filter of their own"))
    unplaced = Condition('"latitude" IS NULL', ("latitude",))
    if placed and (count := int(mask_of(unplaced).sum())):
        have = quantity(count, "photo has", "photos have")
        notes.append(Note("unplaced", f"{have} no position, which the filter by place needs"))
    return notes


def _near(place: str, columns: Sequence[str]) -> Condition:
    """Within a distance of a place, by three numbers, or within a box, by four."""
    from eyespot.gallery import filters

    try:
        numbers = [float(part) for part in place.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 3:
        return filters.near(*numbers)
    if len(numbers) != 4 or any(map(math.isnan, numbers)):
        raise SettingsConflict(
            "{near} takes numbers and no names of places: LAT,LON,KM, as in {near} 47.56,7.59,20, or SOUTH,WEST,NORTH,"
            "EAST, as in {near} 45.8,5.9,47.9,10.5, not {place!r}",
            place=place,
        )
    south, west, north, east = numbers
    if not (-90 <= south <= north <= 90 and abs(west) <= 180 and abs(east) <= 180):
        raise UsageError(f"{place!r} is not a box on Earth; write SOUTH,WEST,NORTH,EAST with SOUTH below NORTH")
    joined = "AND" if west <= east else "OR"  # a box may lie across the date line
    return filters.checked(
        f"latitude BETWEEN {south!r} AND {north!r} AND (longitude >= {west!r} {joined} longitude <= {east!r})", columns
    )


# -- a query ------------------------------------------------------------------------------------------------


def rewriter(spec: str, ledger: Path) -> Reworded:
    """Adds wordings to queries: by a JSON file of terms, or by a language model whose answers the ledger keeps."""
    from eyespot.search.query_rewriting import Reworded, RewritingModel, chat_with, read_glossary

    if Path(spec).expanduser().is_file():
        return Reworded(read_glossary(Path(spec).expanduser()))
    return Reworded(RewritingModel(spec, chat_with(spec), ledger))


def moves_of(collection: Searchable, query: Query, settings: SearchSettings) -> Feedback | None:
    """The photos that move a query: a photo of the settings stands before what is recorded of it. None for none.

    Raises `UsageError` for a photo of the settings that the gallery does not have.
    """
    if not settings.moves:
        return None
    from eyespot.search.feedback import Feedback, recorded

    rows, respelled = collection.view.rows_named([*settings.yes, *settings.no])
    here = [facts["id"] for facts in collection.view.facts(rows)]
    known = Feedback()
    if settings.feedback is not None:
        whose = None if settings.feedback == EVERYBODY else settings.feedback
        known = recorded(ledger_of(settings.ledger, collection.gallery.path), query, whose)
    yes, no = (tuple(id for id in ids if id not in here) for ids in known[:2])
    names = ", ".join(f"{path} for {name}" for name, path in respelled)
    this = f"this line ({names})" if names else "this line" if here and known.by else ""
    by = " and ".join(filter(None, (known.by, this)))
    return Feedback((*yes, *here[: len(settings.yes)]), (*no, *here[len(settings.yes) :]), by)


def without_no(collection: Searchable, settings: SearchSettings, mask: Mask, grouped: bool) -> Mask:
    """The mask without the photos that `no` names, and without their groups where one of each is shown, (rows,)."""
    if settings.no:
        from eyespot.gallery.groups.stored import Groups

        rows, mask = collection.view.rows_named(settings.no)[0], mask.copy()
        mask[Groups(collection.view).members(rows) if grouped else rows] = False
    return mask


# -- a judge ------------------------------------------------------------------------------------------------


def judge_options(settings: JudgeOptions) -> dict[str, Any]:
    """The options of the judge itself; `UsageError` for an option that it lacks, or an unknown judge."""
    from importlib import import_module

    from eyespot import rooms
    from eyespot.search.judge_rerank import is_judge

    assert settings.rerank is not None
    if not is_judge(settings.rerank):
        raise UsageError(f"no judge {settings.rerank!r}; there are: {', '.join(rooms.names('judges'))}")
    kind, options = settings.rerank.partition(":")[0], {}
    try:
        known = import_module(f"eyespot.judges.{kind}").OPTIONS
    except (ModuleNotFoundError, AttributeError):  # of another package; a judge without options
        known = {}
    if settings.batch and "requests_per_minute" not in known:
        raise SettingsConflict("{batch} is for judges of OpenAI and Anthropic, as in {rerank} openai:MODEL")
    for text in settings.judge:
        key, sign, value = text.partition("=")
        if not sign or key not in known:
            there = f"there are: {', '.join(known)}" if known else "it has none"
            raise SettingsConflict(
                "{judge} takes KEY=VALUE with an option of {kind}, not {text!r}; {there}",
                kind=kind,
                text=text,
                there=there,
            )
        try:
            options[key] = known[key](value)
        except ValueError:
            raise SettingsConflict("{judge} {key} takes a number, not {value!r}", key=key, value=value) from None
    return options


@contextmanager
def judge_stage(settings: JudgeOptions, gallery: Path, tell: Progress = no_progress) -> Iterator[JudgeRerank]:
    """The judge as a second stage; its verdicts go into the gallery's ledger unless a file is named."""
    from eyespot.judges import wording
    from eyespot.ledger.judgements import Judgements
    from eyespot.llms.batches import requests_in
    from eyespot.llms.budget import Budget
    from eyespot.search.judge_rerank import JudgeRerank, judge_named

    options = judge_options(settings)
    assert settings.rerank is not None
    words = None if settings.wording is None else wording(settings.wording, settings.rerank)
    # A judge without a price takes no table.
    table = prices_of(settings) if settings.prices is not None else None
    prices = table if table is not None and table.of(settings.rerank.partition(":")[2]) else None
    limits, place = (settings.budget_calls, None, settings.budget_money), ledger_of(settings.ledger, gallery)
    with ExitStack() as held:
        budget = Budget(*limits)
        if settings.batch:
            requests = held.enter_context(requests_in(place.with_name(f"{place.stem}-batches"), limits, tell))
            options["requests"], budget = requests, requests.budget
        judge = judge_named(settings.rerank, budget=budget, wording=words, prices=prices, **options)
        ledger = held.enter_context(Judgements(place))
        yield JudgeRerank(judge, ledger, settings.depth or DEPTH, 1.0 if settings.blend is None else settings.blend)


def prices_of(settings: JudgeOptions) -> Prices:
    """The prices of models, with those of one's own table."""
    from eyespot.llms.prices import read_prices

    return read_prices(None if settings.prices is None else Path(settings.prices))


def accuracy_named(text: str | None) -> Accuracy:
    """How often a judge is right: SENS,SPEC, or SENS,SPEC,N,M; always for None. `SettingsConflict` for other texts."""
    from eyespot.search.calibration import Accuracy

    if text is None:
        return Accuracy()
    try:
        sensitivity, specificity, *counts = (float(part) for part in text.split(","))
        relevant, irrelevant = map(int, counts) if counts else (None, None)
    except ValueError:
        raise SettingsConflict(
            "{accuracy} takes two shares, as in 0.9,0.85, or with the numbers of pictures they were measured on, "
            "as in 0.9,0.85,50,50, not {given!r}",
            given=text,
        ) from None
    return Accuracy(sensitivity, specificity, relevant, irrelevant)
