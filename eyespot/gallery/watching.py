"""Watching folders: the moments at which photos came, changed or went, as the operating system reports them."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from watchfiles import Change, watch

from eyespot.types import EyespotError

QUIET_MS = 1_000  # a card that is being copied is indexed in few runs, not once for each photo
LONGEST_MS = 15_000  # the longest wait for that quiet
CHECK_MS = 2_000  # how often folders that were away are checked


def changes(folders: Collection[str], gallery: Path) -> Iterator[None]:
    """Yield once when the watch stands, and then after each burst of changes below `folders`.

    A folder that is away is watched from when it comes back. Changes of `gallery`, which may lie among the photos, do
    not count. Never ends. Raises `EyespotError` where the system cannot watch that many folders.
    """
    outside = _OutsideGallery(gallery)
    while True:
        if not (present := _present(folders)):
            time.sleep(CHECK_MS / 1000)
            continue
        bursts = watch(
            *present,
            watch_filter=outside,
            debounce=LONGEST_MS,
            step=QUIET_MS,
            rust_timeout=CHECK_MS,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        begun = False
        try:
            for burst in bursts:
                if _present(folders) != present or any(path in present for _, path in burst):
                    break  # before the yield: a gallery in a folder that went away must not be made anew
                if burst or not begun:
                    begun = True
                    yield
        except OSError as error:
            raise EyespotError(
                f"the folders cannot be watched ({error}); raise the limit fs.inotify.max_user_watches, "
                "or set WATCHFILES_FORCE_POLLING=1"
            ) from error


def _present(folders: Collection[str]) -> list[str]:
    return [folder for folder in folders if os.path.isdir(folder)]


class _OutsideGallery:
    """True for a change of a file that is not in the gallery."""

    def __init__(self, gallery: Path) -> None:
        self.inside = tuple(os.path.join(place, "") for place in {os.path.abspath(gallery), os.path.realpath(gallery)})

    def __call__(self, change: Change, path: str) -> bool:
        return not os.path.join(path, "").startswith(self.inside)
