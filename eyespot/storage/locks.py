"""Locks between programs: one writer of a folder, and one at a time for a file that grows.

A killed program's lock is free again. Both need a file system with `flock`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from eyespot.storage.atomic import make_folder
from eyespot.storage.flock import lock_now
from eyespot.types import EyespotError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One writer at a time; `EyespotError` if another eyespot is writing here."""
    from filelock import FileLock, Timeout  # for those who write

    make_folder(folder)
    with ExitStack() as held:
        try:
            held.enter_context(FileLock(folder / "lock", blocking=False, fallback_to_soft=False))
        except Timeout:
            raise EyespotError(f"another eyespot is writing to {folder}; wait for it to end and run again") from None
        yield


@contextmanager
def locked_for_children(folder: Path) -> Iterator[list[int]]:
    """As `locked`; the block gets the file handles to pass on to a child, which then holds the lock as long as it runs.

    So the folder stays locked when the parent is killed and its child works on.
    """
    with locked(folder):
        handle = os.open(folder / "lock.children", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not lock_now(handle):
                raise EyespotError(f"a command of the last run is still at work in {folder}; wait for it to end")
            yield [handle]
        finally:
            os.close(handle)


@contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Whoever appends to a file waits here for the others; the lock is a hidden file next to it."""
    from filelock import FileLock

    with FileLock(path.with_name(f".{path.name}.lock"), fallback_to_soft=False, poll_interval=0.005):
        yield
