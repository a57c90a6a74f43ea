"""`gallery.json` at an address: which files there are the gallery."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from shlex import quote
from typing import NamedTuple

from eyespot.gallery import disk
from eyespot.types import EyespotError

FORMAT = 1
MANIFEST = "gallery.json"
# Nothing else is taken from an address, whatever its manifest says.
OURS = re.compile(r"gallery\.toml|(shards/\d+(-\d+)?|indexes(/[\w+][\w.+-]*){2,7})/[\w+][\w.+-]*")
FACTS, EVERYTHING = "facts", "everything"  # parts of a gallery, beside its spaces by their stems


class DamagedManifest(EyespotError):
    """`gallery.json` at an address cannot be used."""


class File(NamedTuple):
    """A file of a published gallery: where it lies at the address, its bytes, their digest, and when it was written."""

    at: str
    size: int
    digest: str
    mtime_ns: int


@dataclass
class Manifest:
    """What `gallery.json` says: the gallery's files by their local names."""

    files: dict[str, File] = field(default_factory=dict)

    def as_json(self) -> bytes:
        """The bytes of `gallery.json`."""
        files = {name: list(file) for name, file in sorted(self.files.items())}
        return json.dumps({"format": FORMAT, "files": files}, indent=1).encode()

    @cached_property
    def stems(self) -> list[str]:
        """The spaces that have vectors, by the names of their files; a longer name first."""
        notes = (PurePosixPath(name) for name in self.files if name.startswith("shards/") and name.endswith(".toml"))
        return sorted({note.stem for note in notes}, key=lambda stem: (-len(stem), stem))

    def part_of(self, name: str) -> str:
        """The part that a file belongs to: a space by its stem, the indexes of a space as `indexes/STEM`, or FACTS."""
        folder, _, rest = name.partition("/")
        if folder == "indexes":
            return f"indexes/{rest.partition('/')[0]}"
        file = name.rpartition("/")[2]
        return next((stem for stem in self.stems if file.startswith(f"{stem}.")), FACTS)

    def parts_of(self, part: str) -> set[str]:
        """The parts that are meant, FACTS among them: all of them by EVERYTHING."""
        return {FACTS, *(map(self.part_of, self.files) if part == EVERYTHING else [part])}

    def of_parts(self, parts: Set[str]) -> dict[str, File]:
        """The files of some parts, those of FACTS first."""
        by_part = {name: self.part_of(name) for name in self.files}
        names = [name for name, part in by_part.items() if part in parts]
        return {name: self.files[name] for name in sorted(names, key=lambda name: by_part[name] != FACTS)}

    @classmethod
    def of(cls, text: bytes, url: str) -> Manifest:
        """`DamagedManifest` for what is none or names files that are not a gallery's; `EyespotError` if it is newer."""
        try:
            found = json.loads(text)
            if found["format"] > FORMAT:
                raise EyespotError(f"{url} was published by a newer eyespot; upgrade this one")
            files = {str(name): File(*file) for name, file in found["files"].items()}
            for name, file in files.items():
                apart = file.at.rpartition("/")[0] != name.rpartition("/")[0]
                if apart or not OURS.fullmatch(name) or "/." in f"/{file.at}":
                    raise ValueError(f"{name} at {file.at} is not a file of a gallery")
                if any(type(number) is not int or not 0 <= number < 1 << 63 for number in (file.size, file.mtime_ns)):
                    raise ValueError(f"{name} has no size or time")
                if type(file.digest) is not str or file.at != published_name(name, file.digest):
                    raise ValueError(f"{name} with the digest {file.digest} does not lie at {file.at}")
            if disk.HEADER not in files:
                raise ValueError(f"it lists no {disk.HEADER}")
            return cls(files)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedManifest(f"{url}/{MANIFEST} is damaged ({error!r}); {mended(url)}") from None


def mended(url: str) -> str:
    """What to do about damage at an address."""
    return f"where the gallery was indexed, mend it with: eyespot publish {quote(url)} --check"


def published_name(name: str, digest: str) -> str:
    """Where a file of a gallery lies at an address: beside its name stand the first digits of its digest."""
    folder, slash, file = name.rpartition("/")  # texts: paths take a second for tens of thousands of files
    stem, dot, suffix = file.rpartition(".")
    return f"{folder}{slash}{stem or suffix}.{digest[:12]}{dot if stem else ''}{suffix if stem else ''}"
