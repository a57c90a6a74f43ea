"""What of a benchmark's data is there, what is missing, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from eyespot.benchmarks._benchmark import Benchmark, Needed
from eyespot.storage.digests import file_sha256
from eyespot.storage.text_files import holds_something
from eyespot.types import Note


class FileStatus(NamedTuple):
    """One needed file: `state` is ok, missing, other (not the copy known to eyespot) or absent (not required)."""

    needed: Needed
    place: Path | None
    state: str
    reason: str = ""

    @property
    def stops(self) -> bool:
        """Whether the benchmark cannot be run like this."""
        return self.state == "missing"


def check(benchmark: Benchmark, data: Path, split: str) -> list[FileStatus]:
    """Every file that this split needs, looked for in the data folder and compared where its copy is known."""
    wanted = (needed for needed in benchmark.needs if needed.split in (None, split))
    return [_status(needed, data) for needed in wanted]


def unofficial(needed: Needed, data: Path) -> list[Note]:
    """Why a file of queries is not the one that papers measured on, where its digest is known."""
    status = _status(needed, data)
    if status.place is None or status.state != "other":
        return []
    return [Note("queries", f"{status.place.name} is not the official file (SHA-256)")]


def _status(needed: Needed, data: Path) -> FileStatus:
    place = needed.find(data) if data.is_dir() else None
    if place is None or not holds_something(place):
        reason = "" if place is None else "is empty, as a download that was cut leaves it"
        return FileStatus(needed, place, "missing" if needed.required else "absent", reason)
    differences: list[str] = []
    # A differing file may be a newer release, so this is a note and does not stop
    if place.is_file():
        if needed.size is not None and place.stat().st_size != needed.size:
            differences.append(f"has {place.stat().st_size:,} bytes, the copy known to eyespot {needed.size:,}")
        elif needed.sha256 is not None and file_sha256(place) != needed.sha256:
            differences.append("differs from the copy known to eyespot")
    reason = "; ".join(differences)
    return FileStatus(needed, place, "other" if reason else "ok", reason)
