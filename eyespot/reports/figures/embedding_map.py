"""A query among images, before and after it is adapted: the space in two dimensions (QuARI, fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eyespot.reports.figures._sheet import PALETTE, house_style, sheet, wrapped
from eyespot.rooms import needs
from eyespot.types import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]

DISTRACTORS = 5000
BROAD = 50  # dimensions that t-SNE is given
PERPLEXITY = 30.0
OTHER: dict[str, Any] = {"color": "#B5B5B5", "linewidths": 0, "rasterized": True}  # 5,000 paths are slow to show
QUERY: dict[str, Any] = {"marker": "*", "facecolors": "none", "edgecolors": PALETTE[0], "linewidths": 1.5}
RELEVANT: dict[str, Any] = {"marker": "D", "color": PALETTE[1], "edgecolors": "white", "linewidths": 0.4}
LAYOUT = "t-SNE by cosine, each panel by itself"
FEW = 200  # points up to which t-SNE's gradient is summed exactly
FEWEST = 5  # points and stars in all: fewer have no neighbourhoods


@dataclass(frozen=True)
class MapSide:
    """One side of the comparison: images (n, dim), the query (dim,) or several (q, dim), and the panel's heading."""

    vectors: Any
    query: Any
    heading: str = ""


@house_style()
def embedding_map(relevant: ArrayLike, before: MapSide, after: MapSide | None = None, seed: int = 0) -> Figure:
    """One panel for each view with the same images in it; `relevant` (n,) is True where an image answers the query.

    Drawn are all relevant images and up to 5,000 others, chosen by `seed`. t-SNE lays out each view by itself (cosine;
    the 50 strongest directions; started from PCA). What is near in the picture need not be near in the space: the
    heading says what share of the query's R nearest images, of all n by cosine, is relevant (R: how many are).
    `UsageError` for vectors that do not fit or are not finite.
    """
    flags = np.asarray(relevant, dtype=bool)  # (n,)
    sides = [_checked(view, flags) for view in (before, after) if view is not None]
    # (points,)
    others = np.flatnonzero(~flags)
    if len(others) > DISTRACTORS:
        others = np.random.default_rng(seed).choice(others, DISTRACTORS, replace=False)
    drawn = np.sort(np.concatenate([np.flatnonzero(flags), others]))
    figure = sheet("", 98 if len(sides) > 1 else 150, "map of the embeddings")
    panels = figure.subplots(1, len(sides), squeeze=False)[0]
    for axes, side in zip(panels, sides, strict=True):
        _draw(axes, _flat(side, drawn, seed), flags[drawn])
        width = 52 if len(sides) > 1 else 100
        near = f"{_share(side, flags):.0%} of the query's {flags.sum():,} nearest are relevant"
        where = f"(by cosine in all {side.vectors.shape[1]:,} dimensions, of {len(flags):,} images)"
        text = "\n".join(wrapped(part, width) for part in (side.heading, near, where) if part)
        axes.set_title(text)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, title=LAYOUT)
    return figure


def _share(side: MapSide, flags: Flags) -> float:
    near = (side.vectors @ side.query.T).max(axis=1)  # (n,)
    first = np.argsort(-near, kind="stable")[: int(flags.sum())]
    return float(flags[first].mean())


def _checked(view: MapSide, flags: Flags) -> MapSide:
    vectors = np.asarray(view.vectors, np.float64)
    query = np.atleast_2d(np.asarray(view.query, np.float64))
    if vectors.ndim != 2 or query.ndim != 2 or not len(query) or query.shape[1] != vectors.shape[1]:
        raise UsageError(f"images of shape {vectors.shape} and a query of shape {query.shape} are not of one space")
    if flags.shape != (len(vectors),):
        raise UsageError(f"{len(vectors)} images have {flags.size} marks of relevance; give one for each in every view")
    if not flags.any():
        raise UsageError("no image is relevant to the query; a map of its neighbourhood needs at least one")
    if len(vectors) + len(query) < FEWEST or vectors.shape[1] < 2:
        raise UsageError(f"a map needs {FEWEST} vectors of 2 dimensions or more, images and queries together")
    side = MapSide(_unit(vectors), _unit(query), view.heading)
    if not np.ptp(np.vstack([side.vectors, side.query]), axis=0).any():
        raise UsageError("all images and the query are one and the same vector; there is nothing to lay out")
    return side


def _unit(vectors: Reals) -> Reals:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise UsageError("some vectors have no direction (zero, NaN or infinite); leave those images out")
    return np.asarray(vectors / lengths)


def _flat(side: MapSide, drawn: NDArray[np.int64], seed: int) -> Reals:
    """Images, then query vectors, in two dimensions: (points + q, 2)."""
    points = np.vstack([side.vectors[drawn], side.query])  # (points + q, dim)
    with needs("a map of embeddings"):
        from sklearn.manifold import TSNE
    perplexity = min(PERPLEXITY, (len(points) - 1) / 3)
    way = "exact" if len(points) <= FEW else "barnes_hut"
    tsne = TSNE(metric="cosine", init="pca", perplexity=perplexity, random_state=seed, method=way)
    # not centred: cosines are what is to be kept
    return np.asarray(tsne.fit_transform(_strongest(points, BROAD)), np.float64)


def _strongest(points: Reals, most: int) -> Reals:
    """Points in the directions of their largest sums of squares, (points, ≤ most), each axis of a fixed sign."""
    axes: Reals = np.linalg.eigh(points.T @ points)[1][:, ::-1][:, :most]  # (dim, ≤ most)
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(points @ (axes * signs))


def _draw(axes: Axes, flat: Reals, flags: Flags) -> None:
    images, stars = flat[: len(flags)], flat[len(flags) :]
    axes.scatter(images[~flags][:, 0], images[~flags][:, 1], 5, label=f"other images ({(~flags).sum():,})", **OTHER)
    axes.scatter(images[flags][:, 0], images[flags][:, 1], 16, label=f"relevant images ({flags.sum():,})", **RELEVANT)
    # hollow, for the relevant images may well lie under it
    axes.scatter(stars[:, 0], stars[:, 1], 220, label="query", **QUERY)
    axes.set(xticks=[], yticks=[])
    axes.spines[["top", "right"]].set_visible(True)
