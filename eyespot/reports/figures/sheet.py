"""The sheet that every figure is drawn on: 160 mm wide, one style, the same bytes for the same numbers.

Colour, hatch and marker together tell methods apart, so that none is needed alone. Blue to green are Okabe and Ito's;
each colour has a contrast of 3 or more on white, and any two stay apart for readers with protanopia, deuteranopia or
tritanopia (simulated after Machado, Oliveira and Fernandes, 2009).
"""

from __future__ import annotations

import hashlib
import re
import textwrap
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyespot.rooms import needs
from eyespot.storage.atomic import write_whole
from eyespot.types import EyespotError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 160.0  # mm, a page's text
INCH = 25.4  # mm
DPI = 200
LETTERS = 112  # of a legend, across the sheet
INK, MUTED, FAINT = "#222222", "#666666", "#DDDDDD"
STYLE = str(Path(__file__).with_name("eyespot.mplstyle"))

# The settings of matplotlib belong to the whole process; two threads that draw would mix theirs.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def house_style() -> Iterator[None]:
    """Draw in our style, whatever the user's own; `EyespotError` names the extra if matplotlib is not there."""
    with needs("a figure"):
        from matplotlib import style
    with _ONE_AT_A_TIME, style.context(["default", STYLE]), warnings.catch_warnings():
        # the PNG has no glyph for some scripts; the SVG's text stays text and is shown by the reader's fonts
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def sheet(title: str, height: float, name: str = "") -> Figure:
    """An empty figure of this height in mm; `name` stands for it where it has no title."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((WIDTH / INCH, height / INCH), dpi=DPI)
    figure.set_layout_engine("constrained", h_pad=2 / 72, w_pad=3 / 72)
    figure.set_label(title or name)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(wrapped(title, 90), x=0.01, ha="left", size=9, weight="bold")
    return figure


def wrapped(name: str, width: int) -> str:
    """A name in lines of at most so many characters; a word that is longer is cut."""
    return "\n".join(textwrap.wrap(name, width)) or name


def legend(figure: Figure, entries: Sequence[tuple[str, dict[str, Any]]], measure: str) -> None:
    """What the axis shows, and below it what each style means; as many columns as there is room for."""
    from matplotlib.patches import Patch

    measure = wrapped(measure, 100)
    if not entries:
        figure.supxlabel(measure, size=8)
        return
    names = [wrapped(name, 60) for name, _ in entries]
    handles = [Patch(**style) for _, style in entries]
    # an axis label of the whole figure would lie on a legend of the whole figure; the legend's title does not
    box = figure.legend(handles, names, loc="outside lower center", ncols=columns_for(names), title=measure)
    box.get_title().set_fontsize(8)


def columns_for(names: Sequence[str]) -> int:
    """In how many columns a legend of these names has room."""
    widest = max(len(line) for name in names for line in name.split("\n"))
    return max(1, min(6, LETTERS // (widest + 8)))


def plain_number(value: float, _position: float | None = None) -> str:
    """A tick's number as people write it: 0.01, 5, 2,000."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def bare(axes: Axes, along: str) -> None:
    """Grid lines along one axis, and none of the other's ticks and line."""
    axes.grid(axis="x" if along == "x" else "y")
    axes.tick_params(axis="y" if along == "x" else "x", length=0)
    axes.spines["left" if along == "x" else "bottom"].set_visible(along != "x")


def save(figure: Figure, stem: Path | str) -> list[Path]:
    """Write STEM.svg and STEM.png (200 dpi), each whole or not at all; gives their paths.

    The same figure gives the same bytes: neither file holds a date. `UsageError` if the folder is not there,
    `EyespotError` if the disk refuses.
    """
    stem = Path(stem)
    written = {stem.with_name(f"{stem.name}.{kind}"): _bytes_of(figure, kind) for kind in ("svg", "png")}
    for path, data in written.items():
        try:
            write_whole(path, lambda file, data=data: file.write(data))  # type: ignore[misc]
        except OSError as error:
            raise EyespotError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
    return list(written)


def _bytes_of(figure: Figure, kind: str) -> bytes:
    title = figure.get_label()
    metadata = {"Title": title, "Date": None} if kind == "svg" else {"Title": title, "Software": None}
    buffer = BytesIO()
    with house_style():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def as_svg(figure: Figure) -> str:
    """The figure as an <svg> element for a page of HTML, its ids apart from those of every other figure."""
    drawn = _bytes_of(figure, "svg").decode()
    element = drawn[drawn.index("<svg") :]
    # by content, not by name: two figures of one title are still two
    prefix = "f" + hashlib.sha256(element.encode()).hexdigest()[:12]
    ids = re.compile(r'(\sid="|href="#|url\(#)')
    return re.sub(r"<[^>]*>", lambda tag: ids.sub(rf"\g<1>{prefix}-", tag[0]), element)


PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#332288", "#882255")
HATCHES = ("", "////", "||||", "\\\\\\\\", "xxxx", "----")
OUTLINED = ("////", "\\\\\\\\", "||||", "xxxx", "----", "++++")  # an outline is never empty
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # seven beside six colours: 42 pairs before one comes again
DISTINCT = len(PALETTE)  # so many bars side by side can be told apart


@dataclass(frozen=True)
class MethodStyle:
    """How one method is drawn."""

    colour: str
    hatch: str
    outlined: str
    marker: str

    @property
    def measured(self) -> dict[str, Any]:
        """A bar of ours: filled."""
        return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch, "linewidth": 0.0}

    @property
    def published(self) -> dict[str, Any]:
        """A bar of a paper: an outline, hatched."""
        return {"facecolor": "white", "edgecolor": self.colour, "hatch": self.outlined, "linewidth": 0.8}


def method_style(position: int) -> MethodStyle:
    """The style of the method at this position, from 0."""
    at = position % DISTINCT
    return MethodStyle(PALETTE[at], HATCHES[at], OUTLINED[at], MARKERS[position % len(MARKERS)])
