"""One small Ray on this machine for all tests of a run, and the processes of its workers, which tests kill."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray leaves the handles of its own processes to Python's collector, which complains of those that still run."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="session", autouse=True)
def on_ray() -> Iterator[None]:
    """Ray with room for four workers that last, and two more."""
    pytest.importorskip("ray")
    with _begun():
        yield


def _begun() -> AbstractContextManager[object]:
    """Ray gives itself half a minute, which is too short where much else runs; so it is tried up to three times."""
    from eyespot.cluster.starting import connected
    from eyespot.types import EyespotError

    with ExitStack() as opened:
        for left in (2, 1, 0):
            try:
                opened.enter_context(connected("local", 6, 300 << 20))
                return opened.pop_all()
            except EyespotError:
                if not left:
                    raise
    raise AssertionError("not reached")


def unit(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    """Clustered unit vectors, (rows, dim) of float32, a few of them twice."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((12, dim))[rng.integers(0, 12, rows)] + 0.6 * rng.standard_normal((rows, dim))
    vectors[rows // 2 :][:9] = vectors[: min(9, rows - rows // 2)]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def mapped(place: Path, vectors: np.ndarray) -> np.ndarray:
    """The same vectors in a file, mapped."""
    np.save(place, vectors)
    return np.load(place, mmap_mode="r")


def workers_of(kind: type) -> list[int]:
    """The processes of our workers of a class: grandchildren of this process, by the name that Ray gives them."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_ours(pid, kind)]


def _is_ours(pid: int, kind: type) -> bool:
    with suppress(OSError):
        named = Path(f"/proc/{pid}/cmdline").read_bytes().startswith(f"ray::{kind.__name__}".encode())
        return named and _parent(_parent(pid)) == os.getpid()
    return False


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def killing(kind: type, times: int, every: float) -> Iterator[list[int]]:
    """Kill (SIGKILL) a worker of this class now and then, until so many are dead; whom it hit.

    Those that are there already are spared.
    """
    dead, spared = list[int](), set(workers_of(kind))
    done, chance = threading.Event(), random.Random(times)

    def work() -> None:
        while len(dead) < times and not done.wait(chance.uniform(0, 2 * every)):
            alive = [pid for pid in workers_of(kind) if pid not in spared.union(dead)]
            if alive:
                pid = chance.choice(alive)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    dead.append(pid)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield dead
    finally:
        done.set()
        thread.join()
