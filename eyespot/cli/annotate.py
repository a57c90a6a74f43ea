"""`eyespot annotate`: label queries to the end, alone or with others, and export what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, note, print_json, print_line, print_summary
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.curate.annotate.agreement import Overlap
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.search.collection import Collection

app = typer.Typer(no_args_is_help=True, help="Label queries completely, alone or with others.")
GALLERY = gallery_option("The gallery whose photos are labelled.")
ENCODER = typer.Option(None, "-e", "--encoder", envvar="EYESPOT_ENCODER", help="Search this encoder's space.")
QUERY = typer.Argument(help="The query's id.")
AS = typer.Option(..., "--as", envvar="EYESPOT_ANNOTATOR", help="Your name: a label, without proof.")


@app.callback()
def options() -> None:
    """Label queries completely, alone or with others; `eyespot serve` has the pages for it."""


@contextmanager
def _desk(gallery: Path | None) -> Iterator[AnnotationStore]:
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery_here(gallery))  # a ledger without a gallery would be a stray file
    with AnnotationStore(opened.path / "ledger.sqlite") as desk:
        yield desk


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
    with _desk(gallery) as desk:
        left_out = desk.take_in(wanted)
    for one in left_out:
        note(f"{one.id} is left out: not {' and not '.join(one.failing)}")
    taken = [one.id for one in wanted if one not in left_out]
    if json:
        print_json({"taken": taken, "left_out": {one.id: one.failing for one in left_out}})
    else:
        print_line(f"{len(taken)} taken in, {len(left_out)} left out")


@app.command("list")
def listed(
    id: str = QUERY,
    label: list[str] = typer.Option(
        None, "--label", metavar="COLUMN=VALUE", help="All photos with this label; repeatable."
    ),
    nearest: int = typer.Option(
        None,
        "--nearest",
        min=1,
        help="The photos nearest to the text, this many at first; more are added as you label.",
    ),
    run: Path = typer.Option(None, "--run", help="The photos of a ranking, in any known format."),
    gallery: Path = GALLERY,
    encoder: str = ENCODER,
    json: bool = json_option(),
) -> None:
    """Select the photos to label for a query: those with some labels, the nearest, or those of a ranking."""
    from eyespot.curate.annotate import candidates

    if (bool(label) + (nearest is not None) + (run is not None)) != 1:
        raise UsageError("say which photos in one way: --label COLUMN=VALUE, --nearest N, or --run FILE")
    with _desk(gallery) as desk:
        if run is not None:
            from eyespot.runs import read_run

            new = candidates.list_ranked(desk, id, read_run(run))
        elif nearest is not None:
            new = candidates.list_nearest(desk, id, _collection(gallery, encoder), nearest)
        else:
            new = _list_labels(desk, id, label, _collection(gallery, encoder))
        every = len(desk.candidates(id))
    if json:
        print_json({"query": id, "new": new, "listed": every})
    else:
        print_line(f"{new} new photos on the list, {every} in all")


def _list_labels(desk: AnnotationStore, id: str, labels: list[str], collection: Collection) -> int:
    from eyespot.curate.annotate import candidates

    pairs = []
    for one in labels:
        pair_column, sign, pair_value = one.partition("=")
        if not sign or not pair_column.strip():
            raise UsageError(f"--label takes COLUMN=VALUE, as in --label species='Ardea cinerea', not {one!r}")
        pairs.append((pair_column.strip(), pair_value.strip()))
    columns = {column for column, _ in pairs}
    if len(columns) > 1:
        raise UsageError("the labels of a list are values of one column; repeat --label with the same COLUMN")
    wanted = candidates.any_label(pairs[0][0], [value for _, value in pairs])
    return candidates.list_labelled(desk, id, collection, wanted)


@app.command("remove")
def remove(id: str = QUERY, gallery: Path = GALLERY) -> None:
    """Delete a query that has no marks, with its list."""
    with _desk(gallery) as desk:
        desk.remove(id)
    print_line(f"{id} is removed")


# -- labelling ------------------------------------------------------------------------------------------------------


@app.command("mark")
def mark(
    id: str = QUERY,
    file: Path = typer.Argument(
        help="A table with the columns image and mark: y, n, d for doubt, empty to remove a mark."
    ),
    who: str = AS,
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Import marks that were made elsewhere."""
    # By photo; a table without the column takes no mark back, it is refused
    from eyespot.storage.files import refuse, required, rows_of

    marks: dict[str, str | None] = {}
    for at, row in rows_of(file):
        if "mark" not in row:
            refuse(file, f"line {at}", f"has no column mark; there are: {', '.join(row)}")
        marks[required(file, at, row, "image", "image_id")] = str(row["mark"] or "") or None
    with _desk(gallery) as desk:
        strange = set(marks) - set(desk.photos(id))
        if strange:
            raise UsageError(f"{len(strange)} photos are on no list of {id}, such as {min(strange)}; list them first")
        changed = desk.mark(id, who, marks)
    if json:
        print_json({"query": id, "changed": changed, "given": len(marks)})
    else:
        print_line(f"{changed} marks changed, {len(marks) - changed} were so already")
        if empty := sum(mark is None for mark in marks.values()):
            note(f"{empty} of the {len(marks)} had an empty mark, which takes back what was marked before")


@app.command("audit")
def audit(
    id: str = QUERY,
    who: str = AS,
    size: int = typer.Option(300, "--size", min=1, help="Photos to sample."),
    seed: int = typer.Option(None, "--seed", help="The same seed gives the same sample.", show_default="a fresh draw"),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Sample photos at random from the unlabelled ones; their marks show how many relevant photos remain."""
    from eyespot.curate.annotate.auditing import Plan, draw

    with _desk(gallery) as desk:
        collection = _collection(gallery) if desk.grows(id) else None
        drawn = draw(desk, id, who, collection, Plan(size, seed))
    if json:
        print_json({"query": id, "rest": drawn.rest, "photos": [photo._asdict() for photo in drawn.photos]})
    else:
        print_line(f"{len(drawn.photos)} of {drawn.rest} photos drawn; mark them on the pages of eyespot serve")


@app.command("settle")
def settle(
    id: str = QUERY,
    image: str = typer.Argument(help="The photo's id."),
    mark: str = typer.Argument(help="y, n, or d for doubt."),
    who: str = AS,
    gallery: Path = GALLERY,
) -> None:
    """Settle a photo on which annotators differ."""
    from eyespot.curate.annotate import agreement

    with _desk(gallery) as desk:
        if image not in desk.photos(id):
            raise UsageError(f"no photo {image} is on the list of {id}; see: eyespot annotate disputes {id}")
        agreement.settle(desk, id, who, image, mark)


# -- looking at it --------------------------------------------------------------------------------------------------


@app.command("status")
def status(
    id: str = typer.Argument(None, help="Only this query."),
    wage: float = typer.Option(15.5, "--wage", min=0, help="The cost of an hour, in US dollars."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Show the progress of each query: labelled, stopped, remaining with its interval, time, cost, open problems."""
    from eyespot.curate.annotate.export import labelled

    with _desk(gallery) as desk:
        found = [labelled(desk, one) for one in ([id] if id else desk.queries())]
    if not found:
        raise NothingFound("no query was taken in yet; begin with: eyespot annotate add FILE.csv")
    if json:
        print_json({one.wanted.id: _status_fields(one, wage) for one in found})
        return
    for one in found:
        print_line(escaped(f"{one.wanted.id}: {one.wanted.text} ({len(one.photos)} listed)"))
        for stands in one.stands:
            from eyespot.curate.annotate.datasheet import unseen

            down = stands.descent
            where = "at the end" if stands.exhausted else f"at {down.depth}, {down.in_a_row} in a row not relevant"
            stop = f", stopped at {down.stopped_at}" if down.stopped_at else ""
            took = f"{stands.seconds / 60:.0f} min, ${stands.cost(wage):.2f}"
            counts = f"{stands.relevant} relevant of {stands.labelled}"
            status_line = f"{stands.who}: {counts}; {where}{stop}; still unseen: {unseen(stands)}; {took}"
            print_line(escaped(f"  {status_line}"))
        if one.faults:
            print_line(escaped(f"  to mend: {'; '.join(one.faults)}"))


def _status_fields(one: Any, wage: float) -> dict[str, Any]:
    stands = {each.who: {**each.told(), "cost": round(each.cost(wage), 2)} for each in one.stands}
    return {"text": one.wanted.text, "listed": len(one.photos), "annotators": stands, "faults": one.faults}


@app.command("agreement")
def agreement(
    id: str = typer.Argument(None, help="Only this query."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Show how often annotators who labelled the same photos agree, and how far beyond chance."""
    from eyespot.curate.annotate.agreement import coefficients, everybody, overlaps

    with _desk(gallery) as desk:
        said = {one: everybody(desk, one) for one in ([id] if id else desk.queries())}
    found = {one: overlaps(every) for one, every in said.items()}
    if not any(found.values()):
        raise NothingFound("no photo was labelled by two people; let a second one label a part with --as NAME")
    beyond = {one: {name: each._asdict() for name, each in coefficients(every).items()} for one, every in said.items()}
    if json:
        print_json({one: {"pairs": [_counted(each) for each in found[one]], **beyond[one]} for one in found})
        return
    for one, every in found.items():
        for each in every:
            print_line(escaped(f"{one}  {each.first}, {each.second}: {each.agreed:.1%} of {each.photos} photos"))
        for name, told in beyond[one].items():
            print_line(escaped(f"{one}  {name}: {told['value']:.2f} ({told['low']:.2f} to {told['high']:.2f})"))


def _counted(overlap: Overlap) -> dict[str, Any]:
    return {**overlap._asdict(), "photos": overlap.photos, "agreed": overlap.agreed}


@app.command("disputes")
def disputes(
    id: str = typer.Argument(None, help="Only this query."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """List the photos on which annotators differ and that nobody has settled."""
    from eyespot.curate.annotate import agreement

    with _desk(gallery) as desk:
        found = {one: agreement.disputes(desk, one) for one in ([id] if id else desk.queries())}
    if json:
        print_json(
            {one: [{"image": each.image, "marks": each.marks} for each in every] for one, every in found.items()}
        )
        return
    for one, every in found.items():
        for each in every:
            print_line(
                escaped(f"{one}  {each.image}  " + "  ".join(f"{who}: {said}" for who, said in each.marks.items()))
            )


# -- taking it away -------------------------------------------------------------------------------------------------


@app.command("export")
def export(
    out: Path = typer.Argument(help="A new folder."),
    kept: bool = typer.Option(False, "--kept", help="Only queries without open problems."),
    rerank: Path = typer.Option(None, "--rerank", help="Also make the re-ranking subset, in this new folder."),
    depth: int = typer.Option(100, "--depth", help="Candidates per query of that subset."),
    layout: str = typer.Option(
        "rerank-set", "--layout", help="rerank-set, or inquire-rerank: the parquet files of the hub."
    ),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """Write the labelled set: INQUIRE's CSV files, qrels, the lists, Label Studio's JSON, and a datasheet."""
    from eyespot.curate.annotate.export import every, flawless, write

    with _desk(gallery) as desk:
        written = flawless(every(desk)) if kept else every(desk)
        write(desk, written, out)
    for one in written:
        if one.faults:
            note(f"{one.wanted.id} is to be mended: {'; '.join(one.faults)}")
    counts = {one.wanted.id: {"labelled": len(one.labels), "relevant": sum(one.labels.values())} for one in written}
    if rerank is not None:
        _write_rerank(written, (out, rerank), depth, layout)
    if json:
        print_json({"out": str(out), "queries": counts, "rerank": None if rerank is None else str(rerank)})
    else:
        for id, count in counts.items():
            print_line(escaped(f"{id}  {count['relevant']} relevant of {count['labelled']}"))
    print_summary(f"written to {out}")


def _write_rerank(written: list[Any], folders: tuple[Path, Path], depth: int, layout: str) -> None:
    from eyespot.curate.annotate.export import ANNOTATIONS, QUERIES, rerank_set
    from eyespot.curate.rerank import Division, RerankLimits
    from eyespot.curate.rerank_card import RerankInputs
    from eyespot.curate.rerank_files import write

    out, rerank = folders
    limits = RerankLimits(depth)
    made = rerank_set(written, limits, Division())
    for sentence in made.notes:
        note(sentence)
    files = {"queries": out / QUERIES, "annotations": out / ANNOTATIONS}
    write(made, rerank, RerankInputs(files, {"depth": depth, "least": limits.least, "most": limits.most}), layout)
