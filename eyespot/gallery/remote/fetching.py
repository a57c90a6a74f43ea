"""Fetching: a local copy of what is published, to which only what is new or has changed comes over the network.

Files come several at once, and of a large one several ranges; each is checked. What has come stays after a kill.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from shlex import quote

from eyespot.gallery import disk
from eyespot.gallery.remote.manifest import MANIFEST, OURS, File, Manifest, mended
from eyespot.gallery.remote.stores import PIECE, Store, store_at
from eyespot.parallel import ordered_map
from eyespot.storage.atomic import FULL, new_file, put_file, put_folder
from eyespot.storage.digests import BLAKE2B, DIGESTS, file_blake2b, sound_digests
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, UsageError, no_progress

_LOG = logging.getLogger("eyespot.gallery.remote")  # the only one that warns
_LOG.addHandler(logging.NullHandler())  # silent, unless a program or --verbose asks for it
_COMING = ".coming"  # at the end of a segment's hidden name, while its files are on their way
LARGE = 4 * PIECE  # bytes; of a larger file several ranges come at once


def copies() -> Path:
    """Where local copies lie."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return cache / "eyespot" / "galleries"


def fetch(
    url: str,
    into: Path | str | None = None,
    progress: Progress = no_progress,
    tell: Callable[[str], None] = _LOG.warning,
) -> Path:
    """The local copy of a published gallery, brought up to date: only what has changed comes over the network.

    `into` is its folder, one of the user's cache for None. Every file is checked against its digest. What was made in
    the copy (judgements, thumbnails, indexes) stays. Where the address cannot be reached, a copy that is whole serves
    as it is, and `tell` gets a sentence with its date. Raises `UsageError` if nothing is published there,
    `EyespotError` if it cannot be had whole.
    """
    store = store_at(url)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", store.shown).strip("-")[-40:]
    default = copies() / f"{name}-{hashlib.sha256(store.url.encode()).hexdigest()[:8]}"
    copy = default if into is None else Path(into).expanduser()
    state = CopyState.of(copy)
    try:
        found = store_at(url, patient=not state.is_whole(copy)).read(MANIFEST)
        if found is None:
            raise UsageError(f"no gallery is published at {store.shown}; do so with: eyespot publish {store.shown}")
    except (EyespotError, UsageError) as error:
        if not state.is_whole(copy):
            raise
        tell(f"{str(error).partition(';')[0]}; the copy here answers as of {state.date(copy):%Y-%m-%d %H:%M}")
        return copy
    manifest, published = Manifest.of(found[0], store.shown), BLAKE2B(found[0]).hexdigest()
    if state.published != published or not state.is_whole(copy):  # else several may read at once
        with locked(copy):
            _Fetch(store, manifest, copy, progress).run(published)
    return copy


@dataclass
class CopyState:
    """What a copy has: from which address, the digest of the `gallery.json` that it is, and those of its files.

    While files are on their way `published` is empty, and so is the digest of each file that is to come.
    """

    url: str = ""
    published: str = ""
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, copy: Path) -> CopyState:
        """The state of a folder; an empty one where none can be read."""
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            found = json.loads((copy / disk.FETCHED).read_bytes())
            files = {str(name): str(digest) for name, digest in found["files"].items() if OURS.fullmatch(name)}
            return cls(str(found["url"]), str(found["published"]), files)
        return cls()

    def write(self, copy: Path) -> None:
        """In place of the state before."""
        with new_file(copy / disk.FETCHED) as file:
            Path(file.name).chmod(0o600)  # an address may hold a password
            file.write(json.dumps({"url": self.url, "published": self.published, "files": self.files}).encode())

    def is_whole(self, copy: Path) -> bool:
        """Whether all that was published has come."""
        return bool(self.published) and all((copy / name).is_file() for name in self.files)

    def date(self, copy: Path) -> datetime:
        """When it was brought up to date, in this machine's time."""
        return datetime.fromtimestamp((copy / disk.FETCHED).stat().st_mtime)


class _Fetch:
    """One run that brings a copy from whatever it has to what is published."""

    def __init__(self, store: Store, manifest: Manifest, copy: Path, progress: Progress) -> None:
        self.store, self.copy, self.progress, self.wanted = store, copy, progress, manifest.files
        self.total, self.done = sum(file.size for file in self.wanted.values()), 0  # bytes

    def run(self, published: str) -> None:
        """Bring what is missing; the header last, so that nobody finds a state that is still on its way."""
        before = CopyState.of(self.copy).files
        missing = {name: file for name, file in self.wanted.items() if not self._is_here(name, file, before)}
        # After a kill a file that is to come counts neither as what it was nor as another's
        CopyState(self.store.url, "", before | dict.fromkeys(missing, "")).write(self.copy)
        self.done = self.total - sum(file.size for file in missing.values())
        try:
            self._bring(missing)
        except OSError as error:
            if error.errno not in FULL:
                raise
            lacking = sum(file.size for file in missing.values())
            raise EyespotError(
                f"there is no room for the copy at {quote(str(self.copy))}, which needs up to {lacking / 1e6:,.1f} MB "
                "more; make room, or set XDG_CACHE_HOME to a larger disk, and run the same line again"
            ) from error
        self._drop(set(before) - set(self.wanted))
        CopyState(self.store.url, published, {name: file.digest for name, file in self.wanted.items()}).write(self.copy)

    def _is_here(self, name: str, file: File, before: dict[str, str]) -> bool:
        """Whether this file has come, also in a run that was killed before it could note so."""
        with suppress(OSError):
            status = _place(self.copy, name).stat()
            came = (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns) and not before.get(name)
            return came or before.get(name) == file.digest
        return False

    def _bring(self, missing: dict[str, File]) -> None:
        """All files to their places, with the times that they were published with: codes and indexes compare those."""
        names = [name for name in missing if name != disk.HEADER]
        large = [name for name in names if self.store.ranges and self.wanted[name].size > LARGE]
        small = [name for name in names if name not in set(large)]
        for name, _ in zip(small, ordered_map(self._bring_file, small, self.store.transfers, 64), strict=True):
            self._count(name)
        for name in large:
            self._bring_file(name, self.store.transfers, self._show)
            self._count(name)
        for folder in {_place(self.copy, name).parent for name in self.wanted}:
            if folder.name.endswith(_COMING):
                put_folder(folder, folder.with_name(folder.name[1:].removesuffix(_COMING)))
        for inside in {name.rpartition("/")[0] for name in names}:
            # Digests that list what has just come take the date of now: all other files of the folder are newer, and
            # would be read again. What was damaged before it was published has another digest there and is read.
            listed = sound_digests(self.copy / inside)
            files = ((name, self.wanted.get(f"{inside}/{name}")) for name in listed)
            if listed and all(file is None or file.digest == listed[name] for name, file in files):
                now = time.time_ns()
                os.utime(self.copy / inside / DIGESTS, ns=(now, now))
        if disk.HEADER in missing:
            self._bring_file(disk.HEADER)
            self._count(disk.HEADER)

    def _bring_file(self, name: str, workers: int = 1, tell: Callable[[int], None] = lambda _: None) -> None:
        """`EyespotError` for one that is not what was published."""
        place, file = _place(self.copy, name), self.wanted[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{file.digest[:12]}.part")  # no other file is continued
        for _ in range(1 + part.exists()):  # what had come of it may be damaged
            self.store.bring(file.at, part, file.size, workers, tell)
            if file_blake2b(part) == file.digest:
                os.utime(part, ns=(file.mtime_ns, file.mtime_ns))
                put_file(part, place)  # a name that a power cut takes comes again
                return
            part.unlink()
        raise EyespotError(f"{self.store.shown}/{file.at} is not what was published; {mended(self.store.shown)}")

    def _count(self, name: str) -> None:
        self.done += self.wanted[name].size
        self._show(0)

    def _show(self, came: int) -> None:
        """came: the bytes of a file that is on its way."""
        self.progress("fetching", self.done + came, self.total)

    def _drop(self, gone: Iterable[str]) -> None:
        """Files that the gallery no longer has, and parts of files that are no longer published."""
        for name in gone:
            (self.copy / name).unlink(missing_ok=True)
        shards = {name.split("/")[1] for name in self.wanted if name.startswith("shards/")}
        leftovers = self.copy.glob(f"shards/.*{_COMING}")
        for shard in (*disk.shard_paths(self.copy), *disk.merged_paths(self.copy), *leftovers):
            if shard.name not in shards:
                shutil.rmtree(shard)
        for part in self.copy.glob("shards/*/.*.part"):
            part.unlink()


def _place(copy: Path, name: str) -> Path:
    """Where a file lies, or is to lie: a segment appears whole, for it hides the shards that it was made of."""
    place = copy / name
    if "-" not in place.parent.name or place.parent.is_dir() or place.parent.parent.name != "shards":
        return place
    return place.parent.with_name(f".{place.parent.name}{_COMING}") / place.name
