"""Hits as a Camtrap DP archive: the package that `eyespot export camtrap-dp` writes, in a zip and without pictures."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from eyespot.formats.exports.camtrap_dp import TrapPhoto, described, is_placed, package
from eyespot.photos.attribution import attribution_of
from eyespot.types import NothingFound, UsageError
from eyespot.web.found.results import RankedResult


def archive(frozen: RankedResult, items: Sequence[Mapping[str, Any]]) -> bytes:
    """The zip. Raises `NothingFound` if no hit has both a time and a position, `UsageError` if they were left out."""
    if items and "latitude" not in items[0]:
        raise UsageError("a Camtrap DP archive holds positions; ask for it with all columns, or choose CSV")
    placed = [_photo(frozen, one) for one in items if is_placed(one)]
    if not placed:
        raise NothingFound("no hit has both a time and a position, which Camtrap DP needs; choose CSV or JSON")
    lost = len(items) - len(placed)
    description = f"{len(placed)} of {len(items)} hits; {lost} without a time or a position are left out."
    title = f"Hits of a search for: {frozen.heading}"
    about = described(placed, f"eyespot-{frozen.id[:8]}", title, description)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in package(placed, about).items():
            archive.writestr(name, data)
    return packed.getvalue()


def _photo(frozen: RankedResult, item: Mapping[str, Any]) -> TrapPhoto:
    path = str(item["path"] or "")
    file = path if re.fullmatch(r"(?!.*\.\.)[^./~].*", path) else item["id"]
    tags = f"verdict:{item['verdict'] or 'none'} | rank:{item['rank']} | score:{item['score']}"
    comments = f"found by searching for: {frozen.heading}"
    rights = {name: value for name, value in attribution_of(item)._asdict().items() if value}
    return TrapPhoto({**item, **rights}, file, f"{frozen.id[:8]}-{item['rank']}", tags, comments)
