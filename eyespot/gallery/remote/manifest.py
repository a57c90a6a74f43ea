"""`gallery.json` at an address: which files there are the gallery."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from shlex import quote
from typing import NamedTuple

from eyespot.gallery import disk
from eyespot.types import EyespotError

FORMAT = 1
MANIFEST = "gallery.json"
# Nothing else is taken from an address, whatever its manifest says.
OURS = re.compile(r"gallery\.toml|(shards/\d+(-\d+)?|indexes(/[\w+][\w.+-]*){2,7})/[\w+][\w.+-]*")


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
