"""`--ray ADDRESS`: a verb's heavy part done by workers on a Ray cluster, started here for the verb if it is `local`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from eyespot.types import UsageError

if TYPE_CHECKING:
    from eyespot.search.adapted import SearchBackend
    from eyespot.settings.gallery import ClusterSettings


def refuse_on_cluster(adapt: str | None, cluster: ClusterSettings, index: str = "exact") -> None:
    """`UsageError` before a cluster starts, whose workers search all vectors as they are stored."""
    if cluster.ray and adapt is not None and adapt.startswith("linear:"):
        raise UsageError("a linear adapter is searched in this process; leave out --ray")
    if cluster.ray and index != "exact":
        raise UsageError(f"workers on Ray search exactly; leave out --index {index}, or --ray")


@contextmanager
def workers_on(settings: ClusterSettings, module: str, kind: str) -> Iterator[Any]:
    """What a class of the room cluster gives: workers in place of this process, None without any."""
    if settings.ray is None:
        yield None
        return
    from eyespot.cluster.starting import connected

    with (
        connected(settings.ray, settings.workers) as cluster,
        getattr(import_module(f"eyespot.cluster.{module}"), kind)(cluster) as workers,
    ):
        yield workers


def backend_on(settings: ClusterSettings) -> AbstractContextManager[SearchBackend | None]:
    """The workers that search vectors instead of this process; None without any."""
    return workers_on(settings, "ray_index", "RayBackend")
