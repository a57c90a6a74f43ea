"""The settings of a collection, with the values of iNat24 as defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from eyespot.curate.inat.licences import COPYABLE
from eyespot.types import UsageError

CHECKS = ("decode", "face", "spectrogram", "empty")
ALL, SPECIES = "all", "species"


@dataclass(frozen=True)
class ObservationFilter:
    """Which observations count; None means the default of the source."""

    years: tuple[int, int] | None = None
    grades: tuple[str, ...] | None = None
    licences: tuple[str, ...] = COPYABLE


@dataclass(frozen=True)
class Species:
    """The target list, the changes of its taxa, and the ranges of species that a split leaves in doubt."""

    targets: Path | None = None
    changes: Path | None = None
    ranges: Path | None = None

    def files(self) -> dict[str, Path]:
        """The given files, by their role."""
        files = {"target list": self.targets, "mapping": self.changes, "ranges": self.ranges}
        return {name: path for name, path in files.items() if path is not None}


@dataclass(frozen=True)
class Sampling:
    """Groups and draws: see `eyespot.curate.inat.grouping` and `drawing`.

    `within` is "all" (a day's observations of all species make groups together, as iNat24's) or "species".
    """

    km: float = 10.0
    within: str = ALL
    cap: int = 550
    clusters: int = 200
    space_km: float = 100.0
    time_days: float = 90.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.within not in (ALL, SPECIES):
            raise UsageError(f"groups are made over {ALL} species or within each ({SPECIES}), not {self.within!r}")
        if self.cap < 1 or self.clusters < 1 or not (self.space_km > 0 and self.time_days > 0):
            raise UsageError("cap, clusters and the units of distance are more than 0")


@dataclass(frozen=True)
class PictureSettings:
    """The checks and the size of pictures; `folder` contains them (None: only a list to download is written)."""

    folder: Path | None = None
    checks: tuple[str, ...] = CHECKS
    side: int = 500
    face: float = 0.5
    flagged: Path | None = None

    def __post_init__(self) -> None:
        wrong = [check for check in self.checks if check not in CHECKS]
        if wrong:
            raise UsageError(f"no check {wrong[0]!r}; there are: {', '.join(CHECKS)}")
        if self.side < 16:
            raise UsageError(f"pictures of {self.side} pixels show nothing; give a --side of 16 or more")
        if not 0 <= self.face <= 1:
            raise UsageError(f"how sure a face is goes from 0 to 1, not {self.face:g}; give another --face")


@dataclass(frozen=True)
class Positions:
    """Coarsened positions: those of listed taxa, and those less accurate than `limit` metres."""

    taxa: Path | None = None
    limit: float = 10_000.0
    degrees: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.degrees <= 30:
            raise UsageError(f"coordinates are coarsened to cells of up to 30 degrees, not {self.degrees:g}")
        if not self.limit >= 0:
            raise UsageError(f"positions are coarsened beyond an accuracy in metres, not {self.limit:g}")


@dataclass(frozen=True)
class CollectionSettings:
    """All settings; `memory` is in GiB, `first` limits a trial to the first observations of the input."""

    wanted: ObservationFilter = field(default_factory=ObservationFilter)
    species: Species = field(default_factory=Species)
    sampling: Sampling = field(default_factory=Sampling)
    pictures: PictureSettings = field(default_factory=PictureSettings)
    positions: Positions = field(default_factory=Positions)
    memory: float = 3.0
    threads: int = 2
    first: int | None = None

    def __post_init__(self) -> None:
        if self.first is not None and self.first < 1:
            raise UsageError(f"a trial takes one observation or more, not {self.first}; give another --sample")


def years_of(text: str | None) -> tuple[int, int] | None:
    """`2021-2023` or `2021` as first and last year, None for nothing; `UsageError` for another text."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{4})(?:-(\d{4}))?", text.strip())
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise UsageError(f"years are written as 2021-2023 or 2022, not {text!r}")
    return first, last
