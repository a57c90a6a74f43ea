"""`eyespot lists`: the named lists of photos that were made in the browser, and their photos as files of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli._hits_out import FilesOut
from eyespot.cli.console import escaped, exit_if_failed, print_result
from eyespot.cli.settings import gallery_here, gallery_option, group, json_option
from eyespot.types import NothingFound, UsageError

if TYPE_CHECKING:
    from eyespot.ledger.photo_lists import PhotoLists

app = group("Show the named lists of photos, and take their photos out.")
_NAME = typer.Argument(metavar="NAME", help="The list's name or id.")


@app.command("list")
def list_(gallery: Path = gallery_option("The gallery."), json: bool = json_option()) -> None:
    """All lists, the latest first: id, number of photos, who made it, name."""
    with _opened(gallery_here(gallery)) as lists:
        found = lists.all()
    if not found:
        raise NothingFound("there is no list in this gallery; make one on the pages of eyespot serve")
    rows = [{"list": one.id, "name": one.name, "photos": one.photos, "by": one.maker} for one in found]
    lines = (f"{one.id}\t{one.photos}\t{escaped(one.maker)}\t{escaped(one.name)}" for one in found)
    print_result(rows, lines, json)


@app.command("show")
def show(name: str = _NAME, gallery: Path = gallery_option("The gallery."), json: bool = json_option()) -> None:
    """The photos of a list, in their order: where each lies, or its id where that is not known."""
    hits = _hits(gallery_here(gallery), name)
    rows = [{"id": hit["id"], "path": hit["path"]} for hit in hits]
    print_result(rows, (escaped(str(hit["path"] or hit["id"])) for hit in hits), json)


@app.command("export")
def export(output: FilesOut, name: str = _NAME, gallery: Path = gallery_option("The gallery.")) -> None:
    """Copy the originals of a list, link to them, or write a table of them."""
    if not (output.copy_to or output.album or output.csv):
        raise UsageError("say where to: --copy FOLDER, --album FOLDER or --csv FILE")
    hits = _hits(gallery_here(gallery), name)
    exit_if_failed(output.write(hits))


def _opened(gallery: Path) -> PhotoLists:
    from eyespot.gallery import disk
    from eyespot.ledger.photo_lists import PhotoLists

    disk.read_header(gallery)
    ledger = gallery / "ledger.sqlite"
    if not ledger.exists():
        raise NothingFound("there is no list in this gallery; make one on the pages of eyespot serve")
    return PhotoLists(ledger)


def _hits(gallery: Path, name: str) -> list[dict[str, Any]]:
    """The photos of a list with what the gallery knows of them; those that it has no more are left out."""
    import eyespot

    with _opened(gallery) as lists:
        images = lists.photos(name)
    view = eyespot.open(gallery).view
    hits = view.facts([row for row in view.rows_by_id(images).tolist() if row >= 0 and view.live[row]])
    if not hits:
        raise NothingFound(f"the list {name!r} has no photo that is in the gallery")
    return hits
