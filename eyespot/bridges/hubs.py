"""A finished set for others: a folder with its version, `CITATION.cff` (Citation File Format 1.2) and `SHA256SUMS`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from eyespot.storage.atomic import whole_folder
from eyespot.storage.digests import file_sha256
from eyespot.storage.text_files import json_of
from eyespot.types import UsageError

CROISSANT, CITATION, SUMS = "croissant.json", "CITATION.cff", "SHA256SUMS"
VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True)
class Release:
    """A set in its folder, what its `croissant.json` says of it, and the version that it gets."""

    folder: Path
    about: Mapping[str, Any]
    version: str

    @classmethod
    def of(cls, folder: Path, version: str) -> Release:
        """The release of a set; `UsageError` for a folder that is none, lacks a licence, or was changed by hand."""
        if not (folder / CROISSANT).is_file() or not (folder / "README.md").is_file():
            raise UsageError(f"{folder} is not a finished set; name OUT/set, which eyespot build rmir or recos wrote")
        if not VERSION.fullmatch(version):
            raise UsageError(f"a version is three numbers, as in 1.0.0, not {version!r}")
        about = {"datePublished": date.today().isoformat(), **json_of(folder / CROISSANT)}
        if not about.get("license"):
            raise UsageError("the set has no licence; write licence = … under [card] in its recipe and build it again")
        for one in about["distribution"]:
            if not (place := folder / one["contentUrl"]).is_file() or file_sha256(place) != one["sha256"]:
                raise UsageError(f"{place} is not as it was built; build the set again, which takes a moment")
        return cls(folder, about, version)

    def write(self, place: Path) -> None:
        """The set with its version, citation and checksums in a new folder."""
        with whole_folder(place) as out:
            shutil.copytree(self.folder, out, dirs_exist_ok=True)
            about = json.dumps({**self.about, "version": self.version}, indent=2, ensure_ascii=False)
            (out / CROISSANT).write_text(f"{about}\n", encoding="utf-8")
            (out / CITATION).write_text("".join(f"{line}\n" for line in self._citation()), encoding="utf-8")
            files = sorted(path for path in out.rglob("*") if path.is_file())
            sums = [f"{file_sha256(path)}  {path.relative_to(out).as_posix()}\n" for path in files]
            (out / SUMS).write_text("".join(sums), encoding="utf-8")

    @property
    def red(self) -> int:
        """How many checks of its card are red."""
        return str(self.about.get("rai:dataAnnotationAnalysis", "")).count(" (red): ")

    @property
    def makers(self) -> list[str]:
        """Who made the set, as its datasheet says; nobody where that is open."""
        return [one["name"] for one in self.about.get("creator", ())]

    def _citation(self) -> Iterator[str]:
        quoted = json.dumps  # a string of JSON is one of YAML
        yield "cff-version: 1.2.0"
        yield "message: If you use this data set, please cite it."
        yield "type: dataset"
        yield f"title: {quoted(self.about['name'])}"
        yield f"version: {quoted(self.version)}"
        if " " not in self.about["license"]:  # an identifier of SPDX, which is all that the format takes
            yield f"license: {quoted(self.about['license'])}"
        yield "authors:"
        yield from (f"  - name: {quoted(name)}" for name in self.makers or ["unnamed"])
        named = {"datePublished": "date-released", "url": "url"}
        yield from (f"{name}: {quoted(self.about[key])}" for key, name in named.items() if key in self.about)
