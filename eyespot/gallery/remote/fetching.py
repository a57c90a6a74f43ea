"""Fetching: a local copy of what is published, of which only what has changed comes over the network."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from eyespot.gallery import disk
from eyespot.gallery.remote.manifest import MANIFEST, OURS, File, Manifest, mended
from eyespot.gallery.remote.stores import Store, store_at
from eyespot.parallel import ordered_map
from eyespot.storage.atomic import new_file, put_folder
from eyespot.storage.digests import BLAKE2B
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, UsageError, no_progress

STATE = disk.FETCHED
LOG = f"{STATE}l"  # a line for each file that has come since the state was written: `.fetched.jsonl`


_COMING = ".coming"  # at the end of a segment's hidden name, while its files are on their way


def copies() -> Path:
    """Where local copies lie."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return cache / "eyespot" / "galleries"


def fetch(url: str, into: Path | None = None, progress: Progress = no_progress) -> Path:
    """The local copy of a published gallery, brought up to date: only what has changed comes over the network.

    `into` is its folder, one of the user's cache for None. Every file is checked against its digest. What was made in
    the copy (judgements, thumbnails, indexes) stays. Raises `UsageError` if nothing is published there, `EyespotError`
    if it cannot be had whole.
    """
    store = store_at(url)
    found = store.read(MANIFEST)
    if found is None:
        raise UsageError(f"no gallery is published at {store.url}; do so with: eyespot publish {store.url}")
    wanted = Manifest.of(found[0], store.url).files
    name = re.sub(r"[^A-Za-z0-9.]+", "-", store.url).strip("-")[-40:]
    copy = into or copies() / f"{name}-{hashlib.sha256(store.url.encode()).hexdigest()[:8]}"
    same = _fetched(copy) == {name: file.digest for name, file in wanted.items()}
    is_current = same and all((copy / name).is_file() for name in wanted)
    if not is_current:  # else several may read at once
        with locked(copy):
            _fetch(store, wanted, copy, progress)
    return copy


def _fetch(store: Store, wanted: dict[str, File], copy: Path, progress: Progress) -> None:
    have = _fetched(copy)
    missing = {
        name: file for name, file in wanted.items() if have.get(name) != file.digest or not _place(copy, name).is_file()
    }
    # After a kill between a file and its line in the log, the file counts neither as what it was nor as another's.
    have |= dict.fromkeys(missing, "")
    _remember(copy, have)
    total = sum(file.size for file in wanted.values())
    done = total - sum(file.size for file in missing.values())
    header = missing.pop(disk.HEADER, None)
    with (copy / LOG).open("a", encoding="utf-8") as log:
        work = partial(_fetch_file, store, copy)
        for name, file in zip(missing, ordered_map(work, missing.items(), store.transfers, 64), strict=True):
            _note(log, have, name, file)
            done += file.size
            progress("fetching", done, total)
        for folder in {_place(copy, name).parent for name in wanted if _place(copy, name) != copy / name}:
            put_folder(folder, folder.with_name(_final_name(folder)))
        if header is not None:
            # Who opens the copy meanwhile finds no space whose vectors are still on their way.
            _note(log, have, disk.HEADER, _fetch_file(store, copy, (disk.HEADER, header)))
            progress("fetching", total, total)
    for name in set(have) - set(wanted):
        (copy / name).unlink(missing_ok=True)
        del have[name]
    shards = {name.split("/")[1] for name in wanted if name.startswith("shards/")}
    for shard in (*disk.shard_paths(copy), *disk.merged_paths(copy), *copy.glob(f"shards/.*{_COMING}")):
        if shard.name not in shards:
            shutil.rmtree(shard)
    _remember(copy, have)


def _place(copy: Path, name: str) -> Path:
    """Where a file lies, or is to lie: a segment appears whole, for it hides the shards that it was made of."""
    place = copy / name
    if "-" not in place.parent.name or place.parent.is_dir() or place.parent.parent.name != "shards":
        return place
    return place.parent.with_name(f".{place.parent.name}{_COMING}") / place.name


def _final_name(folder: Path) -> str:
    return folder.name[1:].removesuffix(_COMING)


def _fetch_file(store: Store, copy: Path, item: tuple[str, File]) -> File:
    name, file = item
    place = _place(copy, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    digest, size = BLAKE2B(), 0
    with new_file(place) as local:
        for piece in store.pieces(file.at, file.size):
            local.write(piece)
            digest.update(piece)
            size += len(piece)
        if (size, digest.hexdigest()) != (file.size, file.digest):
            raise EyespotError(f"{store.url}/{file.at} is not what was published; {mended(store.url)}")
        local.flush()  # before its name: codes and indexes know by the time that they still fit
        os.utime(local.name, ns=(file.mtime_ns, file.mtime_ns))
    return file


# -- what has come already ------------------------------------------------------------------------------------


def _fetched(copy: Path) -> dict[str, str]:
    """The digests of the files that were fetched, by their names."""
    found: list[object] = []
    with suppress(OSError, ValueError, AttributeError):
        found += json.loads((copy / STATE).read_bytes()).items()
    with suppress(OSError, ValueError), (copy / LOG).open("rb") as log:  # the last line may be cut
        found += map(json.loads, log)
    have: dict[str, str] = {}
    for line in found:
        match line:
            case [str(name), str(digest)] | (str(name), str(digest)) if OURS.fullmatch(name):
                have[name] = digest
    return have


def _remember(copy: Path, have: dict[str, str]) -> None:
    """Write the state whole, which takes the place of the log: a log whose last line is cut is never added to."""
    with new_file(copy / STATE) as state:
        state.write(json.dumps(have).encode())
    (copy / LOG).unlink(missing_ok=True)


def _note(log: IO[str], have: dict[str, str], name: str, file: File) -> None:
    have[name] = file.digest
    log.write(json.dumps([name, file.digest]) + "\n")
    log.flush()
