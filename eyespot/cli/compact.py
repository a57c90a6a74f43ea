"""`eyespot compact`: merge a gallery's many small shards into few large segments."""

from __future__ import annotations

from pathlib import Path

import typer

from eyespot.cli.console import print_result, progress_bar, warn_all
from eyespot.cli.settings import flag, gallery_here, gallery_option, json_option
from eyespot.types import UsageError

FEWEST = 1_000  # rows of a segment


def run(
    gallery: Path = gallery_option("The gallery whose shards are merged."),
    rows: int = typer.Option(1 << 20, help="The most rows of a segment.", metavar="N"),
    dry_run: bool = flag("--dry-run", "Only print how many shards would be merged."),
    json: bool = json_option(),
) -> None:
    """Merge small shards into large segments, so that a gallery of millions opens fast and needs few open files."""
    from eyespot.gallery import disk, segments

    if rows < FEWEST:
        raise UsageError(f"a segment has at least {FEWEST} rows; give --rows {FEWEST} or more")
    place = gallery_here(gallery, writes=True)
    if dry_run:
        groups = segments.planned(place, rows)
        merged = segments.Merged([], sum(map(len, groups)), 0, [])
        made = len(groups)
    else:
        with progress_bar() as progress:
            merged = segments.compact(place, rows, progress)
        made = len(merged.segments)
    warn_all(merged.notes)
    there = len(disk.shard_paths(place))
    verb = "would be merged" if dry_run else "merged"
    segments_made = "1 segment" if made == 1 else f"{made} segments"
    done = f"{merged.shards} shards {verb} into {segments_made}" if made else "nothing to merge"
    holds = f"the gallery is in {'1 part' if there == 1 else f'{there} parts'}"
    facts = {"segments": made, "merged": merged.shards, "rows": merged.rows, "notes": merged.notes}
    facts |= {"shards": there, "dry_run": dry_run}
    print_result(facts, [f"{done}{'; ' if made else ': '}{holds}"], json)
