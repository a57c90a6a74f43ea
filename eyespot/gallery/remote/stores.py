"""The files below an address: a folder of this machine or of the network, or whatever else fsspec reaches.

`gallery.json` is put in place only if it is still the one that was read: a folder is locked meanwhile, S3 compares its
ETag, and elsewhere it is read again just before.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

from eyespot import rooms
from eyespot.gallery.remote.manifest import mended
from eyespot.models import web
from eyespot.parallel import ordered_map
from eyespot.storage.atomic import make_folder, new_file, trouble
from eyespot.storage.locks import locked
from eyespot.types import EyespotError, UsageError

PIECE = 1 << 22  # bytes
LARGEST = 1 << 26  # bytes of `gallery.json`
_ADDRESS = "check the address and your rights there"
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


def store_at(url: str, *, patient: bool = True) -> Store:
    """The files below an address, in S3 tried several times if `patient`; `UsageError` for one unknown to fsspec."""
    url = url.rstrip("/")
    once = {} if patient or url.partition(":")[0] not in S3 else {"config_kwargs": {"retries": {"max_attempts": 0}}}
    if url.partition(":")[0] in WEB:
        return Store(url, None, url)
    with rooms.needs("a gallery at an address"):
        import fsspec
    with _explain_errors(url):
        fs, root = fsspec.core.url_to_fs(url, **once)
        if once:
            fs.retries = 1
    return Store(url, fs, root)


def transfers() -> int:
    """How many files are sent or read at once; `UsageError` if the setting is no such number."""
    given = os.environ.get(TRANSFERS) or "8"  # a request takes long and costs this machine little
    if not given.isdecimal() or not 1 <= int(given) <= MOST_TRANSFERS:
        raise UsageError(f"{TRANSFERS} is {given!r}; give a whole number from 1 to {MOST_TRANSFERS} or unset it")
    return int(given)


class Store:
    """The files below an address, by their names there; whatever goes wrong is explained in one sentence.

    A web server is read by `models.web`, and never written to. transfers: how many files, or ranges of
    one, to send or read at once. ranges: whether a range can be read alone. shown: the address without credentials.
    """

    def __init__(self, url: str, fs: Any, root: str) -> None:
        self.url, self.shown, self.fs, self.root, self.transfers = url, web.public(url), fs, root, transfers()
        kinds = url.partition(":")[0] if fs is None else fs.protocol
        protocols = {kinds} if isinstance(kinds, str) else set(kinds)
        self.folder = None if protocols.isdisjoint(HERE) else Path(root)  # which publishers lock
        self.puts_whole, self.compares = bool(protocols & OBJECTS), bool(protocols & S3)
        self.ranges = self.puts_whole or self.folder is not None

    def read(self, name: str) -> tuple[bytes, str] | None:
        """A small file, and what tells this version of it from others; None if it is not there."""
        with _explain_errors(self.url), suppress(FileNotFoundError, web.NotThere):
            if self.fs is None:
                data = web.read(self._at(name), LARGEST)
                return data, data.hex()
            while True:
                self.fs.invalidate_cache()
                version = self._version(name)
                data = self.range(name, 0, LARGEST)
                if len(data) == LARGEST:
                    raise EyespotError(f"{self.shown}/{name} is larger than any list of a gallery's files")
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
            part = name if self.puts_whole or self.folder else f"{name}.{os.getpid()}.part"
            with self._new(part) as target:
                target.write(data)
            if part != name:
                self.fs.mv(self._at(part), self._at(name))

    def sizes(self) -> dict[str, int]:
        """The bytes of every file that is there."""
        with _explain_errors(self.url), suppress(FileNotFoundError):
            self.fs.invalidate_cache()
            found = self.fs.find(self.root, detail=True, **self._limit())
            return {at.removeprefix(f"{self.root}/"): int(facts["size"] or 0) for at, facts in found.items()}
        return {}

    def send(self, source: IO[bytes], name: str) -> None:
        """A file of this machine."""
        with _explain_errors(self.url), self._new(name) as target:
            shutil.copyfileobj(source, target, PIECE)

    def bring(self, name: str, part: Path, size: int, workers: int, tell: Callable[[int], None]) -> None:
        """The first `size` bytes of a file to one that grows here, on from where it was cut; `tell` gets its size.

        `workers`: how many ranges come at once.
        """
        if self.fs is None:
            with _explain_errors(self.url, name):
                web.grow(part, self._at(name), f"{self.shown}/{name}", size=size)
            return
        with part.open("ab") as local:
            starts, read = range(local.tell(), size, PIECE), lambda at: self.range(name, at, min(at + PIECE, size))
            for piece in ordered_map(read, starts, workers, 2 * workers):
                if not piece:  # the list of files states more than there is
                    return
                local.write(piece)
                tell(local.tell())

    def range(self, name: str, start: int, stop: int) -> bytes:
        """The bytes of a file from one place up to another, fewer where it ends; `EyespotError` if it is not there."""
        from fsspec.asyn import sync

        with _explain_errors(self.url, name):
            # A device or a pipe may have no end, or no beginning
            if self.folder is not None and not S_ISREG((self.folder / name).stat().st_mode):
                raise EyespotError(f"{self.shown}/{name} is not a plain file; {mended(self.shown)}")
            at, limit = self._at(name), self._limit(min(stop - start, PIECE))
            if stop <= start:
                return b""
            if self.compares:
                return bytes(sync(self.fs.loop, self._object, at, start, stop, **limit))
            return bytes(self.fs.cat_file(at, start=start, end=stop, **limit)[: stop - start])

    async def _object(self, at: str, start: int, stop: int) -> bytearray:
        """The same of S3, whose `cat_file` takes whatever comes."""
        bucket, key, _ = self.fs.split_path(at)
        answer = await self.fs._call_s3("get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{stop - 1}")
        data = bytearray()
        async with answer["Body"] as body:
            while len(data) < stop - start and (piece := await body.read(stop - start - len(data))):
                data += piece
        return data

    def _limit(self, size: int = 0) -> dict[str, float]:
        """The seconds that so many bytes may take, where fsspec waits for them."""
        return {"timeout": web.START + size / web.SLOWEST} if self.fs.async_impl else {}

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One publisher at a time in a folder; `EyespotError` if another has it.

        Nothing holds others off elsewhere: who comes second notices when `gallery.json` is put in place.
        """
        if self.fs is None:
            raise UsageError(
                f"{self.shown} is a web server, which takes no files; publish to the folder that it serves"
            )
        with ExitStack() as stack:
            if self.folder is not None:
                with _explain_errors(self.url):
                    make_folder(self.folder)
                    stack.enter_context(locked(self.folder))
            yield

    def _version(self, name: str) -> str:
        facts = self.fs.info(self._at(name), **self._limit())
        return str(facts.get("ETag") or facts["size"])

    def _at(self, name: str) -> str:
        address, mark, query = self.root.partition("?" if self.fs is None else "\0")  # a query may be a signature
        return f"{address}/{name}{mark}{query}"

    def _new(self, name: str) -> AbstractContextManager[IO[bytes]]:
        if self.folder is not None:
            make_folder((self.folder / name).parent)
            return new_file(self.folder / name)
        if not self.puts_whole:  # there are no folders, and s3fs would look for the bucket, and make a misspelled one
            with suppress(NotImplementedError):
                self.fs.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)
        target: AbstractContextManager[IO[bytes]] = self.fs.open(self._at(name), "wb")
        return target


@contextmanager
def _explain_errors(url: str, name: str = "") -> Iterator[None]:
    """name: of a file that must be there."""
    place = web.public(url)
    try:
        yield
    except (FileNotFoundError, web.NotThere) as error:
        if name:
            raise EyespotError(f"{place}/{name} is missing; {mended(place)}") from None
        raise EyespotError(f"{place} cannot be used {trouble(error, elsewhere=_ADDRESS, other=_ADDRESS)}") from None
    except (EyespotError, Conflict):
        raise
    except ImportError as error:  # fsspec says which package knows this protocol
        raise EyespotError(f"{place} needs one more package: {error}") from None
    except ValueError as error:
        raise UsageError(f"{place} is not an address that fsspec knows ({web.redacted(str(error), url)})") from None
    except Exception as error:  # every store has errors of its own, and they are not OSErrors
        if isinstance(error, OSError) and error.errno:
            raise EyespotError(f"{place} cannot be used {trouble(error, elsewhere=_ADDRESS, other=_ADDRESS)}") from None
        why = web.redacted(" ".join(str(error).split()) or type(error).__name__, url)
        raise EyespotError(f"{place} cannot be used ({why}); {_ADDRESS}") from None
