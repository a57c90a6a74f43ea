"""Models on this machine: a folder each, with `model.toml`, which says what was fetched and each file's SHA-256."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath

from eyespot.storage.atomic import make_folder, write_whole
from eyespot.storage.digests import file_sha256
from eyespot.storage.text_files import toml_of, toml_text
from eyespot.types import Encoder, EyespotError, Space, UsageError

RECORD, MOVED, GALLERIES = "model.toml", "moved.toml", "galleries.txt"


@dataclass(frozen=True)
class Installed:
    """A model here: repository, commit ("" for files that somebody brought), and the files with digests and bytes."""

    name: str
    variant: str
    repo: str = ""
    revision: str = ""
    licence: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

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

    def damaged(self, folder: Path | None = None) -> list[str]:
        """Files that are not those that were installed, here or in a copy elsewhere; all are read."""
        places = {name: (folder or self.folder) / name for name in self.files}
        return [name for name, file in places.items() if not file.is_file() or file_sha256(file) != self.files[name]]

    def record(self) -> None:
        """Say that it is here; the last step of an installation."""
        write_whole(self.folder / RECORD, lambda file: file.write(toml_text(asdict(self)).encode()))

    def forget(self, stay: Container[str] = ()) -> None:
        """Take away its record, which makes it no model, then its files but those that another commit may have too."""
        for name in (RECORD, *(name for name in self.files if name not in stay)):
            (self.folder / name).unlink(missing_ok=True)

    def remove(self) -> int:
        """Take it away; the bytes that are free. The record goes first: what is left of a kill is not a model."""
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
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "eyespot" / "models"


def in_known_space(encoder: Encoder, spaces: Collection[Space]) -> Encoder:
    """An export in a folder that moved, in the space that a gallery has of the same files; else the encoder as it is.

    Where the folder is now is written down on this machine, so that the space's own name loads it from there.
    """
    known = [one for one in spaces if replace(one, encoder=encoder.space.encoder) == encoder.space]
    if not encoder.space.encoder.startswith("onnx:") or not known or encoder.space in known:
        return encoder
    old, new = known[-1].encoder, encoder.space.encoder
    if not os.path.exists(old.removeprefix("onnx:")):
        make_folder(home())
        write_whole(home() / MOVED, lambda file: file.write(toml_text({"exports": _moved() | {old: new}}).encode()))
    made = copy(encoder)
    made.space = known[-1]
    return made


def _moved() -> dict[str, str]:
    """The new names of exports whose folders moved, by their old ones."""
    found = toml_of(home() / MOVED)["exports"] if (home() / MOVED).is_file() else {}
    return dict(found)


def moved_to(folder: Path) -> Path:
    """Where the export of a folder that is gone lies now, if that is known; else the folder."""
    known = {} if folder.exists() else _moved()
    return Path(known.get(f"onnx:{folder}", f"onnx:{folder}").removeprefix("onnx:"))


def known_galleries() -> list[str]:
    """The galleries that were made with a model on this machine, wherever they lie."""
    return (home() / GALLERIES).read_text("utf-8").splitlines() if (home() / GALLERIES).is_file() else []


def remember_gallery(gallery: Path, encoders: Sequence[str]) -> None:
    """Write down that a gallery was made with a model, if it was and where that can be written."""
    made, place = any(encoder.startswith("model:") for encoder in encoders), str(gallery.resolve())
    with suppress(OSError):
        if made and place not in known_galleries():
            with (home() / GALLERIES).open("a", encoding="utf-8") as file:
                file.write(f"{place}\n")


def place_of(name: str, variant: str) -> Path:
    """The folder of one model and variant."""
    return home() / name.replace("/", "--") / variant


def is_inside(path: str) -> bool:
    """Whether a path that somebody else wrote stays in the folder it is of, and is a name that a disk takes."""
    parts = PurePosixPath(path).parts
    inside = not path.startswith("/") and ".." not in parts and not any(mark in path for mark in "\\:")
    return bool(parts) and inside and path.isprintable() and max(map(len, parts)) < 256


def installed() -> Iterator[Installed]:
    """The models that are here."""
    for record in sorted(home().glob(f"*/*/{RECORD}")):
        found = read_record(record)
        if found.folder == record.parent:
            yield found


def find(name: str, variant: str = "fp32") -> Installed | None:
    """A model that is here; None if it is not."""
    record = place_of(name, variant) / RECORD
    found = read_record(record) if record.is_file() else None
    return found if found is not None and found.folder == record.parent else None


def read_record(record: Path) -> Installed:
    """What a `model.toml` says. `EyespotError` if it is none, or names what lies outside its folder."""
    try:
        found = Installed(**toml_of(record))
        outside = [name for name in (found.name, found.variant, *found.files.keys()) if not is_inside(name)]
        if outside or "/" in found.variant:
            raise UsageError(f"it names {(*outside, found.variant)[0]!r}")
        return found
    except (AttributeError, TypeError, UsageError) as error:
        raise EyespotError(
            f"{record} is not the record of a model ({error}); fetch it again: eyespot models get"
        ) from None
