"""Galleries on object storage or anywhere else that fsspec reaches: published from here, searched in a local copy.

    publish(Path(".eyespot"), "s3://bucket/birds")
    gallery = fetch("s3://bucket/birds")          # a folder like any other gallery

At the address every file has a name that its content decides (`shards/00000/items.1a2b3c4d5e6f.parquet`) and is never
changed; `gallery.json` says which of them are the gallery and is written last. So who fetches while somebody publishes
gets the old gallery or the new one, and a publication that was killed has changed nothing. The judgements of the ledger
go along as parquet, each time those that are new; they are for other programs, and no copy takes them in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from eyespot import rooms
from eyespot.gallery import disk
from eyespot.storage.atomic import new_file
from eyespot.storage.digests import BLAKE2B, file_blake2b
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, Progress, UsageError, no_progress

FORMAT = 1
MANIFEST = "gallery.json"
HEADER = "gallery.toml"
STATE = disk.FETCHED
PIECE = 1 << 22  # bytes
# Nothing else is taken from an address, whatever its manifest says.
OURS = re.compile(r"gallery\.toml|(shards/\d+|indexes(/[\w+][\w.+-]*){2,7})/[\w+][\w.+-]*")
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.DOTALL)
HERE = ("file", "local")
Ledger = Callable[[int, Path], int]


class File(NamedTuple):
    """A file of a published gallery: where it lies at the address, its bytes, their digest, and when it was written."""

    at: str
    size: int
    digest: str
    mtime_ns: int


@dataclass
class Manifest:
    """What `gallery.json` says: the gallery's files by their local names, and how far the ledger is published."""

    files: dict[str, File] = field(default_factory=dict)
    judgements: int = 0

    def as_json(self) -> bytes:
        files = {name: list(file) for name, file in sorted(self.files.items())}
        return json.dumps({"format": FORMAT, "judgements": self.judgements, "files": files}, indent=1).encode()

    @classmethod
    def of(cls, text: bytes, where: str) -> Manifest:
        """`EyespotError` for what is no manifest, names files that are no gallery's, or is newer than this eyespot."""
        try:
            found = json.loads(text)
            if found["format"] > FORMAT:
                raise EyespotError(f"{where} was published by a newer eyespot; upgrade this one")
            files = {str(name): File(*file) for name, file in found["files"].items()}
            for name, file in files.items():
                apart = PurePosixPath(file.at).parent != PurePosixPath(name).parent
                if apart or not OURS.fullmatch(name) or "/." in f"/{file.at}":
                    raise ValueError(f"{name} at {file.at} is no file of a gallery")
                if any(type(number) is not int or number < 0 for number in (file.size, file.mtime_ns)):
                    raise ValueError(f"{name} has no size or time")
            return cls(files, int(found["judgements"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EyespotError(f"{where}/{MANIFEST} is damaged ({error!r}); publish the gallery again") from None


class PublishResult(NamedTuple):
    """What a publication did: files and bytes that were sent, and files that lay there already."""

    sent: int
    size: int
    known: int


# -- addresses ----------------------------------------------------------------------------------------------


def address_of(place: Path | str) -> str | None:
    """The address that is meant, also where a `Path` was made of it, which drops a slash; None for a local folder."""
    found = ADDRESS.fullmatch(str(place))
    if found is None or (isinstance(place, Path) and place.exists()):
        return None
    protocol, rest = found.groups()
    return f"{protocol}:///{rest}" if protocol in HERE else f"{protocol}://{rest}"


class _Store:
    """The files below an address; whatever goes wrong there is told in one sentence."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        with rooms.needs("a gallery at an address"):
            import fsspec
        with self._explain_errors():
            self.fs, self.root = fsspec.core.url_to_fs(self.url)

    def read(self, name: str) -> bytes | None:
        """A small file; None if it is not there."""
        with self._explain_errors(), suppress(FileNotFoundError):
            return bytes(self.fs.cat_file(self._at(name)))
        return None

    def write(self, name: str, data: bytes) -> None:
        """In place of what was there; whole or not at all also where the store writes piece by piece."""
        with self._explain_errors():
            self._make_folder(name)
            self.fs.pipe_file(self._at(f"{name}.part"), data)
            self.fs.mv(self._at(f"{name}.part"), self._at(name))

    def size(self, name: str) -> int | None:
        """How many bytes a file has there; None if it is not there."""
        with self._explain_errors(), suppress(FileNotFoundError):
            return int(self.fs.size(self._at(name)))
        return None

    def send(self, source: Path, name: str) -> None:
        with self._explain_errors():
            self._make_folder(name)
            self.fs.put_file(str(source), self._at(name))

    def pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of a file, some at a time; `EyespotError` if it is not there."""
        with self._explain_errors():
            try:
                with self.fs.open(self._at(name), "rb") as file:
                    while piece := file.read(PIECE):
                        yield piece
            except FileNotFoundError:
                raise EyespotError(f"{self.url}/{name} is missing; publish the gallery again") from None

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _make_folder(self, name: str) -> None:
        with suppress(NotImplementedError):
            self.fs.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        try:
            yield
        except EyespotError:
            raise
        except ImportError as error:  # fsspec says which package knows this protocol
            raise EyespotError(f"{self.url} needs one more package: {error}") from None
        except ValueError as error:
            raise UsageError(f"{self.url} is no address that fsspec knows ({error})") from None
        except Exception as error:  # every store has errors of its own, and they are not OSErrors
            why = " ".join(str(error).split()) or type(error).__name__
            raise EyespotError(f"{self.url} cannot be used ({why}); look after the address and its rights") from None


# -- publishing -----------------------------------------------------------------------------------------------


def publish(gallery: Path, url: str, judged: Ledger | None = None, progress: Progress = no_progress) -> PublishResult:
    """Send what is new of a gallery to an address; run it again after every change, also after a kill.

    `judged` writes the rows of the ledger from a number on to a file of parquet, and says how many there were. One
    publishes to an address at a time. Raises `UsageError` if there is no gallery, or vectors of it were imported in
    place and so are not in it; `EyespotError` if the address cannot be written.
    """
    disk.read_header(gallery)
    store = _Store(url)
    before = _manifest(store) or Manifest()
    local = {name: gallery / name for name in _names(gallery)}
    known = done = sent = size = 0
    total = sum(path.stat().st_size for path in local.values())
    files: dict[str, File] = {}
    for name, path in local.items():
        files[name] = file = _described(name, path, before.files.get(name))
        if file == before.files.get(name) or store.size(file.at) == file.size:
            known += 1
        else:
            store.send(path, file.at)
            sent, size = sent + 1, size + file.size
        done += file.size
        progress("publishing", done, total)
    judgements = before.judgements
    if judged is not None:
        with tempfile.TemporaryDirectory(prefix="eyespot-publish-") as folder:
            table = Path(folder) / "judgements.parquet"
            if count := judged(judgements, table):  # in place of a file that a kill left unnamed
                store.send(table, f"ledger/judgements-{judgements:09d}.parquet")
                judgements += count
    store.write(MANIFEST, Manifest(files, judgements).as_json())
    return PublishResult(sent, size, known)


def _manifest(store: _Store) -> Manifest | None:
    text = store.read(MANIFEST)
    return None if text is None else Manifest.of(text, store.url)


def _names(gallery: Path) -> Iterator[str]:
    """The gallery's files, those of approximate indexes among them; the header last."""
    for shard in disk.shard_paths(gallery):
        for note in disk.read_notes(shard):
            if note.source is not None:
                raise UsageError(
                    f"the vectors of {note.space.encoder} lie in place at {note.source} and not in the gallery; import "
                    "them with --copy to publish them"
                )
    places = [*gallery.glob("shards/*/*"), *gallery.glob("indexes/*/*/**/*")]
    names = (path.relative_to(gallery).as_posix() for path in sorted(places) if path.is_file())
    yield from (name for name in names if OURS.fullmatch(name) and "/." not in name)
    yield HEADER


def _described(name: str, path: Path, before: File | None) -> File:
    status = path.stat()
    if before is not None and (before.size, before.mtime_ns) == (status.st_size, status.st_mtime_ns):
        return before
    digest = file_blake2b(path)
    stem, dot, suffix = PurePosixPath(name).name.rpartition(".")
    own = f"{stem or suffix}.{digest[:12]}{dot if stem else ''}{suffix if stem else ''}"
    at = (PurePosixPath(name).parent / own).as_posix()
    return File(at, status.st_size, digest, status.st_mtime_ns)


# -- fetching -------------------------------------------------------------------------------------------------


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
    store = _Store(url)
    wanted = _manifest(store)
    if wanted is None:
        raise UsageError(f"no gallery is published at {store.url}; do so with: eyespot publish {store.url}")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", store.url).strip("-")[-40:]
    copy = into or copies() / f"{name}-{hashlib.sha256(store.url.encode()).hexdigest()[:8]}"
    same = _fetched(copy) == {name: file.digest for name, file in wanted.files.items()}
    is_current = same and all((copy / name).is_file() for name in wanted.files)
    if not is_current:  # else several may read at once
        with locked(copy):
            _fetch(store, wanted, copy, progress)
    return copy


def _fetch(store: _Store, wanted: Manifest, copy: Path, progress: Progress) -> None:
    have = _fetched(copy)
    total = sum(file.size for file in wanted.files.values())
    done = 0
    # The header comes last: who opens the copy meanwhile finds no space whose vectors are still on their way.
    for name, file in sorted(wanted.files.items(), key=lambda item: item[0] == HEADER):
        place = copy / name
        if have.get(name) != file.digest or not place.is_file():
            _fetch_file(store, file, place)
            have[name] = file.digest
            _remember(copy, have)
        done += file.size
        progress("fetching", done, total)
    for name in set(have) - set(wanted.files):
        (copy / name).unlink(missing_ok=True)
        del have[name]
    for shard in disk.shard_paths(copy):
        if not any(name.startswith(f"shards/{shard.name}/") for name in wanted.files):
            shutil.rmtree(shard)
    _remember(copy, have)


def _fetch_file(store: _Store, file: File, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    digest, size = BLAKE2B(), 0
    with new_file(place) as local:
        for piece in store.pieces(file.at):
            local.write(piece)
            digest.update(piece)
            size += len(piece)
        if (size, digest.hexdigest()) != (file.size, file.digest):
            raise EyespotError(f"{store.url}/{file.at} is not what was published; publish the gallery again")
    os.utime(place, ns=(file.mtime_ns, file.mtime_ns))  # codes and indexes know by it that they still fit


def _fetched(copy: Path) -> dict[str, str]:
    try:
        found = json.loads((copy / STATE).read_text(encoding="utf-8"))
        return {str(name): str(digest) for name, digest in found.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _remember(copy: Path, have: dict[str, str]) -> None:
    with new_file(copy / STATE) as file:
        file.write(json.dumps(have).encode())
