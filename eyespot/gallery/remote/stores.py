"""The files below an address: a folder of this machine or of the network, or whatever else fsspec reaches.

`gallery.json` is put in place only if it is still the one that was read: a folder is locked meanwhile, S3 compares its
ETag, and elsewhere it is read again just before.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from eyespot import rooms
from eyespot.gallery.remote.manifest import mended
from eyespot.storage.atomic import make_folder, new_file, trouble
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError

PIECE = 1 << 22  # bytes
_ADDRESS = "look after the address and its rights"
TRANSFERS, MOST_TRANSFERS = "EYESPOT_TRANSFERS", 64
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.DOTALL)
HERE = ("file", "local")
OBJECTS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory"}  # where a file appears whole, as it is put
S3, WEB = {"s3", "s3a"}, {"http", "https"}
REFUSED = {"PreconditionFailed", "ConditionalRequestConflict"}  # S3's codes for a put that came second


class Conflict(Exception):
    """Another publication came first."""


def address_of(place: Path | str) -> str | None:
    """The address that is meant, also where a `Path` was made of it, which drops a slash; None for a local folder."""
    found = ADDRESS.fullmatch(str(place))
    if found is None or (isinstance(place, Path) and place.exists()):
        return None
    protocol, rest = found.groups()
    return f"{protocol}:///{rest}" if protocol in HERE else f"{protocol}://{rest}"


def store_at(url: str) -> Store:
    """The files below an address; `UsageError` for one that fsspec does not know."""
    url = url.rstrip("/")
    with rooms.needs("a gallery at an address"):
        import fsspec
    with _explain_errors(url):
        fs, root = fsspec.core.url_to_fs(url)
    return Store(url, fs, root)


def transfers() -> int:
    """How many files are sent or read at once; `UsageError` if the setting is no such number."""
    given = os.environ.get(TRANSFERS) or "8"  # a request takes long and costs this machine little
    if not given.isdecimal() or not 1 <= int(given) <= MOST_TRANSFERS:
        raise UsageError(f"{TRANSFERS} is {given!r}; give a whole number from 1 to {MOST_TRANSFERS} or unset it")
    return int(given)


class Store:
    """The files below an address, by their names there; whatever goes wrong is explained in one sentence.

    transfers: how many files, or ranges of one, to send or read at once. ranges: whether a range can be read alone.
    """

    def __init__(self, url: str, fs: Any, root: str) -> None:
        self.url, self.fs, self.root, self.transfers = url, fs, root, transfers()
        protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
        self.folder = None if protocols.isdisjoint(HERE) else Path(root)  # which publishers lock
        self.puts_whole, self.compares = bool(protocols & OBJECTS), bool(protocols & S3)
        self.ranges = self.puts_whole or self.folder is not None
        # A plain web server sends a file from its beginning alone, and whole, whatever range it is asked for
        self._streaming = {"block_size": 0} if protocols & WEB else {}

    def read(self, name: str) -> tuple[bytes, str] | None:
        """A small file, and what tells this version of it from others; None if it is not there."""
        with _explain_errors(self.url), suppress(FileNotFoundError):
            while True:
                self.fs.invalidate_cache()
                version = self._version(name)
                data = bytes(self.fs.cat_file(self._at(name)))
                self.fs.invalidate_cache()
                if self._version(name) == version:
                    return data, version if self.compares else data.hex()
        return None

    def replace(self, name: str, data: bytes, version: str | None) -> None:
        """In place of that version (None: of none), whole or not at all; `Conflict` if there is another by now."""
        with _explain_errors(self.url):
            if self.compares:
                try:
                    conditions = {"mode": "create"} if version is None else {"IfMatch": version}
                    self.fs.pipe_file(self._at(name), data, **conditions)
                    return
                except OSError as error:
                    # Another publication may have put back the bytes that were read: the answer counts, not the file
                    reply = getattr(error.__cause__, "response", {}).get("Error", {})
                    if reply.get("Code") in REFUSED or ((now := self.read(name)) and now[1]) != version:
                        raise Conflict from None
                    raise
            if (now := self.read(name)) and now[1] != version:
                raise Conflict
            part = f"{name}.{os.getpid()}.part"
            if self.puts_whole or self.folder:
                with self._new(name) as target:
                    target.write(data)
            else:
                with self._new(part) as target:
                    target.write(data)
                self.fs.mv(self._at(part), self._at(name))

    def sizes(self) -> dict[str, int]:
        """The bytes of every file that is there."""
        with _explain_errors(self.url), suppress(FileNotFoundError):
            self.fs.invalidate_cache()
            found = self.fs.find(self.root, detail=True)
            return {at.removeprefix(f"{self.root}/"): int(facts["size"] or 0) for at, facts in found.items()}
        return {}

    def send(self, source: IO[bytes], name: str) -> None:
        """A file of this machine."""
        with _explain_errors(self.url), self._new(name) as target:
            shutil.copyfileobj(source, target, PIECE)

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        """The bytes of a file, some at a time, which should be `size` in all; `EyespotError` if it is not there."""
        with _explain_errors(self.url):
            try:
                if size <= PIECE:  # one request, where a file that is opened costs two
                    yield bytes(self.fs.cat_file(self._at(name)))
                    return
                with self.fs.open(self._at(name), "rb", **self._streaming) as file:
                    while piece := file.read(PIECE):
                        yield piece
            except FileNotFoundError:
                raise self._missing(name) from None

    def range(self, name: str, start: int, stop: int) -> bytes:
        """The bytes of a file from one place up to another, fewer where it ends; `EyespotError` if it is not there."""
        with _explain_errors(self.url):
            try:
                return bytes(self.fs.cat_file(self._at(name), start=start, end=stop))
            except FileNotFoundError:
                raise self._missing(name) from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One publisher at a time in a folder; `EyespotError` if another has it.

        Nothing holds others off elsewhere: who comes second notices when `gallery.json` is put in place.
        """
        with ExitStack() as stack:
            if self.folder is not None:
                with _explain_errors(self.url):
                    make_folder(self.folder)
                    stack.enter_context(locked(self.folder))
            yield

    def _missing(self, name: str) -> EyespotError:
        return EyespotError(f"{self.url}/{name} is missing; {mended(self.url)}")

    def _version(self, name: str) -> str:
        facts = self.fs.info(self._at(name))
        return str(facts.get("ETag") or facts["size"])

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}"

    def _new(self, name: str) -> AbstractContextManager[IO[bytes]]:
        if self.folder is not None:
            make_folder((self.folder / name).parent)
            return new_file(self.folder / name)
        if (
            not self.puts_whole
        ):  # elsewhere there are no folders; s3fs would look for the bucket, and make a misspelled one
            with suppress(NotImplementedError):
                self.fs.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
        target: AbstractContextManager[IO[bytes]] = self.fs.open(self._at(name), "wb")
        return target


@contextmanager
def _explain_errors(url: str) -> Iterator[None]:
    try:
        yield
    except (EyespotError, Conflict):
        raise
    except ImportError as error:  # fsspec says which package knows this protocol
        raise EyespotError(f"{url} needs one more package: {error}") from None
    except ValueError as error:
        raise UsageError(f"{url} is no address that fsspec knows ({error})") from None
    except Exception as error:  # every store has errors of its own, and they are not OSErrors
        if isinstance(error, OSError) and error.errno:
            raise EyespotError(f"{url} cannot be used {trouble(error, elsewhere=_ADDRESS, other=_ADDRESS)}") from None
        why = " ".join(str(error).split()) or type(error).__name__
        raise EyespotError(f"{url} cannot be used ({why}); {_ADDRESS}") from None
