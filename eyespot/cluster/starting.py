"""Getting to a Ray cluster: one that runs already, or one on this machine for as long as a command takes."""

from __future__ import annotations

import logging
import os
import socket
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from eyespot.rooms import needs
from eyespot.storage.systems import usable_cores
from eyespot.types import EyespotError, UsageError

LOCAL = "local"
PATIENCE = 4.0  # seconds in which somebody must listen at an address
_SETTINGS = {  # as Ray reads them when it is imported or begins
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_agent_register_timeout_ms": "100000",  # of a local one: a busy machine may need more than its 15 seconds
    "RAY_prestart_worker_first_driver": "0",  # of a local one: our workers alone, and none in advance
}


@dataclass(frozen=True)
class Cluster:
    """What our workers get of a Ray cluster: how many they are, and the processors and GPUs of each.

    `gpus` is for those that embed, a fraction where several share one. A worker that gives no sign of life for
    `patience` seconds is lost.
    """

    workers: int
    cpus: int = 1
    gpus: float = 0.0
    patience: float = 60.0


@contextmanager
def connected(address: str, workers: int = 0, store: int | None = None) -> Iterator[Cluster]:
    """A cluster by its address (`auto`, HOST:PORT, ray://HOST:PORT), or `local`: one that ends with the block.

    workers: how many; 0: one for each GPU, or for each processor where there is none.
    store: bytes of shared memory of a local one; None leaves it to Ray.

    A program that uses Ray already stays in its own. Raises `EyespotError` if Ray is missing or the cluster does not
    answer, `UsageError` for more workers than it has room for.
    """
    os.environ.update({name: os.environ.get(name, value) for name, value in _SETTINGS.items()})
    with needs("--ray"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray: Any = import_module("ray")
    if ray.is_initialized():
        yield room_for(ray.nodes(), workers)
        return
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    try:
        if address == LOCAL:
            # Processors are Ray's own count: with as many as workers, every one of them can begin.
            processors = usable_cores()
            here = {"num_cpus": max(processors, workers), "object_store_memory": store, "include_dashboard": False}
            ray.init(LOCAL, **here, **quiet)
        else:
            _knock(address)
            ray.init(address, **quiet)
    except Exception as error:  # of many kinds, from gRPC's to Python's own
        why = f"no Ray cluster answers at {address} ({_first_line(error)}); see ray status there, or use --ray local"
        if address == LOCAL:
            why = f"Ray does not begin here ({_first_line(error)}); try when it is less busy, or leave out --ray"
        if "auth" in type(error).__name__.lower() or "token" in str(error).lower():
            why = f"the Ray cluster at {address} asks for its token; set RAY_AUTH_TOKEN to it"
        raise EyespotError(why) from error
    with suppress(ImportError):
        from ray._private import worker

        worker._worker_logs_enabled = False  # Ray tells of dead workers on stdout, which is for data; it has no option
    try:
        yield room_for(ray.nodes(), workers)
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """OSError if nobody listens at HOST:PORT: Ray itself would try for minutes before it says so."""
    place = urlsplit(address if "://" in address else f"ray://{address}")
    if place.hostname is None or place.port is None:
        return  # auto, which Ray looks up
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((place.hostname, place.port), PATIENCE).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            return


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def room_for(nodes: Sequence[dict[str, Any]], workers: int) -> Cluster:
    """Processors and GPUs in equal parts, as large as leave room on the machines for all workers."""
    there = [node["Resources"] for node in nodes if node["Alive"] and node["Resources"].get("CPU")]
    room, gpus = sum(int(node["CPU"]) for node in there), sum(node.get("GPU", 0) for node in there)
    count = workers or int(gpus) or room
    if not 0 < count <= room:
        raise UsageError(f"the Ray cluster has {room} processors; use at most {room} --workers")
    share = min(room // count, int(min(node["CPU"] for node in there))) or 1
    each = next(size for size in range(share, 0, -1) if sum(int(node["CPU"]) // size for node in there) >= count)
    fraction_gpus = gpus / count
    # A whole GPU, or the share of one that as many workers as fit on it get
    fraction = 1.0 if fraction_gpus >= 1 else 1 / round(1 / fraction_gpus + 0.4999) if fraction_gpus > 0 else 0.0
    return Cluster(count, each, fraction)
