"""`eyespot index --watch`: index, and again whenever photos came, changed or went."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from eyespot import rooms
from eyespot.cli.console import conclude, note
from eyespot.types import EyespotError, UsageError

if TYPE_CHECKING:
    from eyespot.photos.sources import Root


def keep_up(gallery: Path, roots: Sequence[Root], first: Callable[[], None], later: Callable[[], None]) -> None:
    """Do `first`, then `later` after each burst of changes in the folders among `roots`, until Ctrl-C.

    What fails in between is a note, and the next burst tries it again. `UsageError` where no root is a folder.
    """
    folders = [root.place for root in roots if root.kind == "folder"]
    if not folders:
        raise UsageError("--watch watches folders, and none is named or known; name one: eyespot index PHOTOS --watch")
    if len(folders) < len(roots):
        note("tars, lists and single pictures are indexed now and not watched")
    with rooms.needs("--watch"):
        from eyespot.gallery.watching import changes
    if not any(map(os.path.isdir, folders)):  # then not even the first run begins
        note(f"waiting for {', '.join(folders)}, which {'is' if len(folders) == 1 else 'are'} missing; Ctrl-C ends it")
    watching = changes(folders, gallery)
    next(watching)  # what changes while the first run goes on is seen after it
    with suppress(typer.Exit):  # some files cannot be read
        first()
    conclude(f"watching {', '.join(folders)}; Ctrl-C ends it")
    try:
        for _ in watching:
            try:
                with suppress(typer.Exit):
                    later()
            except EyespotError as error:
                note(f"{error}; the next change tries it again")
            except Exception as error:  # whatever one round ends in, photos that come later are indexed
                what = str(error) or "no more is known"
                note(f"this round failed ({type(error).__name__}: {what}); the next change tries it again")
    except KeyboardInterrupt:
        conclude("no longer watching; the next eyespot index takes what comes from now on")
