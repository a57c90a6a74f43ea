"""What a power cut may leave of a folder: a recorder for a process that writes, and the disks that follow from it.

Nothing is on the disk before it is flushed. A file holds what it held at its last `fsync`, a folder has the names that
it had at its own; what came later is there, is not, or (of a file) is there in part, and for every file and folder
separately. That is as loose as POSIX allows, and looser than any one file system. SQLite flushes by itself, which
Python does not see: its files are taken to be on the disk as they are.

`python -m tests.worlds.power_cuts SCENARIO PLACE LOG` runs a scenario, which writes below PLACE, with the recorder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock
from typing import Any

RETURNED = "test.returned"  # the event of a scenario that says: this was promised to be on the disk
MADE_ANEW = ("-shm", "lock")  # SQLite's map of its log, and files that are only locked
EMPTY = hashlib.sha256(b"").hexdigest()
VERSIONS = ("1" * 99, "2" * 99, "3" * 99)
TORN = " + half of "  # between two digests: of a file that is there in part
LOOSE = 4  # folders of which all combinations are tried; of more, none, all, and all but one

Names = dict[str, dict[str, str]]  # {folder: {name: file or folder}}, each known by its inode
Data = dict[str, str]  # {file: digest of its bytes}
Tree = Mapping[str, str | None]  # {path: digest of its bytes; None: a folder}


@dataclass(frozen=True)
class Moment:
    """A disk just before `event`: as programs see it, and as far as it was flushed."""

    event: str
    names: Names
    data: Data
    flushed_names: Names
    flushed_data: Data


# -- in the process that writes -----------------------------------------------------------------------------------


class Recorder:
    """Writes a moment down before every flush and every change of names below `root`; `os` does the work as ever."""

    def __init__(self, root: Path, log: Path) -> None:
        self._root, self._log, self._lock = root, log, RLock()
        self._pins: dict[str, int] = {}  # open handles: an inode that is held is not given to another file
        self._names: Names = {}
        self._data: Data = {}
        self._look()
        self._flushed_names, self._flushed_data = dict(self._names), dict(self._data)
        self._flush, self._is_on = os.fsync, True

    def start(self) -> None:
        os.fsync = self._fsync
        sys.addaudithook(self._hear)

    def stop(self) -> None:
        """What the process does as it ends, as coverage.py that renames its data, is not part of the scenario."""
        os.fsync, self._is_on = self._flush, False

    def _hear(self, event: str, _values: tuple[Any, ...]) -> None:
        if self._is_on and event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", RETURNED):
            self._note(event)

    def _fsync(self, file: Any) -> None:
        self._note("fsync")
        self._flush(file)
        with self._lock:
            self._look()
            inode = str(os.fstat(file).st_ino)
            if inode in self._names:
                self._flushed_names[inode] = self._names[inode]
            elif inode in self._data:
                self._flushed_data[inode] = self._data[inode]

    def _note(self, event: str) -> None:
        with self._lock, (self._log / "moments.jsonl").open("a") as file:
            self._look()
            moment = Moment(event, self._names, self._data, self._flushed_names, self._flushed_data)
            file.write(json.dumps(asdict(moment)) + "\n")

    def _look(self) -> None:
        """What programs see; files and folders whose names are gone stay as they were, for the names may come back."""
        folders = [self._root]
        while folders:
            folder = folders.pop()
            listed = self._names[self._pinned(folder)] = {}
            for entry in os.scandir(folder):
                if not entry.name.endswith(MADE_ANEW):
                    listed[entry.name] = inode = self._pinned(Path(entry.path))
                    if entry.is_dir():
                        folders.append(Path(entry.path))
                    else:
                        self._data[inode] = self._kept(Path(entry.path))

    def _pinned(self, path: Path) -> str:
        inode = str(path.stat().st_ino)
        if inode not in self._pins:
            self._pins[inode] = os.open(path, os.O_RDONLY)
        return inode

    def _kept(self, path: Path) -> str:
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if not (blob := self._log / digest).exists():
            blob.write_bytes(data)
        return digest


def write(place: Path, version: str) -> None:
    """A folder with a folder in it."""
    (place / "deep").mkdir()
    (place / "a").write_text(version)
    (place / "deep" / "b").write_text(version)


def new_file(place: Path) -> None:
    from eyespot.storage.atomic import new_file

    for version in VERSIONS:
        with new_file(place / "made") as file:
            file.write(version.encode())
        sys.audit(RETURNED)


def new_folder(place: Path) -> None:
    from eyespot.storage.atomic import new_folder

    for version in VERSIONS:
        with new_folder(place / "made") as folder:
            write(folder, version)
        sys.audit(RETURNED)


def put_folder(place: Path) -> None:
    """Of a folder that lies elsewhere and was made without a word to the disk."""
    from eyespot.storage.atomic import put_folder

    for version in VERSIONS:
        (place / "elsewhere" / version).mkdir(parents=True)
        write(place / "elsewhere" / version, version)
        put_folder(place / "elsewhere" / version, place / "made")
        sys.audit(RETURNED)


def make_folder(place: Path) -> None:
    from eyespot.storage.atomic import make_folder

    for name in ("a/b/c", "a/d"):
        make_folder(place / name)
        sys.audit(RETURNED)


def locked(place: Path) -> None:
    from eyespot.storage.locks import locked

    with locked(place / "a" / "b"):
        sys.audit(RETURNED)


def connect(place: Path) -> None:
    from eyespot.storage.sqlite import connect

    connect(place / "a" / "b" / "ledger.sqlite").close()
    sys.audit(RETURNED)


def write_queue(place: Path) -> None:
    from eyespot.pipelines.human_review import Case, write_queue

    write_queue(place / "a" / "review" / "faces.jsonl", [Case("face", "Is this a face?")])
    sys.audit(RETURNED)


def save_adapter(place: Path) -> None:
    import numpy as np

    from eyespot.adapters.linear import Linear, save

    save(place / "a" / "run", Linear(np.eye(2, dtype=np.float32), np.zeros(2, np.float32)))
    sys.audit(RETURNED)


def append_line(place: Path) -> None:
    from eyespot.storage.atomic import append_line

    with (place / "log").open("ab") as file:
        for version in VERSIONS:
            append_line(file, version.encode())
            sys.audit(RETURNED)


def index(place: Path) -> None:
    """The photos of a folder beside PLACE, in shards of two."""
    from eyespot import rooms
    from eyespot.gallery.indexing import Options, index

    options = Options(workers=1, shard_rows=2)
    index(place / "gallery", [str(place.parent / "photos")], [rooms.load("encoders", "starter")], options)
    sys.audit(RETURNED)


def pipeline(place: Path) -> None:
    """The made-up pipeline; the second time with a step that has changed."""
    from eyespot.pipelines import RunOptions, run
    from tests.worlds.pipelines import client, pipeline

    for count in (8, 12):
        run(pipeline(count), place / "work", RunOptions(3, client=client()))
        sys.audit(RETURNED)


# -- in the test --------------------------------------------------------------------------------------------------


def moments(log: Path) -> list[Moment]:
    return [Moment(**json.loads(line)) for line in (log / "moments.jsonl").read_text().splitlines()]


def disks(moment: Moment) -> Iterator[Tree]:
    """What a power cut at this moment may leave below the root, each once."""
    loose = [folder for folder, names in moment.names.items() if moment.flushed_names.get(folder) != names]
    seen = set()
    for flushed_only in _subsets(loose):
        names = {folder: _listed(moment, folder, folder in flushed_only) for folder in moment.names}
        for share in ("none", "part", "all"):
            tree = dict(_tree(next(iter(names)), "", names, {file: _data(moment, file, share) for file in moment.data}))
            if (state := frozenset(tree.items())) not in seen:
                seen.add(state)
                yield tree


def _subsets(loose: list[str]) -> Iterator[tuple[str, ...]]:
    sizes = range(len(loose) + 1) if len(loose) <= LOOSE else (0, 1, len(loose) - 1, len(loose))
    return itertools.chain.from_iterable(itertools.combinations(loose, size) for size in sizes)


def _is_sqlite(name: str) -> bool:
    return ".sqlite" in name


def _listed(moment: Moment, folder: str, flushed_only: bool) -> dict[str, str]:
    now, before = moment.names[folder], moment.flushed_names.get(folder, {})
    if not flushed_only:
        return now
    return {name: inode for name, inode in now.items() if _is_sqlite(name)} | {
        name: inode for name, inode in before.items() if not _is_sqlite(name)
    }


def _data(moment: Moment, file: str, share: str) -> str:
    """What a file holds if none, a part or all is there of what was written since its last flush."""
    now, flushed = moment.data[file], moment.flushed_data.get(file, EMPTY)
    in_sqlite = any(
        _is_sqlite(name) and inode == file for names in moment.names.values() for name, inode in names.items()
    )
    if now == flushed or share == "all" or in_sqlite:
        return now
    return flushed if share == "none" else flushed + TORN + now


def _tree(folder: str, path: str, names: Names, data: Data) -> Iterator[tuple[str, str | None]]:
    for name, inode in names[folder].items():
        yield path + name, data.get(inode)
        if inode in names:
            yield from _tree(inode, f"{path}{name}/", names, data)


def lay_out(tree: Tree, log: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for path, digest in tree.items():
        if digest is None:
            (place / path).mkdir()
        else:
            (place / path).write_bytes(content(digest, log))


def content(digest: str, log: Path) -> bytes:
    flushed, torn, now = digest.partition(TORN)
    data = b"" if flushed == EMPTY else (log / flushed).read_bytes()
    if not torn:
        return data
    new = (log / now).read_bytes()
    return new[: (len(data if new.startswith(data) else b"") + len(new)) // 2]


SCENARIOS: dict[str, Callable[[Path], None]] = {
    scenario.__name__: scenario
    for scenario in (
        *(new_file, new_folder, put_folder, make_folder, locked, connect, append_line, index, pipeline),
        *(write_queue, save_adapter),
    )
}

if __name__ == "__main__":
    from tests import networks

    networks.install(writes=False)
    name, place, log = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    recorder = Recorder(place, log)
    recorder.start()
    SCENARIOS[name](place)
    recorder.stop()
