"""`eyespot build inat` at the terminal: a bar while it works, the funnel afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot.cli.telling import as_json, line, note, progress_bar, summarise

if TYPE_CHECKING:
    from eyespot.build.inat.curating import Curated
    from eyespot.build.inat.settings import Settings


def licences(kinds: list[str]) -> tuple[str, ...]:
    """The licences that are wanted; `UsageError` for one that is not known."""
    from eyespot.build.inat.licences import checked

    return checked(kinds)


def curate(export: Path, out: Path, settings: Settings, json: bool) -> None:
    """Make the collection; exit code 3 if pictures are missing or do not decode."""
    from eyespot.build.inat.curating import curate as made

    with progress_bar("steps") as tell:
        done = made(export, out, settings, tell)
    _tell(done, json, out=str(out), pictures=done.pictures)
    if settings.pictures.folder is None:
        note(f"no --photos: {out / 'download.csv'} lists what to fetch; run the line again with the folder")
    if done.waiting:
        note(
            f"{done.waiting:,} pictures wait for a person: eyespot build review {out / 'review.jsonl'}, then run again"
        )
    summarise(f"{done.pictures:,} pictures in {out}")
    if done.failed:
        note(f"{done.failed:,} pictures are missing or do not decode; {out / 'card.md'} counts them")
        raise typer.Exit(3)


def foretell(export: Path, settings: Settings, first: int, json: bool) -> None:
    """The funnel of the first so many observations; nothing is written."""
    from eyespot.build.inat.curating import foretell as told

    with progress_bar("steps") as tell:
        done = told(export, settings, first, tell)
    _tell(done, json, first=first)
    summarise("nothing was written")


def _tell(done: Curated, json: bool, **more: object) -> None:
    for sentence in done.notes:
        note(sentence)
    if json:
        shown = [{name: one[name] for name in ("step", "came", "kept", "dropped", "ran")} for one in done.steps]
        as_json({"steps": shown, "draw": dict(done.drawn), "waiting": done.waiting, "failed": done.failed, **more})
        return
    for one in done.steps:
        dropped = "".join(f"; {count:,} {reason}" for reason, count in one["dropped"].items())
        line(f"{one['step']:<12} {one['came']:,} in, {one['kept']:,} kept{dropped}")
    told = done.drawn
    if told.get("spread_drawn") is not None:
        line(
            f"{'spread':<12} {told['spread_drawn']:.1f} cells drawn, {told['spread_random']:.1f} by lot, "
            f"{told['spread_before']:.1f} before (mean effective number, {told['over_cap']:,} species over the cap)"
        )
