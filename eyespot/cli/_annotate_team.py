"""The verbs of `eyespot annotate` for a team: who labels which query, and photos that are flagged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.console import escaped, print_line, print_result, print_summary
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.curate.annotate.annotation_store import AnnotationStore

GALLERY = gallery_option("The gallery whose photos are labelled.")
AS = typer.Option(..., "--as", envvar="EYESPOT_ANNOTATOR", help="Your name: a label, without proof.")


@contextmanager
def open_store(gallery: Path | None) -> Iterator[AnnotationStore]:
    """The annotations of a gallery."""
    from eyespot.curate.annotate.annotation_store import AnnotationStore
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery_here(gallery))  # a ledger without a gallery would be a stray file
    with AnnotationStore(opened.path / "ledger.sqlite") as store:
        yield store


def assign(
    person: str = typer.Argument(help="Who labels the queries."),
    ids: list[str] = typer.Argument(help="The ids of the queries."),
    who: str = AS,
    take: bool = typer.Option(False, "--take", help="Take the queries away instead; marks stay."),
    gallery: Path = GALLERY,
) -> None:
    """Give queries to somebody to label."""
    from eyespot.curate.annotate.team_store import name_of

    with open_store(gallery) as store:
        known = [store.query(id).id for id in ids]
        if take:
            store.team.unassign(known, name_of(person))
        else:
            store.team.assign(known, name_of(person), name_of(who))
    print_line(escaped(f"{len(known)} queries are {'taken from' if take else 'given to'} {name_of(person)}"))


def flag(
    image: str = typer.Argument(help="The photo's id."),
    kind: str = typer.Argument(help="face, personal (data), not-photo, or other with --reason."),
    who: str = AS,
    reason: str = typer.Option("", "--reason", help="What is wrong with it, in words."),
    gallery: Path = GALLERY,
) -> None:
    """Flag a photo that should not be part of a collection."""
    from eyespot.curate.annotate.team_store import name_of

    with open_store(gallery) as store:
        if not _paths(gallery, [image]):
            raise UsageError(f"no photo {image} is in this gallery; eyespot search --json prints the ids")
        new = store.team.flags.put(image, kind, name_of(who), reason)
    print_line("flagged" if new else "it was flagged so already")


def flags(
    out: Path = typer.Option(None, "--out", help="Write them as the file that build inat --flagged takes."),
    gallery: Path = GALLERY,
    json: bool = json_option(),
) -> None:
    """List the photos that somebody flagged, with what they saw and when."""
    from eyespot.curate.annotate.flags import write_flags

    with open_store(gallery) as store:
        found = store.team.flags.all()
    if not found:
        raise NothingFound("no photo is flagged; flag one with: eyespot annotate flag PHOTO face --as NAME")
    lines = (escaped(f"{one.image}  {one.words}  ({one.person})") for one in found)
    print_result({"flags": [one._asdict() for one in found]}, lines, json)
    if out is not None:
        names = _paths(gallery, [one.image for one in found])
        count = write_flags(out, found, lambda image: names.get(image, ""))
        print_summary(f"{count} flags written to {out}")


def _paths(gallery: Path | None, images: list[str]) -> dict[str, str]:
    """The path of each of these photos that is in the gallery, by id."""
    from eyespot.gallery import items_table
    from eyespot.gallery.view import Gallery

    opened = Gallery(gallery_here(gallery))
    view = opened.view(opened.stem())
    wanted, found = set(images), dict[str, str]()
    for shard in view.shards:
        table = items_table.read_items(shard, ["id", "paths"])
        for id, paths in zip(table["id"].to_pylist(), table["paths"].to_pylist(), strict=True):
            if id in wanted:
                found[id] = paths[0] if paths else ""
    return found
