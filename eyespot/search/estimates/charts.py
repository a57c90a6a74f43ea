"""The figures of an estimate, drawn by templates: bars over the effort, cells on a map, pairs in a triangle."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from eyespot.html import WORLD, environment, render
from eyespot.search.estimates.wording import group_note, pair_sentence
from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.estimates.estimating import GroupedEstimate, GroupEstimate

CELL = re.compile(r"(-?[\d.]+),(-?[\d.]+)")  # the south-west corner, latitude first
STEPS = ((0.1, 1.0), (0.2, 0.75), (0.4, 0.5), (1.1, 0.25))  # up to this width of an interval: so opaque
FONTS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "NotoSansCJK-Regular.ttc", "arial.ttf", "msyh.ttc")
BLUES = ("#deebf7", "#9ecae1", "#4292c6", "#2171b5", "#08306b")  # ColorBrewer


def svg(found: GroupedEstimate, together: bool = False) -> str:
    """Bars of the shares, with intervals or bands for all at once, over the units of each group; an <svg> element."""
    groups = list(found.groups.values())
    ends = {one.label: one.together if together else one.share for one in groups}
    highest = max([one.high for one in ends.values() if one.high == one.high] or [1.0])
    top = next(top for top in (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0) if top >= min(highest, 1.0))
    content = {"groups": groups, "ends": ends, "top": top, "most": max(one.units for one in groups) or 1}
    legend = "bands that hold for all groups at once, 95 %" if together else "each group's own 95 % interval"
    template = environment().get_template("estimate_bars.svg")
    return template.render(**content, legend=legend, wide=max(40, min(96, 900 // len(groups))))


def png(drawing: str, scale: int = 3) -> bytes:
    """A drawing of `svg` as a PNG file, so many dots a unit; `UsageError` for letters that no font here has."""
    root = ElementTree.fromstring(drawing)
    wide, tall = (scale * int(root.attrib[name]) for name in ("width", "height"))
    image = Image.new("RGB", (wide, tall), "white")
    hatch = Image.fromarray(np.add.outer(np.arange(tall), np.arange(wide)) % (7 * scale) < 3 * scale)
    for one in (one for part in root[1:] for one in part.iter()):  # the first defines the pattern of `hatch`
        draw_element(image, hatch, one, scale)
    image.save(written := BytesIO(), "PNG", dpi=(96 * scale, 96 * scale))
    return written.getvalue()


def draw_element(image: Image.Image, hatch: Image.Image, one: ElementTree.Element, scale: int) -> None:
    """A rectangle, a line, a circle or a text of a drawing; what else there is draws nothing."""
    pen, kind = ImageDraw.Draw(image), one.tag.rpartition("}")[2]
    at = {name: float(value) * scale for name, value in one.items() if value[:1].isdigit() or value[:1] in "-."}
    fill, stroke, thick = one.get("fill", "#222"), one.get("stroke"), round(at.get("stroke-width", scale))
    if kind == "rect":
        left, top = round(at["x"]), round(at["y"])
        box = left, top, round(at["x"] + at["width"]), round(at["y"] + at["height"])
        if stroke and fill.startswith("url"):
            image.paste(stroke, box, hatch.crop(box))
        else:
            opaque = at.get("fill-opacity", scale) / scale
            pen.rectangle(box, tuple(round(255 - opaque * (255 - part)) for part in ImageColor.getrgb(fill)[:3]))
        pen.rectangle(box, None, stroke, scale if stroke else 0)
    elif kind == "line":
        pen.line([at["x1"], at["y1"], at["x2"], at["y2"]], stroke, thick)
    elif kind == "circle":
        pen.circle((at["cx"], at["cy"]), at["r"], None, stroke, thick)
    elif one.text and kind == "text":
        anchor = {"middle": "ms", "end": "rs"}.get(one.get("text-anchor", ""), "ls")
        how = font(one.text, at.get("font-size", 13 * scale)), anchor
        pen.text((at["x"], at["y"]), one.text, fill, *how, stroke_width=scale / 12 if one.get("font-weight") else 0)


def font(text: str, size: float) -> Any:
    """Pillow's own font, or the first of this system's that has all letters of a text."""
    for name in ("", *FONTS):
        with suppress(OSError):
            found = ImageFont.truetype(name, size) if name else ImageFont.load_default(size)
            if not any(bytes(found.getmask(one)) == bytes(found.getmask("\uffff")) for one in text if one > " "):
                return found
    raise UsageError(f"no font here has all letters of {text!r} for a PNG; write an .svg, or install the Noto fonts")


def cells(found: Any) -> dict[str, Any] | None:
    """What a map draws, if the groups are cells: corners in steps of a cell from the north-west edge, which is in
    degrees, colours by the share and by its lower bound, opacity."""
    by, _, size = found.study.column.partition(":")
    placed = [(match, one) for one in found.groups.values() if (match := CELL.fullmatch(str(one.label)))]
    if by != "cell" or not placed:
        return None
    step, corners = float(size or 1), [(float(match[1]), float(match[2])) for match, _ in placed]
    north, west = max(y for y, _ in corners) + step, min(x for _, x in corners)
    drawn = [
        {"x": round((x - west) / step), "y": round((north - y) / step) - 1, "one": one, **_colours(one)}
        for (y, x), (_, one) in zip(corners, placed, strict=True)
    ]
    wide, high = (1 + max(one[axis] for one in drawn) for axis in "xy")
    km = 111.32 * step * math.cos(math.radians(north - step * high / 2))  # of a cell in the middle, west to east
    return {"cells": drawn, "wide": wide, "high": high, "north": north, "west": west, "size": step, "km": km}


def _colours(one: GroupEstimate) -> dict[str, Any]:
    if not one.basis:
        return {"share": "none", "low": "none", "opacity": 1}
    opacity = next(opacity for width, opacity in STEPS if one.share.high - one.share.low < width)
    shares = {"share": one.share.median, "low": one.share.low}
    return {name: BLUES[min(4, int(5 * value))] for name, value in shares.items()} | {"opacity": opacity}


def page(found: Any) -> str:
    """The page of a `CollectionEstimate`: figures, table, claims and the methods paragraph; it needs no script."""
    names = [one.label for one in found.groups.values() if one.basis]
    signs = {
        (pair.first, pair.second): "▲" if pair.apart_together > 0 else "▼" if pair.apart_together else "·"
        for pair in found.pairs
    }
    claims = [sentence for pair in found.pairs if (sentence := pair_sentence(found, pair))]
    content: dict[str, Any] = {"title": found.study.query, "column": found.study.column, "footer": ""}
    content |= {"bars": found.plot(), "map": cells(found), "names": names, "signs": signs, "note": group_note}
    content["land"] = json.loads(WORLD.read_text("utf-8"))["countries"].items() if content["map"] else ()
    content |= {"groups": found.groups.values(), "advice": found.advice, "claims": claims, "methods": found.methods}
    return render("estimate.html", **content)
