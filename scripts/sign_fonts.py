"""Makes the two small fonts that Chinese signs are written in: the characters of `PHRASES` out of free fonts.

    python scripts/sign_fonts.py NotoSansCJK-Regular.ttc LXGWWenKai-Regular.ttf

Needs fontTools (it comes with matplotlib) and, on Debian, the packages fonts-noto-cjk and fonts-lxgw-wenkai. Both
fonts are under the SIL Open Font Licence 1.1, which wants that changed ones bear other names.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from eyespot.curate.recos.drawing import PHRASES, UNITS

OUT = Path(__file__).resolve().parents[1] / "eyespot" / "curate" / "recos" / "fonts"
ASCII = "".join(map(chr, range(32, 127)))


def small(source: str, number: int, name: str) -> Path:
    """A font with the signs' characters and those of ASCII, under its own name."""
    font = TTFont(source, fontNumber=number, recalcTimestamp=False)
    options = subset.Options(name_IDs=[0, 1, 2, 4, 6, 13, 14], notdef_outline=True, layout_features=[], hinting=False)
    chosen = subset.Subsetter(options)
    chosen.populate(
        text=ASCII + "".join([*(phrase["chinese"] for phrase in PHRASES), *(unit[0] for unit in UNITS.values())])
    )
    chosen.subset(font)
    _rename(font, name)
    out = OUT / f"{name}.{'otf' if 'CFF ' in font else 'ttf'}"
    font.save(out)
    return out


def _rename(font: TTFont, name: str) -> None:
    for record in font["name"].names:
        if record.nameID in (1, 4, 6):
            record.string = name
    if "CFF " in font:
        cff = font["CFF "].cff
        cff.fontNames = [name]
        cff.topDictIndex[0].FullName = cff.topDictIndex[0].FamilyName = name


if __name__ == "__main__":
    sans, brush = sys.argv[1:]
    for made in (small(sans, 2, "EyespotSigns"), small(brush, -1, "EyespotBrush")):
        print(made, made.stat().st_size)
