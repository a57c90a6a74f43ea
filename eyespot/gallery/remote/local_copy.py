"""What a local copy knows of itself: which files have come, of which published state, and which parts are whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from eyespot.gallery import disk
from eyespot.gallery.remote.manifest import OURS, File
from eyespot.storage.atomic import new_file
from eyespot.storage.digests import BLAKE2B
from eyespot.types import EyespotError

STATE = disk.FETCHED
LOG = f"{STATE}l"  # a line for each file that has come since the state was written: `.fetched.jsonl`
ORIGIN = ".origin.json"  # the address, the parts that are whole, and the name of the next one
PUBLISHED = ".published-{}.json"  # `gallery.json` as it was when these parts came


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
        raise EyespotError(f"{copy} does not know any more what it has; name its address, as in: -g {self.url}")


def read_origin(copy: Path) -> CopyOrigin | None:
    """None for a folder that is no copy, or was made by an older eyespot, which noted none."""
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
