"""The options of the stages of a search, alike on every verb that searches a gallery."""

from __future__ import annotations

from typing import Any

import typer

from eyespot.types import UsageError

ADAPT = "a QuARI checkpoint (its folder, or hub:OWNER/NAME), or linear:FILE, a static adapter (TA)"


def adapt_depth_option() -> Any:
    """The option `--adapt-depth`."""
    help = "Let the adapter re-rank the first N hits of the plain search, in place of searching with it."
    return typer.Option(None, "--adapt-depth", metavar="N", min=1, help=help)


def neighbours_option() -> Any:
    """The option `--neighbours`."""
    help = "Search again with the N nearest pictures added (query expansion, QE-N)."
    return typer.Option(None, metavar="N", min=0, help=help)


def alpha_option() -> Any:
    """The option `--alpha`."""
    help = "With --neighbours: a picture weighs its cosine to the power of A (α-QE, often 3); 0: all weigh the same."
    return typer.Option(None, metavar="A", min=0, help=help, show_default="1")


def rerank_local_option() -> Any:
    """The option `--rerank-local`."""
    help = "Re-rank by local descriptors: chamfer, spatial, or onnx:FILE, a learned re-ranker (AMES)."
    return typer.Option(None, "--rerank-local", metavar="METHOD", help=help)


def refuse_alone(adapt: str | None, adapt_depth: int | None, neighbours: int | None, alpha: float | None) -> None:
    """`UsageError` for an option that says how a stage works, without that stage."""
    if adapt_depth is not None and adapt is None:
        raise UsageError("--adapt-depth says how many hits an adapter re-ranks; name the adapter with --adapt")
    if alpha is not None and neighbours is None:
        raise UsageError("--alpha weighs the pictures of query expansion; say how many with --neighbours N")


def later_stages(
    adapt: str | None, adapt_depth: int | None, neighbours: int | None, alpha: float | None, ray: str | None
) -> dict[str, Any]:
    """The fields of `StageOptions` that change how a stage works; `UsageError` where they do not fit the others."""
    refuse_alone(adapt, adapt_depth, neighbours, alpha)
    refuse_on_cluster(adapt, ray)
    return {"adapt_depth": adapt_depth, "alpha": 1.0 if alpha is None else alpha}


def refuse_on_cluster(adapt: str | None, ray: str | None) -> None:
    """`UsageError` for a linear adapter on a cluster, whose workers search vectors as they are stored."""
    if ray and adapt is not None and adapt.startswith("linear:"):
        raise UsageError("a linear adapter is searched in this process; leave out --ray")
