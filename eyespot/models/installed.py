"""Models on this machine: a folder each, with `model.toml`, which says what was fetched and each file's SHA-256."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from eyespot.storage.atomic import write_whole
from eyespot.storage.digests import file_sha256
from eyespot.storage.toml import toml_of, toml_text
from eyespot.types import EyespotError, UsageError

RECORD = "model.toml"


@dataclass(frozen=True)
class Installed:
    """A model here: repository, commit ("" for files that somebody brought), and the files with their digests."""

    name: str
    variant: str
    repo: str = ""
    revision: str = ""
    licence: str = ""
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return place_of(self.name, self.variant)

    @property
    def encoder(self) -> str:
        """The name that loads it."""
        return f"model:{self.name}" + ("" if self.variant == "fp32" else f":{self.variant}")

    @property
    def bytes(self) -> int:
        """What it takes on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def damaged(self) -> list[str]:
        """Files that are not those that were installed; all are read."""
        places = {name: self.folder / name for name in self.files}
        return [name for name, file in places.items() if not file.is_file() or file_sha256(file) != self.files[name]]

    def record(self) -> None:
        """Say that it is here; the last step of an installation."""
        write_whole(self.folder / RECORD, lambda file: file.write(toml_text(asdict(self)).encode()))

    def remove(self) -> int:
        """Take it away; the bytes that are free. The record goes first: what is left of a kill is no model."""
        freed = self.bytes
        (self.folder / RECORD).unlink(missing_ok=True)
        shutil.rmtree(self.folder)
        return freed


def home() -> Path:
    """The folder of all models: EYESPOT_MODELS, else the place that this system has for data."""
    if chosen := os.environ.get("EYESPOT_MODELS"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/eyespot/models").expanduser()
    local = os.environ.get("LOCALAPPDATA") if sys.platform == "win32" else os.environ.get("XDG_DATA_HOME")
    return Path(local or "~/.local/share").expanduser() / "eyespot" / "models"


def place_of(name: str, variant: str) -> Path:
    """The folder of one model and variant."""
    return home() / name.replace("/", "--") / variant


def installed() -> Iterator[Installed]:
    """The models that are here."""
    for record in sorted(home().glob(f"*/*/{RECORD}")):
        found = read_record(record)
        if found.folder == record.parent:
            yield found


def find(name: str, variant: str = "fp32") -> Installed | None:
    """A model that is here; None if it is not."""
    record = place_of(name, variant) / RECORD
    return read_record(record) if record.is_file() else None


def read_record(record: Path) -> Installed:
    """What a `model.toml` says. `EyespotError` if it is none."""
    try:
        return Installed(**toml_of(record))
    except (TypeError, UsageError) as error:
        raise EyespotError(
            f"{record} is not the record of a model ({error}); fetch it again: eyespot models get"
        ) from None
