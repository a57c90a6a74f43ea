"""`eyespot encoders`, `adapters` and `judges`: what works here and what that costs; `eyespot export judgements`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import print_result, print_summary, warn
from eyespot.cli.settings import flag, gallery_here, gallery_option, group, json_option
from eyespot.settings.judge import LedgerSetting, PricesSetting
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.ledger.judgements import Judgements
    from eyespot.types import Query

TABLES, SCORES = (".parquet", ".jsonl"), (".txt", ".trec", ".qrels", ".json")

encoders = group("Encoders turn pictures and words into vectors.")
adapters = group("Adapters give a query its own view of an encoder's space.")
app = group("Judges look at pictures and decide whether they match a query.")


@encoders.command("list")
def encoder_list(json: bool = json_option()) -> None:
    """List encoder families, how to name one, and whether they work offline."""
    rows = known("encoders")
    print_result(rows, (f"{row['name']:<12} {row['spelling']:<46} {row['needs']}" for row in rows), json)


def known(room: str, **others: Any) -> list[dict[str, Any]]:
    """Every member of a room with its spelling and needs, as its constants say, and others with their defaults."""
    from eyespot import extras, rooms

    rows: list[dict[str, Any]] = []
    for name in rooms.names(room):
        words, module = {"spelling": name, **others, "needs": ""}, None
        try:
            module = rooms.module(room, name)
        except ImportError as error:  # it needs a package that is not there
            words["needs"] = extras.pip_line(str(error.name))
        rows.append({"name": name} | {word: getattr(module, word.upper(), value) for word, value in words.items()})
    return rows


@adapters.command("list")
def adapter_list(json: bool = json_option()) -> None:
    """List the published QuARI checkpoints for --adapt, and the encoders they fit; eyespot train makes others."""
    from eyespot.adapters.quari.files import PUBLISHED

    rows = [{"name": one, "encoders": list(encoders)} for one, encoders in PUBLISHED.items()]
    print_result(rows, (f"{one:<56} {', '.join(encoders)}" for one, encoders in PUBLISHED.items()), json)


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List the kinds of judges, how to name one, whether they work offline, and what they need."""
    rows = known("judges", kind="", offline=None)
    offline = {True: "offline", False: "network", None: ""}
    texts = [{**row, "offline": offline.get(row["offline"], row["offline"])} for row in rows]
    lines = (f"{one['spelling']:<38} {one['kind']:<16} {one['offline']:<22} {one['needs']}" for one in texts)
    print_result(rows, lines, json)


@app.command("prices")
def prices(
    settings: PricesSetting,
    model: str | None = typer.Argument(None, help="Show only this model."),
    json: bool = json_option(),
) -> None:
    """Show model prices in US dollars per million tokens, and the file in which to change them."""
    from eyespot.llms.prices import own_table, read_prices

    known_prices = read_prices(settings.prices)
    models = {model: known_prices.of(model)} if model else dict(sorted(known_prices.models.items()))
    if None in models.values():
        raise NothingFound(f"no price is known for {model}; add it to {own_table()}, or name a table with --prices")
    rows = [{"model": name, **price._asdict(), "source": str(price.source)} for name, price in models.items() if price]
    lines = [
        f"{row['model']:<28} {row['input']:>8.3f} in {row['output']:>8.3f} out  {row['date']:<10} {row['source']}"
        for row in rows
    ]
    print_result(rows, lines, json)
    if not json and not own_table().is_file():
        print_summary(f"your own prices would be read from {own_table()}")


def export(
    stored: LedgerSetting,
    to: Path = typer.Option(..., help=f"A table ({', '.join(TABLES)}) or qrels ({', '.join(SCORES)})."),
    gallery: Path = gallery_option("The gallery with the judgements."),
    by: list[str] | None = typer.Option(None, help="Only this judge; several judges vote; `all` for every judge."),
    queries: Path | None = typer.Option(None, help="A table or folder of queries: export only these, under their ids."),
    threshold: float = typer.Option(0.5, min=0, max=1, help="The probability from which a picture counts as relevant."),
    least_grade: int | None = typer.Option(None, help="The least relevant grade; default: keep grades."),
    as_qrels: bool = flag("--qrels", "Qrels, also in .parquet."),
    json: bool = json_option(),
) -> None:
    """Write judgements: as a table with every column, or combined as qrels."""
    from eyespot.ledger.export import Reading, qrels, voters, write_table
    from eyespot.ledger.judgements import Judgements
    from eyespot.runs import write_qrels

    as_qrels = as_qrels or to.suffix.lower() not in TABLES
    place = (stored.ledger or gallery_here(gallery) / "ledger.sqlite").expanduser()
    endings = (*SCORES, ".parquet") if as_qrels else TABLES
    if not to.name.lower().removesuffix(".gz").endswith(endings):
        raise UsageError(f"{to} has no ending that says what to write; use {', '.join((*TABLES, *SCORES))}")
    if not place.is_file():
        raise NothingFound(f"there is no ledger {place}; name the gallery with -g, or the file with --ledger")
    with Judgements(place) as judgements:
        names = names_in(judgements, queries)
        whose = voters(judgements.judges(), (by or []) if as_qrels else by or ["all"])
        rows = (row for row in judgements.rows() if row.judgement.judge in whose)
        if as_qrels:
            combined = qrels(rows, names, Reading(threshold, least_grade))
            if not len(combined):
                raise NothingFound(f"{place} has no verdict on these queries; judge first, or name other queries")
            if others := set(judgements.queries()) - set(names):
                warn(f"left out: {quantity(len(others), 'judged query')} not among those named")
            write_qrels(combined, to)
            counts = {"queries": len(combined), "judgements": len(combined.grade)}
        else:
            counts = {"judgements": write_table(rows, names, to, judgements)}
    print_result({"out": str(to), **counts}, (), json)
    print_summary(f"{', '.join(f'{count} {what}' for what, count in counts.items())} written to {to}")


def names_in(judgements: Judgements, queries: Path | None) -> dict[str, str]:
    """The name of each query: its id in the file given, else its own words."""
    from eyespot.ledger.export import distinct_names
    from eyespot.ledger.judgements import query_digest
    from eyespot.runs import read_queries
    from eyespot.types import Query, Term

    names: dict[str, str] = {}
    if queries is not None:
        folder = queries if queries.is_dir() else queries.parent
        for id, facts in read_queries(queries).items():
            text, image = facts.get("text"), facts.get("image")
            picture = folder / image if isinstance(image, str) and (folder / image).is_file() else None
            if not text and picture is None:
                raise UsageError(f"{queries}: query {id!r} has neither text nor a picture here; add a column text")
            terms = [] if picture is None else [Term(1.0, image=picture)]
            terms += [Term(1.0, text=str(text))] if text else []
            other = names.setdefault(query_digest(Query(id, tuple(terms))), id)
            if other != id:
                raise UsageError(f"{queries}: {id!r} asks what {other!r} asks; keep one of the two")
        return names
    items = judgements.queries().items()
    return distinct_names({digest: digest if query is None else text_of(query) for digest, query in items})


def text_of(query: Query) -> str:
    """The plain words of a query, or the line that says it with weights and pictures."""
    from eyespot.search.query_language import format_query

    (first, *others) = query.terms
    return first.text if first.text is not None and first.weight == 1 and not others else format_query(query)
