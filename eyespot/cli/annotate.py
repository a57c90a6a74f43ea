"""`eyespot annotate`: label queries to the end, alone or with others, and export what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, print_result, print_summary, warn, warn_all
from eyespot.cli.settings import encoder_option, flag, gallery_here, gallery_option, group, json_option
from eyespot.types import NothingFound, UsageError, quantity

if TYPE_CHECKING:
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.search.collection import Collection

app = group("Label queries completely, alone or with others.")
GALLERY = gallery_option("The gallery whose photos are labelled.")
AS = typer.Option(..., "--as", envvar="EYESPOT_ANNOTATOR", help="Your name: a label, without proof.")
QUERY = typer.Argument(help="The query's id.")
ONE = typer.Argument(None, help="Only this query.")


@contextmanager
def open_store(gallery: Path | None) -> Iterator[AnnotationStore]:
    """The annotations of a gallery."""
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery_here(gallery))  # a ledger without a gallery would be a stray file
    with AnnotationStore(opened.path / "ledger.sqlite") as store:
        yield store


def _collection(gallery: Path | None, encoder: str | None = None) -> Collection:
    import eyespot

    return eyespot.open(gallery_here(gallery), encoder)


# -- queries and lists ----------------------------------------------------------------------------------------------


@app.command("add")
def add(
    file: Path = typer.Argument(None, help="A CSV file with query_id, query_text, and INQUIRE's other columns."),
    text: str = typer.Option(None, "--text", help="The text of one query, instead of a file."),
    id: str = typer.Option(None, "--id", help="The id of that query.", show_default="its words"),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Add queries, except those that fail an intake criterion (visible, feasible, of_interest)."""
    from eyespot.curate.annotate.queries import AnnotationQuery, read

    if (file is None) == (text is None):
        raise UsageError("name a CSV of queries, or give one with --text; one of the two")
    wanted = read(file) if text is None else [AnnotationQuery(id or text, text, {})]
    with open_store(gallery) as store:
        left_out = store.take_in(wanted)
    warn_all(f"{one.id} is left out: not {' and not '.join(one.failing)}" for one in left_out)
    taken = [one.id for one in wanted if one not in left_out]
    fields = {"taken": taken, "left_out": {one.id: one.failing for one in left_out}}
    print_result(fields, [f"{len(taken)} taken in, {len(left_out)} left out"], json)


@app.command("list")
def listed(
    id: str = QUERY,
    label: list[str] = typer.Option(None, "--label", metavar="COLUMN=VALUE", help="Photos of this label; repeatable."),
    nearest: int = typer.Option(
        None,
        "--nearest",
        min=1,
        help="The photos nearest to the text, this many more each time; more are added as you label.",
    ),
    run: Path = typer.Option(None, "--run", help="The photos of a ranking, in any known format."),
    gallery: Path = GALLERY,
    encoder: str = encoder_option(),
    json: bool = json_option(),
) -> None:
    """Select the photos to label for a query: those with some labels, the nearest, or those of a ranking."""
    from eyespot.curate.annotate import candidates

    lacking = list[str]()
    if (bool(label) + (nearest is not None) + (run is not None)) != 1:
        raise UsageError("say which photos in one way: --label COLUMN=VALUE, --nearest N, or --run FILE")
    with open_store(gallery) as store:
        if run is not None:
            import eyespot
            from eyespot.runs import read_run

            new, lacking = candidates.list_ranked(store, id, eyespot.open(gallery_here(gallery)).view, read_run(run))
        elif nearest is not None:
            new = candidates.list_nearest(store, id, _collection(gallery, encoder), nearest)
        else:
            pairs = [one.partition("=") for one in label]
            for (column, sign, _), text in zip(pairs, label, strict=True):
                if not sign or not column.strip():
                    raise UsageError(f"--label takes COLUMN=VALUE, as in --label species='Ardea cinerea', not {text!r}")
            columns = {column.strip() for column, _, _ in pairs}
            if len(columns) > 1:
                raise UsageError("the labels of a list are values of one column; repeat --label with the same COLUMN")
            wanted = candidates.any_label(columns.pop(), [value.strip() for _, _, value in pairs])
            new = candidates.list_labelled(store, id, _collection(gallery, encoder), wanted)
        every = len(store.candidates(id))
    if lacking:
        warn(f"left out: {quantity(len(lacking), 'photo')} that the gallery lacks, such as {lacking[0]}")
    fields = {"query": id, "new": new, "listed": every, "unknown": len(lacking)}
    more = "; the same line adds those that come next" if nearest and new else ""
    print_result(fields, [f"{quantity(new, 'new photo')} on the list, {every} in all{more}"], json)


# -- labelling ------------------------------------------------------------------------------------------------------


@app.command("mark")
def mark(
    id: str = QUERY,
    file: Path = typer.Argument(
        help="A .csv, .tsv, .jsonl or .parquet table: image (a file name, path or id) and mark "
        "(y, n, d for doubt, empty to remove a mark)."
    ),
    who: str = AS,
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Import marks that were made elsewhere."""
    # By photo; a table without the column takes no mark back, it is refused
    import eyespot
    from eyespot.photos.kinds import SUFFIXES
    from eyespot.search.matching import matched
    from eyespot.storage.tables import rows_of
    from eyespot.storage.text_files import refuse, required

    if file.suffix.lower() in SUFFIXES:
        raise UsageError(f"{file} is a picture; name a table with the columns image and mark, or mark on the page")
    given: list[tuple[str, str | None]] = []
    for at, row in rows_of(file):
        if "mark" not in row:
            refuse(file, f"line {at}", f"has no column mark beside image; there are: {', '.join(row)}")
        given.append((required(file, at, row, "image", "image_id"), str(row["mark"] or "") or None))
    with open_store(gallery) as store:
        listed, ids = set(store.photos(id)), {name: name for name, _ in given}
        if ids.keys() - listed:
            known = matched(eyespot.open(gallery_here(gallery)).view, ids)
            ids = {name: image or name for name, image in zip(known.names, known.ids, strict=True)}
        marks = {ids[name]: mark for name, mark in given}
        if strange := marks.keys() - listed:
            many = quantity(len(strange), "photo is", "photos are")
            raise UsageError(f"{many} on no list of {id}, such as {min(strange)}; list them first")
        changed = store.mark(id, who, marks)
    if several := len(given) - len(marks):
        lines = quantity(several, "line names", "lines name")
        warn(f"{lines} a photo that a later line marks; the last mark of each photo counts")
    fields = {"query": id, "changed": changed, "given": len(marks)}
    print_result(fields, [f"{quantity(changed, 'mark')} changed, {len(marks) - changed} were so already"], json)
    if not json and (empty := sum(mark is None for mark in marks.values())):
        warn(f"{empty} of the {len(marks)} had an empty mark, which takes back what was marked before")


@app.command("audit")
def audit(
    id: str = QUERY,
    who: str = AS,
    size: int = typer.Option(300, "--size", min=1, help="Photos to sample."),
    seed: int = typer.Option(None, "--seed", help="The same seed gives the same sample.", show_default="a fresh draw"),
    joins: bool = flag("--join", "Work at the audit that somebody else drew."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Sample photos at random from the unlabelled ones; their marks show how many relevant photos remain."""
    from eyespot.curate.annotate.auditing import Plan, draw, join

    with open_store(gallery) as store:
        collection = _collection(gallery) if store.grows(id) and not joins else None
        drawn = join(store, id, who) if joins else draw(store, id, who, collection, Plan(size, seed))
        last = store.last_audit(id, who)
        people = [] if last is None else store.auditors(last[0])
        marked = set[str]().union(*store.said_by(id, people).values())
    waiting = [one for one in drawn.photos if one.image not in marked]
    even = None if drawn.design is None else len(drawn.design.even)  # photos drawn with the same chance
    fields = {"query": id, "rest": drawn.rest, "photos": [each._asdict() for each in drawn.photos], "even": even}
    fields["open"] = [one.image for one in waiting]
    near = "" if even is None else f", {len(drawn.photos) - even} near the labelled depth"
    line = f"{len(drawn.photos)} of {quantity(drawn.rest, 'photo')} drawn{near}; {len(waiting)} are open"
    way = "mark the open ones on the pages of eyespot serve, or with eyespot annotate mark; --join lists them again"
    print_result(fields, [line, *(escaped(f"  {one.path or one.image}") for one in waiting)], json)
    print_summary(way)


# -- looking at it --------------------------------------------------------------------------------------------------


@app.command("status")
def status(
    id: str = ONE,
    wage: float = typer.Option(15.5, "--wage", min=0, help="The cost of an hour, in US dollars."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Show the progress of each query: labelled, stopped, remaining with its interval, time, cost, open problems."""
    from eyespot.curate.annotate.export import labelled, unseen
    from eyespot.curate.annotate.queries import CRITERIA

    with open_store(gallery) as store:
        queries = [labelled(store, query) for query in ([id] if id else store.queries())]
    if not queries:
        raise NothingFound("no query was taken in yet; begin with: eyespot annotate add FILE.csv")
    fields, lines = {}, []
    for query in queries:
        costs = {one.who: one.as_json(wage) for one in query.stands}
        together = None if query.team is None else query.team.as_json(wage)
        criteria = {name: query.wanted.facts.get(name) or "open" for name in CRITERIA}
        about = {"text": query.wanted.text, "criteria": criteria, "listed": len(query.photos), "annotators": costs}
        fields[query.wanted.id] = {**about, "together": together, "faults": query.faults}
        lines.append(f"{query.wanted.id}: {query.wanted.text} ({len(query.photos)} listed)")
        lines.append("  criteria: " + ", ".join(f"{CRITERIA[name]} ({one})" for name, one in criteria.items()))
        for one in [*query.stands, *([query.team] if query.team else [])]:
            down = one.descent
            where = "at the end" if one.exhausted else f"at {down.depth}, {down.in_a_row} in a row not relevant"
            where += f", stopped at {down.stopped_at}" if down.stopped_at else ""
            took = "time unknown" if one.seconds is None else f"{one.seconds / 60:.0f} min, ${one.cost(wage):.2f}"
            counts = f"{one.relevant} relevant of {one.labelled}"
            lines.append(f"  {one.who}: {counts}; {where}; still unseen: {unseen(one)}; {took}")
        lines += [f"  open problems: {'; '.join(query.faults)}"] if query.faults else []
    print_result(fields, map(escaped, lines), json)


@app.command("agreement")
def agreement(id: str = ONE, gallery: Path = GALLERY, json: bool = json_option()) -> None:
    """Show how often annotators who labelled the same photos agree, and how far beyond chance."""
    from eyespot.curate.annotate.agreement import coefficients, everybody, overlaps

    with open_store(gallery) as store:
        marks = {query: everybody(store, query) for query in ([id] if id else store.queries())}
    pairs = {query: overlaps(every) for query, every in marks.items()}
    if not any(pairs.values()):
        raise NothingFound("no photo was labelled by two people; let a second one label a part with --as NAME")
    fields: dict[str, dict[str, Any]] = {}
    lines = []
    for query, every in pairs.items():
        beyond = {name: asdict(value) for name, value in coefficients(marks[query]).items()}
        rows = [{**pair._asdict(), "photos": pair.photos, "agreed": pair.agreed} for pair in every]
        fields[query] = {"pairs": rows, **beyond}
        for pair in every:
            lines.append(f"{query}  {pair.first}, {pair.second}: {pair.agreed:.1%} of {quantity(pair.photos, 'photo')}")
        for name, value in beyond.items():
            text = f"{value['value']:.2f} ({value['low']:.2f} to {value['high']:.2f})"
            alike = f"cannot be computed, because all {quantity(value['ratings'], 'mark')} are the same"
            lines.append(f"{query}  {name}: {text if value['value'] == value['value'] else alike}")
    print_result(fields, map(escaped, lines), json)


# -- taking it away -------------------------------------------------------------------------------------------------


@app.command("export")
def export(
    out: Path = typer.Argument(help="A new folder."),
    clean: bool = flag("--kept", "Only queries without open problems."),
    without_flagged: bool = flag("--without-flagged", "Leave out photos that somebody flagged."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Write the labelled set: INQUIRE's CSV files, qrels, the lists, and a datasheet."""
    from eyespot.curate.annotate.export import every, flawless, without_photos, write

    with open_store(gallery) as store:
        queries = flawless(every(store)) if clean else every(store)
        queries = without_photos(queries, store.team.flags.images()) if without_flagged else queries
        write(store, queries, out)
    warn_all(f"{one.wanted.id} has open problems: {'; '.join(one.faults)}" for one in queries if one.faults)
    counts = {one.wanted.id: {"labelled": len(one.labels), "relevant": sum(one.labels.values())} for one in queries}
    fields = {"out": str(out), "queries": counts}
    lines = (escaped(f"{id}  {count['relevant']} relevant of {count['labelled']}") for id, count in counts.items())
    print_result(fields, lines, json)
    print_summary(f"written to {out}")
