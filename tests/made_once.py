"""What takes seconds to make and is never changed is made once for all workers of a run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

VARIABLE = "TESTS_MADE_ONCE"  # workers inherit it from the process that starts them


def open_store() -> tempfile.TemporaryDirectory[str] | None:
    """The folder for what is made once; nothing where a run that started this process has one."""
    if VARIABLE in os.environ:
        return None
    store = tempfile.TemporaryDirectory(prefix="eyespot-made-once-")
    os.environ[VARIABLE] = store.name
    return store


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, made by whoever needs it first. Nobody may change it: copy it first."""
    place = Path(os.environ[VARIABLE]) / name
    done = place.with_suffix(".done")
    with FileLock(place.with_suffix(".lock")):
        if not done.exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            make(place)
            done.touch()
    return place
