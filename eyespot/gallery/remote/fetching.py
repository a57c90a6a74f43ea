"""Fetching: a local copy of what is published, of which only what is needed and has changed comes over the network.

A copy has parts: the facts, which come first, each space with its vectors and codes, and the indexes of each space.
What has come whole is kept up to date; `complete` brings a part when a command comes to need it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import IO, NamedTuple

from eyespot.gallery import disk
from eyespot.gallery.remote.downloads import ByteProgress, Downloads, part_of
from eyespot.gallery.remote.manifest import EVERYTHING, MANIFEST, OURS, DamagedManifest, File, Manifest
from eyespot.gallery.remote.stores import Store, store_at
from eyespot.models.web import public
from eyespot.storage.atomic import FULL, new_file, put_folder
from eyespot.storage.digests import BLAKE2B, DIGESTS, sound_digests
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, UsageError, no_progress

STATE = disk.FETCHED
LOG = f"{STATE}l"  # a line for each file that has come since the state was written: `.fetched.jsonl`
ORIGIN = ".origin.json"  # the address, the parts that are whole, and the name of the next one
PUBLISHED = ".published-{}.json"  # `gallery.json` as it was when these parts came
_LOG = logging.getLogger("eyespot.gallery.remote")
_COMING = ".coming"  # at the end of a segment's hidden name, while its files are on their way


def copies() -> Path:
    """Where local copies lie."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return cache / "eyespot" / "galleries"


def fetch(
    url: str,
    into: Path | None = None,
    progress: Progress = no_progress,
    part: str = EVERYTHING,
    tell: Callable[[str], None] = _LOG.warning,
) -> Path:
    """The local copy of a published gallery, brought up to date: only what has changed comes over the network.

    `into` is its folder, one of the user's cache for None. `part` comes if it has not yet: everything, FACTS, a space
    by its stem, or `indexes/STEM`; others stay away until `complete` or a `view` of the gallery needs them. Every file
    is checked against its digest. What was made in the copy (judgements, thumbnails, indexes) stays. Where the address
    cannot be reached, a copy that is whole serves as it is, and `tell` gets a sentence with its date. Raises
    `UsageError` if nothing is published there, `EyespotError` if it cannot be had whole.
    """
    store = store_at(url)
    name = re.sub(r"[^A-Za-z0-9.]+", "-", store.shown).strip("-")[-40:]
    copy = into or copies() / f"{name}-{hashlib.sha256(store.url.encode()).hexdigest()[:8]}"
    try:
        found = store.read(MANIFEST)
        if found is None:
            raise UsageError(f"no gallery is published at {store.shown}; do so with: eyespot publish {store.shown}")
    except (EyespotError, UsageError) as error:
        if isinstance(error, DamagedManifest) or (then := _date_of_whole(copy, store.shown, part)) is None:
            raise
        why = str(error).partition(";")[0]
        tell(f"{why}; the copy here answers as of {then:%Y-%m-%d %H:%M}")
        return copy
    manifest = Manifest.of(found[0], store.shown)
    if not _is_current(copy, manifest, found[0], part):  # else several may read at once
        with locked(copy):
            origin = read_origin(copy)
            # Of a copy that an older eyespot made, the parts of its files
            parts = origin.parts if origin else {manifest.part_of(name) for name in fetched_files(copy)}
            Fetch(store, manifest, copy, progress).run(parts | manifest.parts_of(part), found[0])
    return copy


def _date_of_whole(copy: Path, shown: str, part: str) -> datetime | None:
    """When a copy was brought up to date; None if it lacks something of this part, or was on its way then."""
    with suppress(EyespotError, OSError):
        if (origin := read_origin(copy)) is not None:
            text = origin.text(copy)
            if _is_current(copy, Manifest.of(text, shown), text, part):
                return date_of(copy, origin)
    return None


def date_of(copy: Path, origin: CopyOrigin) -> datetime:
    """When a copy was last brought up to date with its address, in this machine's time. OSError if that is lost."""
    return datetime.fromtimestamp((copy / origin.published).stat().st_mtime)


def complete(copy: Path, part: str, progress: Progress = no_progress) -> None:
    """Bring a part of a copy that has not come yet, of the state that the copy has; nothing happens elsewhere.

    Raises `EyespotError` if the address cannot be reached, or another eyespot fetches to the copy.
    """
    origin = read_origin(copy)
    if origin is None or part in origin.parts:
        return
    with locked(copy):
        origin = read_origin(copy) or origin
        text = origin.text(copy)
        manifest = Manifest.of(text, public(origin.url))
        if not (parts := manifest.parts_of(part)) <= origin.parts:
            Fetch(store_at(origin.url), manifest, copy, progress).run(origin.parts | parts, text)


def _is_current(copy: Path, manifest: Manifest, text: bytes, part: str) -> bool:
    origin = read_origin(copy)
    if origin is None or origin.published != name_of(text) or not manifest.parts_of(part) <= origin.parts:
        return False
    have, wanted = fetched_files(copy), manifest.of_parts(origin.parts)
    is_cut = not have.keys() <= manifest.files.keys()  # on its way to another state, or from one
    same = (have.get(name) == file.digest and (copy / name).is_file() for name, file in wanted.items())
    with suppress(EyespotError):
        return not is_cut and origin.text(copy) == text and all(same)
    return False


class Fetch:
    """One run that brings a copy from whatever it has to some parts of what is published."""

    def __init__(self, store: Store, manifest: Manifest, copy: Path, progress: Progress) -> None:
        self.store, self.manifest, self.copy, self.progress = store, manifest, copy, progress

    def run(self, parts: Set[str], text: bytes) -> None:
        """Bring what is missing; the header last, so that nobody finds a state that is still on its way."""
        wanted, have = self.manifest.of_parts(parts), fetched_files(self.copy)
        missing = {
            name: file
            for name, file in wanted.items()
            if have.get(name) != file.digest or not _place(self.copy, name).is_file()
        }
        # After a kill between a file and its line in the log, the file counts neither as what it was nor as another's.
        have |= dict.fromkeys(missing, "")
        remember(self.copy, have)
        try:
            self._bring(missing, wanted, have)
        except OSError as error:
            if error.errno not in FULL:
                raise
            lacking = sum(file.size for name, file in missing.items() if have.get(name) != file.digest)
            raise EyespotError(
                f"there is no room for the copy at {quote(str(self.copy))}, which needs up to {lacking / 1e6:,.1f} MB "
                "more; make room, or set XDG_CACHE_HOME to a larger disk, and run the same line again"
            ) from error
        write_origin(self.copy, self.store.url, parts, text)
        if header := missing.get(disk.HEADER):
            with (self.copy / LOG).open("a", encoding="utf-8") as log:
                downloads = Downloads(self.store, ByteProgress(no_progress, 0, 0))
                for _ in downloads.bring([(self.copy / disk.HEADER, header)]):
                    note_file(log, have, disk.HEADER, header)
        self._drop(wanted, have)
        remember(self.copy, have)

    def _bring(self, missing: dict[str, File], wanted: dict[str, File], have: dict[str, str]) -> None:
        total = sum(file.size for file in wanted.values())
        bar = ByteProgress(self.progress, total - sum(file.size for file in missing.values()), total)
        names = {_place(self.copy, name): name for name in missing if name != disk.HEADER}
        with (self.copy / LOG).open("a", encoding="utf-8") as log:
            items = ((place, missing[name]) for place, name in names.items())
            for place, file in Downloads(self.store, bar).bring(items):
                note_file(log, have, names[place], file)
            for folder in {_place(self.copy, name).parent for name in wanted} - {self.copy}:
                if folder.name.endswith(_COMING):
                    put_folder(folder, folder.with_name(folder.name[1:].removesuffix(_COMING)))
        bar.add(missing[disk.HEADER].size if disk.HEADER in missing else 0)
        for inside in {name.rpartition("/")[0] for name in missing if "/" in name}:
            # Digests that list what has just come take the date of now: all other files of the folder are newer, and
            # whoever opens the copy would read every byte again
            listed = sound_digests(self.copy / inside)
            files = ((name, self.manifest.files.get(f"{inside}/{name}")) for name in listed)
            if listed and all(file is None or file.digest == listed[name] for name, file in files):
                now = time.time_ns()
                os.utime(self.copy / inside / DIGESTS, ns=(now, now))
        if missing:
            bar.tell()

    def _drop(self, wanted: dict[str, File], have: dict[str, str]) -> None:
        """What is no more of the gallery, and what had come of a part that is not wanted and has changed since."""
        for name in set(have) - set(wanted):
            if name not in self.manifest.files or self.manifest.files[name].digest != have[name]:
                (self.copy / name).unlink(missing_ok=True)
                del have[name]
        shards = {name.split("/")[1] for name in self.manifest.files if name.startswith("shards/")}
        leftovers = self.copy.glob(f"shards/.*{_COMING}")
        for shard in (*disk.shard_paths(self.copy), *disk.merged_paths(self.copy), *leftovers):
            if shard.name not in shards:
                shutil.rmtree(shard)
        # What had come of a large file goes on only if that is still published
        growing = {part_of(self.copy / name, file) for name, file in self.manifest.files.items()}
        for part in set(self.copy.glob("shards/*/.*.part")) - growing:
            part.unlink(missing_ok=True)


def _place(copy: Path, name: str) -> Path:
    """Where a file lies, or is to lie: a segment appears whole, for it hides the shards that it was made of."""
    place = copy / name
    if "-" not in place.parent.name or place.parent.is_dir() or place.parent.parent.name != "shards":
        return place
    return place.parent.with_name(f".{place.parent.name}{_COMING}") / place.name


# -- what a copy knows of itself: which files have come, of which published state, which parts are whole ------------


class CopyOrigin(NamedTuple):
    """Where a copy comes from, the parts that have come whole, and the file that says what was published by then."""

    url: str
    parts: frozenset[str]
    published: str

    def text(self, copy: Path) -> bytes:
        """`gallery.json` as it was published; `EyespotError` if the copy has lost it."""
        with suppress(OSError):
            if name_of(text := (copy / self.published).read_bytes()) == self.published:
                return text
        raise EyespotError(f"{copy} does not know any more what it has; name its address, as in: -g {public(self.url)}")


def read_origin(copy: Path) -> CopyOrigin | None:
    """None for a folder that is not a copy, or was made by an older eyespot, which noted none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads((copy / ORIGIN).read_bytes())
        return CopyOrigin(str(found["url"]), frozenset(map(str, found["parts"])), Path(found["published"]).name)
    return None


def name_of(text: bytes) -> str:
    """The name in a copy of what is published: one of its content."""
    return PUBLISHED.format(BLAKE2B(text).hexdigest()[:12])


def write_origin(copy: Path, url: str, parts: Iterable[str], text: bytes) -> None:
    """Note it in one step, with the `gallery.json` that was read there."""
    published = name_of(text)
    with new_file(copy / published) as file:
        file.write(text)
    with new_file(copy / ORIGIN) as file:
        Path(file.name).chmod(0o600)  # an address may hold a password
        file.write(json.dumps({"url": url, "parts": sorted(parts), "published": published}).encode())
    for other in copy.glob(PUBLISHED.format("*")):
        if other.name != published:
            other.unlink(missing_ok=True)


def fetched_files(copy: Path) -> dict[str, str]:
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


def remember(copy: Path, have: dict[str, str]) -> None:
    """Write the state whole, which takes the place of the log: a log whose last line is cut is never added to."""
    with new_file(copy / STATE) as state:
        state.write(json.dumps(have).encode())
    (copy / LOG).unlink(missing_ok=True)


def note_file(log: IO[str], have: dict[str, str], name: str, file: File) -> None:
    """One more file has come."""
    have[name] = file.digest
    log.write(json.dumps([name, file.digest]) + "\n")
    log.flush()
