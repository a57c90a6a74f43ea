"""Makes `eyespot/html/world.json`, the outlines of countries behind the maps of places on pages.

The data are Natural Earth's countries at 1:110m (public domain, https://www.naturalearthdata.com/about/terms-of-use),
as the npm package world-atlas 2.0.2 has them (its own files: ISC). Borders are as Natural Earth draws them, de facto.

    npm pack world-atlas@2.0.2 && tar xf world-atlas-2.0.2.tgz
    python scripts/world_outlines.py package/countries-110m.json

Coordinates are whole steps of 1/20 degree, x to the east and y to the south, in the relative commands of SVG paths, so
a browser draws them as they are.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

OUT = Path(__file__).resolve().parent.parent / "eyespot" / "html" / "world.json"
STEPS = 20  # of a degree
SOURCE = "Natural Earth 1:110m, public domain; made by scripts/world_outlines.py of world-atlas 2.0.2"
Ring = npt.NDArray[np.int64]  # (corners, 2): x and y in steps


def arcs_of(topology: dict[str, Any]) -> list[npt.NDArray[np.float64]]:
    """The arcs in degrees, longitude first, (points, 2) each."""
    scale, shift = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
    return [np.cumsum(arc, axis=0) * scale + shift for arc in topology["arcs"]]


def ring_of(arcs: list[npt.NDArray[np.float64]], numbers: list[int]) -> Ring:
    """A ring in steps; one that crosses the date line goes on beyond it, and one around a pole ends along the pole."""
    parts = [arcs[at] if at >= 0 else arcs[~at][::-1] for at in numbers]
    points = np.concatenate([parts[0], *(part[1:] for part in parts[1:])])
    points[:, 0] = np.unwrap(points[:, 0], period=360)
    around = points[-1, 0] - points[0, 0]
    if abs(around) > 180:
        pole = np.copysign(90, points[:, 1].mean())
        points = np.concatenate([points, [[points[-1, 0], pole], [points[0, 0], pole]]])
    steps = np.round(points * (STEPS, -STEPS)).astype(np.int64)
    return steps[np.r_[True, np.any(steps[1:] != steps[:-1], axis=1)]]


def path_of(ring: Ring) -> str:
    """The ring as a path, and once more a turn away where it passes the date line."""
    moves = [ring[0], *(after - before for before, after in pairwise(ring))]
    words = "".join(f"{'M' if not at else 'l' if at == 1 else ' '}{x} {y}" for at, (x, y) in enumerate(moves))
    words = words.replace(" -", "-") + "z"
    turn, west, east = 360 * STEPS, int(ring[:, 0].min()), int(ring[:, 0].max())
    shifts = [shift for shift in (-turn, turn) if west + shift < turn // 2 and east + shift > -turn // 2]
    body = words[words.index("l") :]
    return words + "".join(f"M{ring[0][0] + shift} {ring[0][1]}{body}".replace(" -", "-") for shift in shifts)


def countries_of(topology: dict[str, Any]) -> dict[str, str]:
    """The outline of each country by its name, in their alphabetical order."""
    arcs = arcs_of(topology)
    outlines: dict[str, str] = {}
    for one in topology["objects"]["countries"]["geometries"]:
        shapes = [one["arcs"]] if one["type"] == "Polygon" else one["arcs"]
        rings = [ring_of(arcs, numbers) for shape in shapes for numbers in shape]
        outlines[one["properties"]["name"]] = "".join(path_of(ring) for ring in rings if len(ring) > 3)
    return dict(sorted(outlines.items()))


if __name__ == "__main__":
    made = {"source": SOURCE, "countries": countries_of(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))}
    OUT.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
