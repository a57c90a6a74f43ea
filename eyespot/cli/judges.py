"""`eyespot judges`: who can look at pictures here and what that costs; `eyespot export judgements`: what they said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._judge_options import ledger_option
from eyespot.cli.console import note, print_json, print_line, print_summary
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.ledger.judgements import Judgements
    from eyespot.runs.judged import JudgedQueries
    from eyespot.types import Query

TABLES, SCORES = (".parquet", ".jsonl"), (".txt", ".trec", ".qrels", ".json")

app = typer.Typer(no_args_is_help=True, help="Judges look at pictures and decide whether they match a query.")


@app.callback()
def options() -> None:
    """Judges look at pictures and decide whether they match a query."""


@app.command("list")
def listing(json: bool = json_option()) -> None:
    """List the kinds of judges, how to name one, whether they work offline, and what they need."""
    rows = known()
    if json:
        print_json(rows)
        return
    for row in rows:
        print_line(f"{row['spelling']:<38} {row['kind']:<16} {_offline(row['offline']):<22} {row['needs']}")


def known() -> list[dict[str, Any]]:
    """Every judge with its spelling, kind, needs, and whether it works offline, as its constants say."""
    from eyespot import rooms

    return [{"name": name, **_judge_fields(name)} for name in rooms.names("judges")]


def _judge_fields(name: str) -> dict[str, Any]:
    from importlib import import_module

    from eyespot import extras

    try:
        module = import_module(f"eyespot.judges.{name}")
    except ImportError as error:  # of another package, or it needs one that is not there
        needs = "" if error.name == f"eyespot.judges.{name}" else extras.pip_line(str(error.name))
        return {"spelling": name, "kind": "", "offline": None, "needs": needs}
    words = ("SPELLING", name), ("KIND", ""), ("OFFLINE", None), ("NEEDS", "")
    return {word.lower(): getattr(module, word, default) for word, default in words}


def _offline(said: bool | str | None) -> str:
    return said if isinstance(said, str) else {True: "offline", False: "network", None: ""}[said]


@app.command("prices")
def prices(
    model: str | None = typer.Argument(None, help="Show only this model."),
    table: Path | None = typer.Option(None, "--prices", envvar="EYESPOT_PRICES", help="Your own table of prices."),
    json: bool = json_option(),
) -> None:
    """Show model prices in US dollars per million tokens, and the file in which to change them."""
    from eyespot.llms.prices import own_table, read_prices

    found = read_prices(table)
    shown = {model: found.of(model)} if model else dict(sorted(found.models.items()))
    if None in shown.values():
        raise NothingFound(f"no price is known for {model}; add it to {own_table()}, or name a table with --prices")
    rows = [{"model": name, **price._asdict(), "source": str(price.source)} for name, price in shown.items() if price]
    if json:
        print_json(rows)
        return
    for row in rows:
        print_line(
            f"{row['model']:<28} {row['input']:>8.3f} in {row['output']:>8.3f} out  {row['date']:<10} {row['source']}"
        )
    if not own_table().is_file():
        print_summary(f"your own prices would be read from {own_table()}")


# -- export -------------------------------------------------------------------------------------------------


def export(
    to: Path = typer.Option(..., help=f"A table ({', '.join(TABLES)}) or qrels ({', '.join(SCORES)})."),
    gallery: Path = gallery_option("The gallery with the judgements."),
    ledger: Path | None = ledger_option(),
    by: list[str] | None = typer.Option(None, help="Only this judge; several judges vote; `all` for every judge."),
    queries: Path | None = typer.Option(None, help="A table or folder of queries: export only these, under their ids."),
    threshold: float = typer.Option(0.5, min=0, max=1, help="The probability from which a picture counts as relevant."),
    least_grade: int | None = typer.Option(
        None, help="The grade from which a picture counts as relevant; default: keep grades."
    ),
    as_qrels: bool = typer.Option(False, "--qrels", help="Qrels, also in .parquet."),
    json: bool = json_option(),
) -> None:
    """Write judgements: as a table with every column, or combined as qrels."""
    from eyespot.ledger.judgements import Judgements

    wanted = as_qrels or to.suffix.lower() not in TABLES
    place = (ledger or gallery_here(gallery) / "ledger.sqlite").expanduser()
    endings = (*SCORES, ".parquet") if wanted else TABLES
    if not to.name.lower().removesuffix(".gz").endswith(endings):
        raise UsageError(f"{to} has no ending that says what to write; use {', '.join((*TABLES, *SCORES))}")
    if not place.is_file():
        raise NothingFound(f"there is no ledger {place}; name the gallery with -g, or the file with --ledger")
    with Judgements(place) as judgements:
        names = _names(judgements, queries)
        if wanted:
            told = _qrels(judgements, by or [], names, to, (threshold, least_grade))
        else:
            table_by = by or []
            from eyespot.ledger.export import voters, write_table

            whose = voters(judgements.judges(), table_by or ["all"])
            rows = (row for row in judgements.rows() if row.judgement.judge in whose)
            told = {"judgements": write_table(rows, names, to)}
    if json:
        print_json({"out": str(to), **told})
    print_summary(f"{', '.join(f'{count} {what}' for what, count in told.items())} written to {to}")


def judged_queries(ledger: Path, by: list[str], queries: Path | None) -> JudgedQueries:
    """The verdicts in a ledger as qrels, with the text of each query; `NothingFound` if there are none."""
    from eyespot.ledger.export import Reading, qrels, voters
    from eyespot.ledger.judgements import Judgements
    from eyespot.runs.judged import JudgedQueries

    if not ledger.is_file():
        raise NothingFound(f"there is no ledger {ledger}; name the gallery with -g, or judgements with --qrels")
    with Judgements(ledger) as judgements:
        names, asked = _names(judgements, queries), judgements.queries()
        whose = voters(judgements.judges(), by)
        found = qrels((row for row in judgements.rows() if row.judgement.judge in whose), names, Reading())
    if not len(found):
        raise NothingFound(f"{ledger} has no verdict on these queries; judge first, or name judgements with --qrels")
    texts = {names[digest]: {"text": _called(query)} for digest, query in asked.items() if query and digest in names}
    return JudgedQueries({query: texts.get(query, {}) for query in found}, found)


def _names(judgements: Judgements, queries: Path | None) -> dict[str, str]:
    """What each query is called: its id in the file given, else its own words."""
    from eyespot.ledger.export import distinct_names

    if queries is not None:
        from eyespot.ledger.judgements import query_digest
        from eyespot.runs.queries import read_queries

        named: dict[str, str] = {}
        for id, facts in read_queries(queries).items():
            query = _query(queries, id, facts)
            other = named.setdefault(query_digest(query), id)
            if other != id:
                raise UsageError(f"{queries}: {id!r} asks what {other!r} asks; keep one of the two")
        return named
    asked = judgements.queries()
    return distinct_names({digest: digest if query is None else _called(query) for digest, query in asked.items()})


def _called(query: Query) -> str:
    from eyespot.search.query_language import format_query

    (first, *others) = query.terms
    return first.text if first.text is not None and first.weight == 1 and not others else format_query(query)


def _query(path: Path, id: str, facts: dict[str, Any]) -> Query:
    from eyespot.types import Query

    folder = path if path.is_dir() else path.parent
    text, image = facts.get("text"), facts.get("image")
    picture = folder / image if isinstance(image, str) and (folder / image).is_file() else None
    if picture is not None:
        return Query.composed(picture, text, id) if text else Query.picture(picture, id)
    if not text:
        raise UsageError(f"{path}: query {id!r} has neither text nor a picture that is there; add a column text")
    return Query.words(text, id)


def _qrels(
    judgements: Judgements, by: list[str], names: dict[str, str], to: Path, reading: tuple[float, int | None]
) -> dict[str, int]:
    from eyespot.ledger.export import Reading, qrels, voters
    from eyespot.runs import write_qrels

    whose = voters(judgements.judges(), by)
    found = qrels((row for row in judgements.rows() if row.judgement.judge in whose), names, Reading(*reading))
    if not len(found):
        raise NothingFound(f"{judgements.path} has no verdict on these queries; judge first, or name other queries")
    if others := set(judgements.queries()) - set(names):
        note(f"{len(others)} judged queries are not among those named and are left out")
    write_qrels(found, to)
    return {"queries": len(found), "judgements": len(found.grade)}
