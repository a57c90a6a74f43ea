"""Digests that stand on disk: of a file, of texts, of a value of JSON, and of all files of a folder.

Their bytes never change: by them galleries, ledgers and data sets know what is theirs. A folder's digests are in
`digests.txt`, a line for each file as `b2sum` writes and checks it, and a last line for the lines above. A file without
a line is not checked: a line goes before its file is written, so a kill leaves no line that is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from eyespot.storage.atomic import new_file

BLAKE2B = partial(hashlib.blake2b, digest_size=16)
DIGESTS = "digests.txt"
CHANGED = "its bytes are not those that were written"
GONE = "no such file or directory"
LookAtFiles = Callable[[Path, Iterable[str]], Mapping[str, str]]  # a folder and names: those that are damaged, and why


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_blake2b(path: Path) -> str:
    """The BLAKE2b of a file, faster than SHA-256, in 32 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, BLAKE2B).hexdigest()


def text_digest(*texts: str) -> str:
    """Sixteen hex digits over texts in their order, also of file names that are not UTF-8."""
    return hashlib.sha256("\x1f".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def json_sha256(value: Any) -> str:
    """The SHA-256 of a value of JSON, whatever the order of its keys, in 64 hex digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# -- the files of a folder ----------------------------------------------------------------------------------


class Checksum:
    """A file to write to from its start to its end, and the BLAKE2b of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, BLAKE2B()

    def write(self, data: Any) -> int:
        """As a file does."""
        self._digest.update(data)
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    @property
    def io(self) -> IO[bytes]:
        """For functions that ask for a file by its type."""
        return cast("IO[bytes]", self)

    @property
    def hex(self) -> str:
        """As `file_blake2b` gives it."""
        return self._digest.hexdigest()


def read_digests(folder: Path) -> dict[str, str]:
    """The digest of each file that has one; `ValueError` if `digests.txt` is damaged, none if it is not there."""
    try:
        text = (folder / DIGESTS).read_bytes()
    except FileNotFoundError:
        return {}
    lines, _, last = text.rpartition(b"# ")
    if last != f"{BLAKE2B(lines).hexdigest()}\n".encode():
        raise ValueError(CHANGED)
    rows = (line.partition("  ") for line in os.fsdecode(lines).splitlines())
    return {name: digest for digest, _, name in rows}


def write_digests(folder: Path, digests: dict[str, str]) -> None:
    """Put `digests.txt` in place of the old one."""
    lines = os.fsencode("".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())))
    with new_file(folder / DIGESTS) as file:
        file.write(lines + f"# {BLAKE2B(lines).hexdigest()}\n".encode())


def sound_digests(folder: Path) -> dict[str, str]:
    """The same as `read_digests`; none if they are damaged."""
    try:
        return read_digests(folder)
    except ValueError:
        return {}


@contextmanager
def rewriting(folder: Path, names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Files of a folder to write or remove: they have no line meanwhile, and then what the block puts down for them."""
    before, names, date = sound_digests(folder), set(names), _dates(folder / DIGESTS)[0]
    rest = {name: digest for name, digest in before.items() if name not in names}
    if len(rest) < len(before):
        write_digests(folder, rest)
    after: dict[str, str] = {}
    yield after
    if after:
        write_digests(folder, rest | after)
    if (len(rest) < len(before) or after) and any(max(_dates(folder / name)) > date for name in rest):
        _take_date(folder / DIGESTS, date)  # what changed before still shows at a glance


@contextmanager
def new_digested(path: Path, others: Iterable[str] = ()) -> Iterator[Checksum]:
    """As `new_file`, with a line in the folder's digests; `others` lose theirs."""
    with rewriting(path.parent, [path.name, *others]) as digests, new_file(path) as file:
        yield (checked := Checksum(file))
        digests[path.name] = checked.hex


def add_digests(folder: Path, names: Iterable[str]) -> None:
    """Digests of files that have none yet, for each of which all its bytes are read."""
    if not (folder / DIGESTS).exists() or (lacking := set(names) - sound_digests(folder).keys()):
        lacking = set(names) - sound_digests(folder).keys()
        write_digests(folder, sound_digests(folder) | {name: file_blake2b(folder / name) for name in lacking})


def damaged_files(folder: Path, names: Iterable[str] | None = None) -> dict[str, str]:
    """What is wrong with those of these files that have a digest (None: with all that do), after reading every byte."""
    try:
        digests = read_digests(folder)
    except ValueError as error:
        return {DIGESTS: str(error)}
    damaged: dict[str, str] = {}
    for name in digests if names is None else digests.keys() & set(names):
        try:
            same = file_blake2b(folder / name) == digests[name]
            damaged |= {} if same else {name: CHANGED}
        except (FileNotFoundError, NotADirectoryError):
            damaged[name] = GONE
    return damaged


def damaged_at_a_glance(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The same of these files, read only if any was changed after the digests were written.

    A change shows in what the system knows of a file, also if its date was put back. Where files of the folder are
    newer and all as they were, after a copy say, the digests take the date of the newest.
    """
    noted, names = _dates(folder / DIGESTS), set(names)
    if not noted[0] or all((changed := max(_dates(folder / name))) and changed <= noted[0] for name in names):
        return {}
    changes = {name: max(_dates(folder / name)) for name in sound_digests(folder)}
    damaged = damaged_files(folder, [name for name, changed in changes.items() if not 0 < changed <= noted[0]])
    if changes and not damaged:
        _take_date(folder / DIGESTS, max(noted[0], *changes.values()))
    return {name: why for name, why in damaged.items() if name in {DIGESTS, *names}}


def _dates(path: Path) -> tuple[int, int]:
    """When a file's bytes, and what the system knows of it, were last changed; zeros if it is not there."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0, 0
    return found.st_mtime_ns, found.st_ctime_ns  # on Windows the second is when the file was made


def _take_date(path: Path, changed: int) -> None:
    try:
        os.utime(path, ns=(changed, changed))
    except OSError:
        return  # a gallery that may not be written is read again next time
