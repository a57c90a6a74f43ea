"""Runs a writer and prints what it flushed and renamed: `python -m tests.worlds.recorded NAME PLACE TIMES`.

A file or folder is named by its inode, which stays the same through a rename.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EVENTS: list[Any] = []


def record() -> None:
    """From now on note every flush and every rename; `os` does the work as ever."""
    flush = os.fsync

    def fsync(file: Any) -> None:
        flush(file)
        EVENTS.append(["fsync", os.fstat(file).st_ino])

    def hear(event: str, values: tuple[Any, ...]) -> None:
        if event == "os.rename":
            EVENTS.append(["rename", os.stat(values[0]).st_ino, os.fspath(values[1])])

    os.fsync = fsync
    sys.addaudithook(hear)


def files(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "deep" / "b.txt").write_text("b")


def whole_file(place: Path) -> Path:
    from eyespot.storage.atomic import write_whole

    write_whole(place, lambda file: file.write(b"x"))
    return place


def new_file(place: Path) -> Path:
    from eyespot.storage.atomic import new_file

    with new_file(place) as file:
        file.write(b"x")
    return place


def codes(place: Path) -> Path:
    from eyespot.kernels.codes import write_codes

    write_codes(np.eye(8, dtype=np.float32), place)
    return place.with_name(f"{place.name}.match.npy")


def whole_folder(place: Path) -> Path:
    from eyespot.storage.atomic import whole_folder

    with whole_folder(place) as folder:
        files(folder)
    return place


def new_folder(place: Path) -> Path:
    from eyespot.storage.atomic import new_folder

    with new_folder(place) as folder:
        files(folder)
    return place


def shard(place: Path) -> Path:
    from eyespot.gallery.disk import shard_path
    from eyespot.storage import atomic

    with atomic.new_folder(shard_path(place, 0)) as folder:
        files(folder)
    return shard_path(place, 0)


WRITERS: dict[str, Callable[[Path], Path]] = {
    one.__name__: one for one in (whole_file, new_file, codes, whole_folder, new_folder, shard)
}

if __name__ == "__main__":
    name, place, times = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    for _ in range(times - 1):
        WRITERS[name](place)
    record()
    made = WRITERS[name](place)
    inodes = {str(one): one.stat().st_ino for one in [made, *made.rglob("*"), made.parent]}
    print(json.dumps({"made": str(made), "inodes": inodes, "events": EVENTS}))
