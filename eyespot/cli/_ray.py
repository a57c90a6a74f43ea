"""`--ray ADDRESS`: a verb's heavy part done by workers on a Ray cluster, started here for the verb if it is `local`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.cluster.starting import Cluster
    from eyespot.search.adapted import SearchBackend

MOST = 4096


def ray_option() -> Any:
    """The option `--ray`, alike on every verb that can work on a cluster."""
    help = "Work on a Ray cluster: local, auto, HOST:PORT or ray://HOST:PORT."
    return typer.Option(None, "--ray", metavar="ADDRESS", envvar="EYESPOT_RAY", help=help)


def workers_option() -> Any:
    """The option `--workers` of verbs that have workers on a cluster only."""
    help = "Workers on the cluster; 0: one per GPU, or per processor."
    return typer.Option(0, "--workers", min=0, max=MOST, help=help)


def refuse_on_cluster(adapt: str | None, ray: str | None) -> None:
    """`UsageError` for a linear adapter on a cluster, whose workers search vectors as they are stored."""
    if ray and adapt is not None and adapt.startswith("linear:"):
        raise UsageError("a linear adapter is searched in this process; leave out --ray")


@contextmanager
def pool_on(address: str, workers: int) -> Iterator[Any]:
    """The workers that read and embed instead of threads here, as `Options.reader_factory` takes them."""
    with _connected(address, workers) as cluster:
        from eyespot.cluster.workers import WorkerPool

        with WorkerPool(cluster) as pool:
            yield pool


@contextmanager
def means_on(address: str | None, workers: int) -> Iterator[SearchBackend | None]:
    """The workers that search vectors instead of this process; None without an address."""
    if address is None:
        yield None
        return
    with _connected(address, workers) as cluster:
        from eyespot.cluster.ray_index import RayBackend

        with RayBackend(cluster) as backend:
            yield backend


@contextmanager
def _connected(address: str, workers: int) -> Iterator[Cluster]:
    from eyespot.cluster.starting import connected

    with connected(address, workers) as cluster:
        yield cluster
