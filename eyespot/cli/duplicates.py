"""`eyespot duplicates`: copies and bursts, what they take, and which file of each would stay. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from eyespot.cli.console import escaped, print_result, warn
from eyespot.cli.settings import gallery_here, gallery_option, json_option
from eyespot.types import NothingFound, quantity

if TYPE_CHECKING:
    from eyespot.gallery.groups.listing import FileGroup

PANELS = 200  # groups of a contact sheet
HEADINGS = {"exact": "exact copies", "copies": "near-duplicates", "burst": "frames of a burst"}


def run(
    gallery: Path = gallery_option("The gallery to look through."),
    json: bool = json_option(),
    html: Path = typer.Option(None, "--html", help="Write a contact sheet of the groups that take most."),
) -> None:
    """List copies and bursts, how much they take, and which file of each would stay; nothing is deleted."""
    import eyespot
    from eyespot.gallery import disk, items_table
    from eyespot.gallery.groups.listing import GROUP_KINDS, file_groups, lost_with
    from eyespot.gallery.groups.near_duplicates import lacks_hashes

    groups = file_groups(view := eyespot.open(gallery_here(gallery)).view)
    without = sum(items_table.count_items(s) for s in view.shards if lacks_hashes(s) and not disk.is_imported(s))
    if without:
        line = f"eyespot index --repair -g {quote(str(view.gallery.path))}"
        warn(f"copies of {quantity(without, 'picture')} without perceptual hashes are missed; make them with: {line}")
    by_kind = {kind: [group for group in groups if group.kind == kind] for kind in GROUP_KINDS}
    totals = {
        kind: {"groups": len(of), "files": sum(len(one.files) for one in of), "freed": sum(one.freed for one in of)}
        for kind, of in by_kind.items()
    }
    if html:
        _write_sheet(html, groups)
    if not groups and not json:
        raise NothingFound("no copies and no bursts were found; every picture shows something of its own")
    fields, lines = list[dict[str, Any]](), list[str]()
    for group in groups:
        lost = [lost_with(file, group.files[0]) for file in group.files]
        files = [{**asdict(file), "stays": not at, "lost": lost[at]} for at, file in enumerate(group.files)]
        fields.append({"kind": group.kind, "freed": group.freed, "why": group.why, "files": files})
        lines.append(f"{len(files)} {HEADINGS[group.kind]}, {_size(group.freed)} would be freed")
        for at, file in enumerate(group.files):
            about = f"{file.width} x {file.height}, {_size(file.size)}"
            about += f"; with it goes: {', '.join(lost[at])}" if lost[at] else ""
            about += f"; nothing is freed inside {Path(file.inside).name}" if file.inside else ""
            lines.append(f"  {'-' if at else 'stays'}  {escaped(file.path)}  ({about if at else group.why})")
    counts = ((quantity(one["groups"], "group"), kind, one) for kind, one in totals.items() if one["groups"])
    lines += [f"{count} of {HEADINGS[kind]}: {_size(one['freed'])} would be freed" for count, kind, one in counts]
    print_result({"groups": fields, "totals": totals}, lines, json)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _write_sheet(place: Path, groups: Sequence[FileGroup]) -> None:
    from eyespot.search.contact_sheet import SheetPanel, Tile, as_html, thumbnail_of
    from eyespot.storage.atomic import write_whole

    panels = []
    for group in groups[:PANELS]:
        files = enumerate(group.files, 1)
        tiles = [Tile(thumbnail_of(f.path), at, None, Path(f.path).name, f"{f.width} x {f.height}") for at, f in files]
        heading = f"{len(tiles)} {HEADINGS[group.kind]}, {_size(group.freed)} would be freed"
        panels.append(SheetPanel(heading, f"The first would stay: {group.why}.", tiles))
    if len(groups) > PANELS:
        warn(f"{place} shows the {PANELS} groups that take most; --json lists all {len(groups):,}")
    write_whole(place, lambda file: file.write(as_html("Copies and bursts", panels).encode()))
