"""`--ray ADDRESS`: a verb's heavy part done by workers on a Ray cluster, started here for the verb if it is `local`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.adapted import SearchBackend
    from eyespot.settings.search import ClusterSettings


def refuse_on_cluster(adapt: str | None, cluster: ClusterSettings) -> None:
    """`UsageError` for a linear adapter on a cluster, whose workers search vectors as they are stored."""
    if cluster.ray and adapt is not None and adapt.startswith("linear:"):
        raise UsageError("a linear adapter is searched in this process; leave out --ray")


@contextmanager
def pool_on(settings: ClusterSettings) -> Iterator[Any]:
    """The workers that read and embed in place of threads here, for `Options.reader_factory`; None without any."""
    if settings.ray is None:
        yield None
        return
    from eyespot.cluster.starting import connected

    with connected(settings.ray, settings.workers) as cluster:
        from eyespot.cluster.workers import WorkerPool

        with WorkerPool(cluster) as pool:
            yield pool


@contextmanager
def backend_on(settings: ClusterSettings) -> Iterator[SearchBackend | None]:
    """The workers that search vectors instead of this process; None without any."""
    if settings.ray is None:
        yield None
        return
    from eyespot.cluster.starting import connected

    with connected(settings.ray, settings.workers) as cluster:
        from eyespot.cluster.ray_index import RayBackend

        with RayBackend(cluster) as backend:
            yield backend
