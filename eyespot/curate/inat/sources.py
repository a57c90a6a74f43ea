"""Recognises a source: an export, a table of observations, or a Camtrap DP package."""

from __future__ import annotations

from pathlib import Path

from eyespot.curate.inat import camtrap, export, plain
from eyespot.curate.inat.source import ObservationSource
from eyespot.formats.imports.camtrap_dp import PACKAGE
from eyespot.types import UsageError


def source_of(place: Path) -> ObservationSource:
    """The source at a path; `UsageError` if it is not an export, a table or a package."""
    if not place.exists():
        raise UsageError(f"there is no {place}; name an export's folder, a table of observations or a Camtrap DP")
    if place.is_file():
        return plain.source(place)
    if (place / PACKAGE).is_file():
        return camtrap.source(place)
    if export.is_one(place):
        return export.source(place)
    raise UsageError(
        f"{place} holds neither an export (observations, photos, taxa and observers as .csv.gz) nor a Camtrap DP "
        "(datapackage.json); name another folder, or a table of observations"
    )
