"""Publishing: what is new of a gallery goes to an address, what is damaged there goes again, and `gallery.json` last.

A gallery may be written meanwhile. What is published is one state of it: after everything is sent the files are looked
at again, and those that have changed are sent too, until nothing has.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from eyespot.gallery import disk
from eyespot.gallery.remote.manifest import MANIFEST, OURS, DamagedManifest, File, Manifest, published_name
from eyespot.gallery.remote.stores import PIECE, Conflict, Store, store_at
from eyespot.parallel import ordered_map
from eyespot.storage.digests import BLAKE2B
from eyespot.types import EyespotError, Progress, UsageError, no_progress

_DIGITS = re.compile(r"\.[0-9a-f]{12}(\.|$)")
PASSES = 50  # over a gallery that changes meanwhile
TRIES = 20  # to put `gallery.json` in place where others publish too


@dataclass(frozen=True)
class PublishResult:
    """What a publication did: files and bytes that were sent, and files that lay there already."""

    sent: int
    size: int
    known: int


@dataclass(frozen=True)
class LocalState:
    """By what a file of the gallery is known to be as it was: files are replaced, never changed in place."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> LocalState:
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class ChangedMeanwhile(Exception):
    """A file of the gallery was replaced or removed while it was read."""


def publish(gallery: Path | str, url: str, *, progress: Progress = no_progress, check: bool = False) -> PublishResult:
    """Send what is new or missing of a gallery to an address; run it again after every change, also after a kill.

    `check` reads every file at the address, and sends again what is damaged. Raises `UsageError` if there is no
    gallery, or vectors of it were imported in place and so are not in it; `EyespotError` if the address cannot be
    written, another eyespot publishes to it, or its `gallery.json` is damaged and `check` is not given.
    """
    gallery = Path(gallery).expanduser()
    disk.read_header(gallery)
    for shard in disk.shard_paths(gallery):
        for note in disk.read_notes(shard):
            if note.source is not None:
                raise UsageError(
                    f"the vectors of {note.space.encoder} lie in place at {note.source} and not in the gallery; import "
                    "them with --copy to publish them"
                )
    publication = Publication(gallery, store_at(url), progress)
    with publication.store.lock():
        for _ in range(TRIES):
            try:
                return publication.run(check)
            except Conflict:
                continue
    raise EyespotError(f"others publish to {publication.store.shown} all the time; wait for them to end and run again")


class Publication:
    """What one call of `publish` knows: which bytes at the address are sound, and what it has sent."""

    def __init__(self, gallery: Path, store: Store, progress: Progress) -> None:
        self.gallery, self.store, self.progress = gallery, store, progress
        self.sent: dict[str, int] = {}  # bytes, by the name at the address
        self._described: dict[tuple[str, LocalState], File] = {}

    def run(self, check: bool) -> PublishResult:
        """Once through; `Conflict` if another publication came first, after which it can run again."""
        found = self.store.read(MANIFEST)
        before, version = Manifest(), found and found[1]
        try:
            before = Manifest.of(found[0], self.store.shown) if found else before
        except DamagedManifest:
            if not check:  # which mends it
                raise
        sizes = self.store.sizes()
        sound = self._sound(before, sizes) if check else None
        files = self._send_gallery(before, sizes, sound)
        self.store.replace(MANIFEST, Manifest(files).as_json(), version)
        known = sum(file.at not in self.sent for file in files.values())
        return PublishResult(len(self.sent), sum(self.sent.values()), known)

    def _sound(self, before: Manifest, sizes: dict[str, int]) -> set[str]:
        """The names at the address whose bytes are what their names or `gallery.json` say, after reading them all."""
        digests = {file.at: file.digest for file in before.files.values()}
        names = [name for name in sizes if name in digests or _DIGITS.search(name)]
        total, done, sound = sum(sizes[name] for name in names), 0, set()

        def digest_of(name: str) -> str:
            digest = BLAKE2B()
            for start in range(0, sizes[name], PIECE):
                digest.update(self.store.range(name, start, min(start + PIECE, sizes[name])))
            return digest.hexdigest()

        for name, digest in zip(names, ordered_map(digest_of, names, self.store.transfers, 64), strict=True):
            # Also a file that no sound `gallery.json` lists has the first digits of its digest in its name.
            if digest == digests[name] if name in digests else f".{digest[:12]}" in name:
                sound.add(name)
            done += sizes[name]
            self.progress("checking", done, total)
        return sound

    def _send_gallery(self, before: Manifest, sizes: dict[str, int], sound: set[str] | None) -> dict[str, File]:
        """One state of the gallery, all of which is at the address now."""
        for _ in range(PASSES):
            states = _states(self.gallery)
            send = partial(self._send_file, before, sizes, sound)
            total, done, files = sum(state.size for state in states.values()), 0, dict[str, File]()
            try:
                for name, file in zip(states, ordered_map(send, states.items(), self.store.transfers, 64), strict=True):
                    files[name] = file
                    done += file.size
                    self.progress("publishing", done, total)
            except ChangedMeanwhile:
                continue
            if _states(self.gallery) == states:
                return files
        raise EyespotError(f"{self.gallery} changes all the time; run this again when nobody writes to it")

    def _send_file(
        self, before: Manifest, sizes: dict[str, int], sound: set[str] | None, item: tuple[str, LocalState]
    ) -> File:
        """A file as it was seen, at the address; `ChangedMeanwhile` if it is not as it was."""
        name, state = item
        file = self._described.get(item)
        known = before.files.get(name)
        if file is None and known is not None and (known.size, known.mtime_ns) == (state.size, state.mtime_ns):
            file = known
        if file is not None and self._is_there(file, sizes, sound):
            return file
        try:
            with (self.gallery / name).open("rb") as source:
                if LocalState.of(os.fstat(source.fileno())) != state:
                    raise ChangedMeanwhile
                digest = hashlib.file_digest(source, BLAKE2B).hexdigest()
                file = File(published_name(name, digest), state.size, digest, state.mtime_ns)
                self._described[item] = file
                if not self._is_there(file, sizes, sound):
                    source.seek(0)
                    self.store.send(source, file.at)
                    self.sent[file.at] = file.size
        except FileNotFoundError:
            raise ChangedMeanwhile from None
        return file

    def _is_there(self, file: File, sizes: dict[str, int], sound: set[str] | None) -> bool:
        return file.at in self.sent or (sizes.get(file.at) == file.size and (sound is None or file.at in sound))


def _states(gallery: Path) -> dict[str, LocalState]:
    """The gallery's files as they are, those of approximate indexes among them; the header last."""
    merged = {shard.name for shard in disk.merged_paths(gallery)}  # whose rows are in a segment, which is sent
    # Walked, not globbed: a folder may be removed meanwhile.
    walks = (os.walk(gallery / part) for part in ("indexes", "shards"))
    places = sorted(Path(folder, name) for walk in walks for folder, _, names in walk for name in names)
    states = {}
    for place in [*places, gallery / disk.HEADER]:
        name = place.relative_to(gallery).as_posix()
        is_merged = name.startswith("shards/") and name.split("/")[1] in merged
        if OURS.fullmatch(name) and "/." not in name and not is_merged:
            with suppress(FileNotFoundError):
                if place.is_file():
                    states[name] = LocalState.of(place.stat())
    return states
